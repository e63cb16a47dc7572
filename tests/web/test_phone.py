"""Every page on a phone: what a person needs is on the screen, whole, in light and in dark."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from testkit.browsers import CUT_OFF, PATIENCE_MILLISECONDS
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from testkit.service import Service
from tests.api.notifications import alert, notification
from tests.report.finishing import finish
from tests.web.conftest import log_in, start_run, steady, wait_until_finished

from cliffwatch.journal import Event, EventLog, EventType

PHONE_WIDTH = 390


@pytest.fixture(scope="module")
def runs(service: Service) -> Iterator[dict[str, str]]:
    """A run that fell off a cliff, and one under way that an alert fires for; a schedule beside them."""
    long_name = "a-workload-with-a-rather-long-name-as-people-give-them"
    fallen = start_run(service, steady(long_name, "2h", "10s", time="virtual", cliff_after="1h"))
    wait_until_finished(service, fallen)
    live = start_run(service, steady("alerted-on-a-phone", "5m"))
    service.client.post("/api/v1/alerts", json=notification(alert(live, "firing"))).raise_for_status()
    service.client.post(
        "/api/v1/schedules",
        json={
            "name": "weekly-soak-of-the-second-drive-in-the-rack",
            "workload": "sequential-log",
            "target": {"kind": "directory", "path": "/mnt/the-second-drive-in-the-rack/with/a/long/path"},
            "trigger": {"kind": "cron", "expression": "0 18 * * fri", "time_zone": "Europe/Berlin"},
        },
    ).raise_for_status()
    yield {"fallen": fallen, "live": live}
    service.client.post(f"/api/v1/runs/{live}/stop").raise_for_status()


@pytest.mark.parametrize(
    "scheme", ["light", pytest.param("dark", marks=pytest.mark.real(why="colours change no width"))]
)
def test_nothing_is_cut_off_on_a_phone(page: Page, service: Service, runs: dict[str, str], scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": PHONE_WIDTH, "height": 844})
    page.goto("/login")
    assert page.evaluate(CUT_OFF) == []
    log_in(page, service)
    live = page.locator("#live")
    # The page, what must have come before it is looked at, and what a person comes for.
    seen = {
        "/runs": (None, ["#list .badge.degraded", "#list progress", "#list svg"]),
        f"/runs/{runs['fallen']}": ("true", ["#verdict .badge", "#reasons li", "#findings li"]),
        f"/runs/{runs['live']}": ("true", ["#state", "#ask-stop", "#findings .alert span"]),
        "/schedules": (None, ["#list button.danger", "#list code"]),
        "/drives": (None, ["section.drive h2"]),
        "/start": (None, ["button[value=check]"]),
        "/workloads": (None, ["th a"]),
        "/workloads/sequential-log": (None, ["pre"]),
        "/notifications": (None, ["h1"]),
        "/tokens": (None, ["th"]),
        "/runbooks": (None, ["dt a"]),
        f"/runbooks/CliffwatchRunStalled?run_id={runs['live']}": (None, ["pre"]),
        "/runs/none-such": (None, ["[role=alert]"]),
    }
    for path, (ready, needed) in seen.items():
        page.goto(path)
        if ready:
            expect(live).to_have_attribute("data-ready", ready)
        for selector in needed:
            expect(page.locator(selector).first).to_be_visible()
        assert page.evaluate(CUT_OFF) == [], path
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{path} is wider than the screen"


def test_a_long_path_fits_a_phone(page: Page, service: Service) -> None:
    path = "/mnt/" + "the_second_drive_of_the_third_rack_" * 3
    plan = JournalPlan(run_id="long-path", target=f"directory:{path}")
    finish(make_journal(service.state_directory / "runs" / "long-path", plan))
    service.rebuild_index()
    page.set_viewport_size({"width": PHONE_WIDTH, "height": 844})
    log_in(page, service, "/runs/long-path")
    expect(page.locator("#live")).to_have_attribute("data-ready", "true")
    expect(page.locator("main")).to_contain_text(path)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


@pytest.mark.parametrize("has_touch", [True, False], ids=["touch", "mouse"])
def test_links_of_tables_are_as_high_as_a_finger_needs(browser: Browser, service: Service, has_touch: bool) -> None:
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{service.port}",
        viewport={"width": PHONE_WIDTH, "height": 844},
        has_touch=has_touch,
        is_mobile=has_touch,
    )
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = context.new_page()
    log_in(page, service, "/workloads")
    link = page.get_by_role("link", name="sequential-log").bounding_box()
    context.close()
    # As WCAG 2.2 has it for the least size of a target: 24 px.
    assert link is not None
    assert (link["height"] >= 24) == has_touch


def test_the_gates_answer_fits_a_phone(page: Page, service: Service) -> None:
    page.set_viewport_size({"width": PHONE_WIDTH, "height": 844})
    log_in(page, service, "/start")
    page.get_by_label("Workload").select_option("sequential-log")
    page.get_by_label("Where").fill("/proc")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#answer").get_by_role("alert")).to_be_visible()
    assert page.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("size", [(PHONE_WIDTH, 844), (1280, 900)], ids=str)
def test_long_lists_are_cut_between_two_lines_and_shown_whole_on_request(
    page: Page, service: Service, size: tuple[int, int]
) -> None:
    run_id = start_run(service, steady("much-happened", "10m", "10s", time="virtual"))
    wait_until_finished(service, run_id)
    log = EventLog(service.state_directory / "runs" / run_id)
    summary = (
        "The p99 of append is 113 times its baseline, from 6.0 ms to 678 ms, on the second drive in the rack. " * 2
    )
    firing = {"status": "firing", "summary": summary, "labels": {"run_id": run_id}}
    for number in range(14):
        log.append(Event(LOAD_START, EventType.ALERT, f"Alert{number}", firing))
    page.set_viewport_size({"width": size[0], "height": size[1]})
    log_in(page, service, f"/runs/{run_id}")
    lines = page.locator("#findings li")
    expect(lines).to_have_count(14)
    expect(lines.nth(9)).to_be_visible()
    expect(lines.nth(10)).not_to_be_visible()
    assert page.evaluate(CUT_OFF) == []
    page.get_by_role("button", name="Show all 14", exact=True).click()
    expect(lines.nth(13)).to_be_visible()
    assert page.evaluate(CUT_OFF) == []
    page.get_by_role("button", name="Show the newest 10").click()
    expect(lines.nth(10)).not_to_be_visible()
