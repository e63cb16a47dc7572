"""Runbooks as pages: reached from an alert, with its labels in their commands."""

import re

import pytest
from playwright.sync_api import Page, expect
from testkit.browsers import CUT_OFF
from testkit.service import Service
from tests.api.notifications import alert, notification
from tests.web.conftest import log_in, start_run, steady

from cliffwatch.web.alert_list import severities
from cliffwatch.web.runbooks import filled, plain_labels, rendered, runbook_link, runbooks

CLIFF = "CliffwatchLatencyCliff"
#: Runbooks whose commands need more than a run and the address of Prometheus.
NOT_ALL_FILLED = {
    name
    for name, path in runbooks().items()
    if re.search("`(DEVICE|MOUNTPOINT|OPERATION|RUN_DIRECTORY)`", path.read_text())
}
PURE = pytest.mark.gate(why="neither a browser nor a service")


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=str)
def test_an_alert_leads_to_its_runbook_with_commands_for_its_run(
    page: Page, service: Service, size: tuple[int, int]
) -> None:
    run_id = start_run(service, steady(f"looked-up-{size[0]}", "5m"))
    service.wait_for(run_id, "running")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    log_in(page, service, f"/runs/{run_id}")
    reported = alert(run_id, "firing")
    reported["labels"] |= {"alertname": CLIFF, "operation": "publish", "severity": "critical"}
    other = alert(run_id, "firing", fingerprint="ab12")
    service.client.post("/api/v1/alerts", json=notification(reported, other)).raise_for_status()
    # One that is not of this project has none.
    expect(page.locator("#findings .alert")).to_have_count(2)
    page.locator("#findings").get_by_role("link", name="what to do").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(CLIFF)
    commands = page.locator("pre").all_inner_texts()
    assert f"cliffwatch analyze {run_id}\n" in commands
    assert any("http://127.0.0.1:9890/api/v1/query --data-urlencode 'query=" in each for each in commands)
    assert f"{service.state_directory}/runs/{run_id}/windows.jsonl" in "".join(commands)
    assert page.evaluate(CUT_OFF) == []
    page.get_by_role("link", name=f"run {run_id}").click()
    expect(page.locator("#ask-stop")).to_be_visible()
    page.goto("/runs")
    page.locator(f"#row-{run_id} .firing").get_by_role("link", name=CLIFF).click()
    expect(page.locator("pre").first).to_contain_text(run_id)
    assert "is over" not in page.inner_text("main")
    expect(page.locator("p.above")).to_contain_text(re.compile(rf"critical\s*! fires now, for {run_id}"))
    page.get_by_role("link", name="All alerts").click()
    expect(page.locator("dt")).to_have_count(len(runbooks()))
    expect(page.locator("dt").first).to_have_text(re.compile(rf"{CLIFF} critical\s*! fires now, for {run_id}"))
    expect(page.locator("dt .firing")).to_have_count(1)
    assert page.evaluate(CUT_OFF) == []
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    service.wait_for(run_id, "finished")
    page.goto(f"/runbooks/{CLIFF}?run_id={run_id}")
    expect(page.locator("main")).to_contain_text(f"Run {run_id} is over: ")
    expect(page.locator(".badge")).to_contain_text("stopped")
    assert page.evaluate(CUT_OFF) == []
    page.get_by_role("link", name="Its report").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"looked-up-{size[0]}")
    assert page.complaints == []  # type: ignore[attr-defined]


def test_an_alert_that_is_none_is_said_and_leads_to_those_there_are(page: Page, service: Service) -> None:
    log_in(page, service, "/runbooks/None.md")
    expect(page.locator("[role=alert]")).to_contain_text("No alert is named 'None.md'; /runbooks lists them")


@PURE
def test_every_alert_of_a_runbook_has_its_severity() -> None:
    assert severities().keys() == runbooks().keys()
    assert set(severities().values()) == {"critical", "warning", "info"}


@PURE
def test_every_runbook_is_drawn_and_nothing_but_its_commands_is_filled_in() -> None:
    for name, path in runbooks().items():
        page = rendered(path.read_text(encoding="utf-8"), {"RUN": "soak-1", "$PROMETHEUS": "http://127.0.0.1:1"})
        assert page.startswith(f"<h1>{name}</h1>")
        assert "<h2>Mitigation</h2>" in page
        # What is prose says which label the word stands for, unless all words were replaced.
        assert "soak-1</code> is the alert" not in page
        assert ("is the alert&#x27;s label" in page or "is the alert's label" in page) == (name in NOT_ALL_FILLED)
    assert rendered("    a <b> RUN\n", {"RUN": "</code>"}) == "<pre><code>a &lt;b&gt; &lt;/code&gt;\n</code></pre>\n"


@PURE
def test_placeholders_are_whole_words() -> None:
    values = {"RUN": "one", "RUN_DIRECTORY": "/r/one", "$PROMETHEUS": "http://p"}
    assert filled("RUN RUN_DIRECTORY/x $PROMETHEUS PROMETHEUS RUNS {RUN}", values) == (
        "one /r/one/x http://p PROMETHEUS RUNS {one}"
    )


@PURE
@pytest.mark.parametrize("value", ["", "a b", 'a"b', "a'b", "$(x)", "a;b", "-x", "a" * 201, "ä"])
def test_a_label_that_a_command_cannot_hold_is_left_out(value: str) -> None:
    assert plain_labels({"run_id": value, "device": "nvme0n1", "other": "x"}) == {"device": "nvme0n1"}


@PURE
def test_an_alert_without_a_runbook_has_no_link() -> None:
    assert runbook_link("QueueFull", {"run_id": "one"}) is None
    assert runbook_link(CLIFF, {}) == f"/runbooks/{CLIFF}"
    assert runbook_link(CLIFF, {"run_id": "one", "mountpoint": "/mnt/a"}) == (
        f"/runbooks/{CLIFF}?run_id=one&mountpoint=%2Fmnt%2Fa"
    )
