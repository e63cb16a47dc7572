"""Alerts that fire are on the list of runs: at their run, and above it those of no run."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect
from testkit.browsers import CUT_OFF
from testkit.service import Service
from testkit.waiting import wait_until
from tests.api.notifications import alert, notification
from tests.web.conftest import log_in, start_run, steady, wait_until_finished


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=str)
def test_a_firing_alert_is_on_the_run_list_until_resolved(page: Page, service: Service, size: tuple[int, int]) -> None:
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


def test_an_alert_has_the_time_at_which_it_began_on_an_open_page_on_one_loaded_anew_and_in_the_report(
    page: Page, service: Service
) -> None:
    run_id = start_run(service, steady("timed", "5m"))
    service.wait_for(run_id, "running")

    def windows() -> int:
        return int(service.client.get(f"/api/v1/runs/{run_id}").json()["windows"])

    # A load is moved when its first engine is late, and not once that has measured. The list learns of it in turns.
    first = wait_until(windows, "the first windows")
    wait_until(lambda: windows() > first, "the next")
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#tile-elapsed")).not_to_have_text("–")
    origin = page.evaluate("fetch(location.pathname + '/series').then(async (answer) => (await answer.json()).origin)")
    began, over = (datetime.fromtimestamp(origin - before, UTC).isoformat() for before in (65, 35))
    early, late = "−0:01:05", "−0:00:35"
    for status, shown in (("firing", early), ("resolved", late)):
        reported = alert(run_id, status, startsAt=began, **({"endsAt": over} if status == "resolved" else {}))
        service.client.post("/api/v1/alerts", json=notification(reported, status=status)).raise_for_status()
        expect(page.locator("#findings li time").first).to_have_text(shown)
    page.reload()
    expect(page.locator("#findings li time")).to_have_text([late, early])
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    wait_until_finished(service, run_id)
    report = service.client.get(f"/api/v1/runs/{run_id}/report").json()
    times = [event["at_seconds"] for event in report["events"] if event["type"] == "alert"]
    assert times == [pytest.approx(-65, abs=0.002), pytest.approx(-35, abs=0.002)]


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
