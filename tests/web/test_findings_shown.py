"""The page of a finished run lists the findings of its report, however they were found and however much followed."""

import re
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Page, expect
from testkit.recorded_runs import at_window, make_journal
from testkit.service import Service
from tests.report.cliff_run import CLIFF, PLAN
from tests.report.finishing import finish
from tests.web.conftest import log_in

from cliffwatch.journal import Event, EventType


def _finished_run(service: Service, name: str, *events: Event) -> Path:
    directory = make_journal(service.state_directory / "runs" / name, replace(PLAN, run_id=name, events=events))
    finish(directory)
    service.rebuild_index()
    return directory


def test_a_cliff_that_only_the_whole_run_shows_is_on_its_page(page: Page, service: Service) -> None:
    _finished_run(service, "found-at-the-end")
    log_in(page, service, "/runs/found-at-the-end")
    expect(page.locator("#verdict")).to_contain_text("degraded")
    expect(page.locator("#findings li.finding").filter(has_text="Cliff at 0:")).to_have_count(1)
    expect(page.locator("#events li.finding")).to_have_text(re.compile("findingcliff of write p99$"))
    expect(page.locator("#no-findings")).to_be_hidden()
    expect(page.locator("main")).to_contain_text("drive nvme0n1 (S1AGING), engine")


def test_an_unconfirmed_finding_is_marked_so_on_the_page(page: Page, service: Service) -> None:
    detail = {
        "kind": "spikes",
        "series": "write.p99",
        "onset": at_window(PLAN, 100),
        "summary": "The write p99 spikes.",
    }
    _finished_run(service, "not-confirmed", Event(at_window(PLAN, 112), EventType.FINDING, "spikes", detail))
    log_in(page, service, "/runs/not-confirmed")
    refuted = page.locator("#findings li.finding").filter(
        has_text="Not confirmed by the whole run: the write p99 spikes"
    )
    expect(refuted).to_have_count(1)


def test_hundreds_of_notes_push_no_finding_and_no_phase_off_the_page(page: Page, service: Service) -> None:
    key = {"kind": "cliff", "series": "write.p99", "onset": at_window(PLAN, CLIFF)}
    raised = Event(at_window(PLAN, CLIFF + 12), EventType.FINDING, "cliff", key | {"summary": "The write p99 rose 5×."})
    grown = [
        Event(at_window(PLAN, CLIFF + 13 + place), EventType.NOTE, "finding_updated", key | {"summary": "Higher."})
        for place in range(300)
    ]
    _finished_run(service, "noted-often", raised, *grown)
    log_in(page, service, "/runs/noted-often")
    expect(page.locator("#findings li.finding").filter(has_text="Cliff at 0:")).to_have_count(1)
    answer = page.evaluate("fetch(location.pathname + '/series').then((answer) => answer.json())")
    assert [event["name"] for event in answer["events"] if event["type"] == "phase"][:2] == ["prepare", "baseline"]
