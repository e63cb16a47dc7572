"""Alerts that fire are on the list of runs: at their run, and above it those of no run."""

import pytest
from playwright.sync_api import Page, expect
from testkit.browsers import CUT_OFF
from testkit.service import Service
from tests.api.notifications import alert, notification
from tests.web.conftest import log_in, start_run, steady


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=str)
def test_what_fires_is_seen_on_the_list_until_it_is_over(page: Page, service: Service, size: tuple[int, int]) -> None:
    run_id = start_run(service, steady(f"listed-{size[0]}", "5m"))
    service.wait_for(run_id, "running")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    log_in(page, service)
    row, above = page.locator(f"#row-{run_id}"), page.locator("#alerts")
    expect(row).to_contain_text("running")
    expect(row.locator(".firing")).to_have_count(0)
    for status in ("firing", "resolved"):
        own = alert(run_id, status)
        general = alert(None, status, fingerprint="ab12")
        general["labels"]["alertname"] = "ExporterDown"
        reported = notification(own, general, status=status)
        service.client.post("/api/v1/alerts", json=reported).raise_for_status()
        if status == "firing":
            expect(row.locator(".firing")).to_have_text("! alert QueueFull (warning)")
            expect(above.locator("li")).to_contain_text(
                "ExporterDown (warning) since 2026-11-21 09:04:15 UTC: The queue"
            )
            assert page.evaluate(CUT_OFF) == []
    expect(row.locator(".firing")).to_have_count(0)
    expect(above).to_have_count(0)
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()


def test_an_alert_of_no_run_is_known_after_a_restart_and_without_a_run(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("there-for-it", "5m"))
    service.wait_for(run_id, "running")
    general = alert(None, "firing", fingerprint="ab13")
    service.client.post("/api/v1/alerts", json=notification(general)).raise_for_status()
    service.kill()
    service.start()
    log_in(page, service)
    expect(page.locator("#alerts li")).to_have_count(1)
    # It comes again, and then the run is over, and its journal with it.
    service.client.post("/api/v1/alerts", json=notification(general)).raise_for_status()
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    expect(page.locator(f"#row-{run_id}")).to_contain_text("stopped")
    expect(page.locator("#alerts li")).to_have_count(1)
    over = alert(None, "resolved", fingerprint="ab13")
    service.client.post("/api/v1/alerts", json=notification(over, status="resolved")).raise_for_status()
    expect(page.locator("#alerts")).to_have_count(0)
