"""Marking a span of a run by its page, in a real browser against a real service."""

import re
from datetime import UTC, datetime
from typing import Any

from playwright.sync_api import Page, expect
from testkit.service import Service
from tests.web.conftest import log_in, start_run, steady, wait_until_finished

from cliffwatch.journal import JournalReader
from cliffwatch.journal.events import MARKED


def marks_of(service: Service, run: str) -> list[dict[str, Any]]:
    body = service.client.get(f"/api/v1/runs/{run}/events").json()
    return [event["detail"] for event in body["items"] if event["name"] == MARKED]


def marked_ratio(page: Page) -> float:
    """Share of the latency chart's width that is painted as marked."""
    ratio: float = page.evaluate(
        """() => {
          const canvas = document.querySelector("#latency-chart canvas"), pen = canvas.getContext("2d");
          const row = pen.getImageData(0, 40, canvas.width, 1).data;
          let painted = 0;
          for (let x = 0; x < 4 * canvas.width; x += 4) if (row[x] > row[x + 2] + 30 && row[x + 3] > 0) painted += 1;
          return painted / canvas.width;
        }"""
    )
    return ratio


def begin_mark(page: Page, service: Service, run: str) -> None:
    """Open a running run's page, once it has windows, and its form for a mark with a reason."""
    log_in(page, service, f"/runs/{run}")
    expect(page.locator("#tile-p99")).to_contain_text("ms")
    page.get_by_role("button", name="Mark…").click()
    page.get_by_label("What was done").fill("pulled a drive")


def test_the_last_minutes_can_be_marked_on_the_page_of_a_running_run(page: Page, service: Service) -> None:
    run = start_run(service, steady("disturbed", "1m"))
    begin_mark(page, service, run)
    page.get_by_role("button", name="Leave it").click()
    expect(page.locator("#mark-dialog")).to_be_hidden()
    page.get_by_role("button", name="Mark…").click()
    unmarked = marked_ratio(page)
    page.get_by_label("What was done").fill("pulled a drive")
    page.get_by_role("button", name="Mark it").click()
    expect(page).to_have_url(re.compile(rf"/runs/{run}$"))
    expect(page.locator("#events")).to_contain_text("pulled a drive")
    expect(page.locator("#disturbed")).to_be_visible()
    # All of the load was marked, and how much of the chart that is depends on how old it was.
    assert marked_ratio(page) > unmarked
    page.locator("#latency-chart .u-over").hover(position={"x": 2, "y": 40})
    expect(page.locator("#readout")).to_contain_text("marked: pulled a drive")
    (mark,) = marks_of(service, run)
    assert mark["end"] - mark["start"] == 300
    assert mark["message"] == "pulled a drive"


def test_a_span_can_be_given_since_the_load_began(page: Page, service: Service) -> None:
    run = start_run(service, steady("disturbed-early", "5m"))
    begin_mark(page, service, run)
    page.get_by_label("From, UTC").fill("0s")
    page.get_by_label("To, UTC").fill("0:00:01")
    page.get_by_role("button", name="Mark it").click()
    expect(page.locator("#events")).to_contain_text("pulled a drive")
    (mark,) = marks_of(service, run)
    assert mark["end"] - mark["start"] == 1


def test_a_span_that_ends_before_it_begins_is_refused_by_its_field(page: Page, service: Service) -> None:
    run = start_run(service, steady("disturbed-wrongly", "5m"))
    begin_mark(page, service, run)
    page.get_by_label("To, UTC").fill("2020-01-01T00:00:00")
    page.get_by_role("button", name="Mark it").click()
    expect(page.locator("body")).to_contain_text("end: it is not after start; give a later time")
    assert marks_of(service, run) == []


def test_a_span_zoomed_to_is_marked_and_the_report_made_anew(page: Page, service: Service) -> None:
    run = start_run(service, steady("marked-later", "4h", "10s", time="virtual", cliff_after="2h"))
    wait_until_finished(service, run)
    log_in(page, service, f"/runs/{run}")
    expect(page.locator("#live")).to_have_attribute("data-ready", "true")
    expect(page.locator("#verdict")).to_contain_text("degraded")
    # Nothing is zoomed to: the last minutes of the load are offered, which ended long before this is looked at.
    page.get_by_role("button", name="Mark…").click()
    last = [window.end for window in JournalReader(service.state_directory / "runs" / run).windows()][-1]
    ends = datetime.fromisoformat(page.get_by_label("To, UTC").input_value()).replace(tzinfo=UTC).timestamp()
    assert abs(ends - last) <= 1
    page.get_by_role("button", name="Leave it").click()
    chart = page.locator("#latency-chart .u-over")
    chart.scroll_into_view_if_needed()
    area = chart.bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + area["width"] * 0.45, area["y"] + 40)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.999, area["y"] + 40, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Mark…").click()
    page.get_by_label("What was done").fill("pulled a drive")
    page.get_by_label("Why only now").fill("the ticket came later")
    page.get_by_role("button", name="Mark it").click()
    expect(page.locator("#events")).to_contain_text("pulled a drive")
    (mark,) = marks_of(service, run)
    assert 2 * 3600 < mark["end"] - mark["start"] < 2.4 * 3600
    page.get_by_role("button", name="Make the report anew").click()
    # Less than nine tenths of the load are judged now.
    expect(page.locator("#verdict")).to_contain_text("invalid")
