"""The charts of a run's page draw what the run counted."""

from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect
from testkit.recorded_runs import JournalPlan, make_journal
from testkit.service import Service
from tests.report.finishing import finish
from tests.web.conftest import log_in


@pytest.mark.parametrize(("counts_bytes", "measure"), [(True, "Bytes"), (False, "Operations")])
def test_throughput_is_in_what_the_load_counts(page: Page, service: Service, counts_bytes: bool, measure: str) -> None:
    name = f"by-{measure.lower()}"
    plan = replace(JournalPlan(windows=60), run_id=name, counts_bytes=counts_bytes)
    finish(make_journal(service.state_directory / "runs" / name, plan))
    service.rebuild_index()
    log_in(page, service, f"/runs/{name}")
    expect(page.locator("#live")).to_have_attribute("data-ready", "true")
    expect(page.locator("figcaption", has_text="per second of each window")).to_have_text(
        f"{measure} per second of each window"
    )
    page.locator("#rate-chart .u-over").hover(position={"x": 2, "y": 40})
    expect(page.locator("#readout")).to_contain_text("B/s" if counts_bytes else "1,000 /s")
