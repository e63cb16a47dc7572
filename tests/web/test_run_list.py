"""The list of runs: figures of the whole load, curves that can be compared, and filters that an address holds."""

import os
import re
import signal
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from testkit.recorded_runs import LOAD_START
from testkit.service import Service
from tests.web.conftest import log_in, start_run, steady, wait_until_finished

from cliffwatch.http.run_resource import RunFiguresBody, RunSummary
from cliffwatch.model.drive_id import mean_request_seconds
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.report.charts.curve import CurvePoint
from cliffwatch.report.charts.small_curve import CURVE_HEIGHT
from cliffwatch.report.format import byte_rate, elapsed, latency
from cliffwatch.store.models import RunRow
from cliffwatch.web.run_list import _listed, points_of
from cliffwatch.web.run_now import time_left


@pytest.fixture(scope="module")
def runs(service: Service) -> dict[str, str]:
    """Run ids: one that stayed healthy, and one ten times as slow that fell off a cliff. Both in virtual time."""
    ids = {
        "healthy": start_run(service, steady("stayed", "2h", "10s", time="virtual")),
        "cliff": start_run(
            service, steady("fell", "2h", "10s", time="virtual", median_latency="20ms", cliff_after="1h")
        ),
    }
    for run_id in ids.values():
        wait_until_finished(service, run_id)
    return ids


def heights(page: Page, run_id: str) -> list[float]:
    lines = page.locator(f"#row-{run_id} polyline").evaluate_all("all => all.map(line => line.getAttribute('points'))")
    return [float(point.split(",")[1]) for line in lines for point in line.split()]


def test_a_finished_run_shows_the_figures_of_its_whole_load(page: Page, service: Service, runs: dict[str, str]) -> None:
    log_in(page, service)
    for run_id in runs.values():
        report = service.client.get(f"/api/v1/runs/{run_id}/report").json()
        figures = service.client.get(f"/api/v1/runs/{run_id}").json()["figures"]
        load = report["latency"]["publish"]["load"]
        assert (figures["latency"], figures["p99_seconds"]) == ("publish", load["p99_seconds"])
        row = page.locator(f"#row-{run_id}")
        expect(row).to_contain_text(latency(load["p99_seconds"]))
        expect(row).to_contain_text(byte_rate(report["throughput"]["load"]["bytes_per_second"]))
        expect(row).to_contain_text("whole load")
    expect(page.locator(f"#row-{runs['cliff']}").get_by_role("cell").nth(3)).to_contain_text("1:00:00")
    expect(page.locator(f"#row-{runs['healthy']}").get_by_role("cell").nth(3)).to_have_text("none")


def test_curves_of_all_rows_can_be_compared(page: Page, service: Service, runs: dict[str, str]) -> None:
    log_in(page, service)
    expect(page.locator("thead .scale")).to_contain_text(re.compile(r"all rows\s1\sms\sto\s10\ss"))
    # Ten times as slow before its cliff: that much higher on the page, where down is large.
    healthy, cliff = heights(page, runs["healthy"]), heights(page, runs["cliff"])
    assert healthy[0] - cliff[0] == pytest.approx((CURVE_HEIGHT - 2) / 4, rel=0.1)
    assert cliff[0] - cliff[-1] == pytest.approx((CURVE_HEIGHT - 2) / 2, rel=0.1)


def test_a_filter_is_in_the_address(page: Page, service: Service, runs: dict[str, str]) -> None:
    log_in(page, service)
    page.get_by_label("Verdict").select_option("degraded")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(f"#row-{runs['healthy']}")).to_have_count(0)
    expect(page.locator(f"#row-{runs['cliff']}")).to_be_visible()
    assert "verdict=degraded" in page.url
    page.goto(page.url)
    expect(page.get_by_label("Verdict")).to_have_value("degraded")
    page.get_by_label("Workload").fill("none-such")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No run matches this filter.")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(page.locator(f"#row-{runs['healthy']}")).to_be_visible()
    listed = service.client.get("/api/v1/runs", params={"verdict": "degraded"}).json()["items"]
    assert {run["verdict"] for run in listed} == {"degraded"}


def test_a_run_that_has_not_started_has_no_start(page: Page, service: Service) -> None:
    first = start_run(service, steady("in-turn", "5m"))
    waiting, withdrawn = (start_run(service, steady("in-turn", "5m")) for _ in range(2))
    service.client.post(f"/api/v1/runs/{withdrawn}/stop").raise_for_status()
    service.wait_for(first, "running")
    service.wait_for(withdrawn, "finished")
    log_in(page, service)
    for run_id, started in ((first, re.compile(r"20\d\d-")), (waiting, "–"), (withdrawn, "–")):
        expect(page.locator(f"#row-{run_id} [data-label=Started]")).to_have_text(started)
    for run_id in (waiting, first):
        service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()


def test_a_run_without_a_window_has_no_cliff_to_speak_of(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("ended-before-it-began", "5m", "1m"))
    service.wait_for(run_id, "running")
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    wait_until_finished(service, run_id)
    assert service.client.get(f"/api/v1/runs/{run_id}").json()["windows"] == 0
    log_in(page, service)
    expect(page.locator(f"#row-{run_id}").get_by_role("cell").nth(3)).to_have_text("–")


def test_no_time_is_left_once_the_report_is_being_made() -> None:
    over: dict[str, Any] = {"state": RunState.REPORTING, "planned_seconds": 600.0, "elapsed_seconds": 90.0}
    assert time_left(RunSummary.model_construct(**over)) is None


@pytest.mark.parametrize("elapsed_seconds", [0.0, 6.4, 6.5, 7.5, 94.6, 95.0])
def test_elapsed_and_remaining_time_add_up_to_the_planned_load(elapsed_seconds: float) -> None:
    run: dict[str, Any] = {"state": RunState.RUNNING, "planned_seconds": 95.0, "elapsed_seconds": elapsed_seconds}
    assert time_left(RunSummary.model_construct(**run)) == elapsed(95 - round(elapsed_seconds))


@pytest.mark.parametrize(("seconds", "shown"), [(17.11276032, "at least 17.1 s"), (16.0, "16 s")])
def test_a_p99_at_the_end_of_the_engine_s_scale_is_said_to_be_at_least_that(seconds: float, shown: str) -> None:
    figures = RunFiguresBody(
        latency="write",
        p50_seconds=1.0,
        p99_seconds=seconds,
        max_seconds=20.0,
        operations_per_second=1.0,
        bytes_per_second=1.0,
        device_write_seconds=None,
        onset=None,
    )
    run: dict[str, Any] = {"engine": "fio", "figures": figures, "verdict": VerdictName.PASS}
    listed = _listed(RunRow(windows=10), RunSummary.model_construct(**run), None, None)
    assert listed.p99 == shown


def test_an_empty_list_says_to_a_reader_what_a_reader_can_do(page: Page, service: Service) -> None:
    made = service.client.post("/api/v1/tokens", json={"name": "looks-on", "scope": "read"}).json()
    page.goto("/schedules")
    page.get_by_label("Token").fill(made["token"])
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#list")).to_contain_text("create one with cliffwatch schedule add")


def row_of(load_start: float, load_stop: float) -> RunRow:
    return RunRow(load_start=load_start, load_stop=load_stop)


def test_a_devices_latency_is_its_time_by_its_writes() -> None:
    counted = {"device_write_operations": 50, "device_write_milliseconds": 100}
    assert mean_request_seconds(counted) == pytest.approx(0.002)
    assert mean_request_seconds({"device_write_operations": 0, "device_write_milliseconds": 0}) is None
    assert mean_request_seconds({}) is None


def test_an_open_list_shows_new_runs_and_that_the_service_is_gone(page: Page, service: Service) -> None:
    log_in(page, service)
    service.client.post("/api/v1/schedules", json=_SCHEDULE).raise_for_status()
    schedules = page.context.new_page()
    schedules.goto("/schedules", wait_until="load")
    expect(schedules.get_by_role("row").filter(has_text="now-and-then")).to_be_visible()
    run_id = start_run(service, steady("came-later", "5m"))
    row = page.locator(f"#row-{run_id}")
    # The page is not loaded again; what has the focus keeps it while its row changes.
    expect(row).to_contain_text("running")
    row.get_by_role("link").focus()
    expect(row).to_contain_text("last window")
    expect(row.get_by_role("link")).to_be_focused()
    service.kill()
    for open_page in (page, schedules):
        expect(open_page.locator("#lost")).to_contain_text(
            re.compile(r"No answer from the service since \d\d:\d\d:\d\d UTC")
        )
        expect(open_page.get_by_role("row").nth(1)).to_be_visible()
    service.start()
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    expect(row).to_contain_text("stopped")
    for schedule in service.client.get("/api/v1/schedules").json()["items"]:
        service.client.delete(f"/api/v1/schedules/{schedule['id']}").raise_for_status()
    expect(schedules.get_by_text("No schedules yet.")).to_be_visible()
    for open_page in (page, schedules):
        expect(open_page.locator("#lost")).not_to_be_visible()
    expect(row.get_by_role("link")).to_be_focused()


def test_a_service_that_is_frozen_is_one_that_does_not_answer(page: Page, service: Service) -> None:
    log_in(page, service)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    # The page's own script came from the service, too.
    page.wait_for_function("window.cliffwatch !== undefined")
    os.kill(service.pid, signal.SIGSTOP)
    try:
        expect(page.locator("#lost")).to_be_visible()
    finally:
        os.kill(service.pid, signal.SIGCONT)
    expect(page.locator("#lost")).not_to_be_visible()


_SCHEDULE = {
    "name": "now-and-then",
    "workload": "sequential-log",
    "target": {"kind": "directory", "path": "/tmp"},
    "trigger": {"kind": "interval", "every": "6h"},
}


@pytest.mark.parametrize("p99", [-0.001, float("inf"), float("nan")])
def test_a_kept_curve_with_what_no_latency_can_be_is_not_drawn(p99: float) -> None:
    row = row_of(LOAD_START, LOAD_START + 600)
    row.curve = [CurvePoint(LOAD_START, 0.001), CurvePoint(LOAD_START + 10, p99)]
    assert points_of(row) == []
    row.curve = row.curve[:1]
    assert points_of(row) == [CurvePoint(LOAD_START, 0.001)]
