"""What a run's page says is words: of its events, of its alerts, and of the phases on its charts."""

import json
import re
import time

from playwright.sync_api import Page, expect
from testkit.browsers import KEEP_WRITTEN
from testkit.journals import rewritten
from testkit.service import Service
from tests.journal.event_samples import HARMLESS, RAW
from tests.web.conftest import log_in, start_run, steady, wait_until_finished

from cliffwatch.journal import Event, EventLog, EventType, files
from cliffwatch.model.run_state import COOLING, MEANINGS, RunState

#: Rectangles of the shade that a phase has.
KEEP_BANDS = """
window.bands = [];
const rectangle = CanvasRenderingContext2D.prototype.fillRect;
CanvasRenderingContext2D.prototype.fillRect = function (left, top, width, height) {
  if (/rgba\\(40, 70, 110|rgba\\(160, 190, 230/.test(this.fillStyle)) window.bands.push([left, width]);
  return rectangle.call(this, left, top, width, height);
};
"""


def test_no_event_is_a_name_of_the_journal_and_an_alert_is_its_summary_and_its_description(
    page: Page, service: Service
) -> None:
    run_id = start_run(service, steady("worded", "1h", "10s", time="virtual"))
    wait_until_finished(service, run_id)
    log = EventLog(service.state_directory / "runs" / run_id)
    for (kind, name), detail in HARMLESS.items():
        log.append(Event(time.time(), EventType(kind), name, detail))
    words = {"summary": "The queue is full.", "description": "Writes wait for the drive."}
    about = {"status": "firing", "labels": {"run_id": run_id}, **words}
    log.append(Event(time.time(), EventType.ALERT, "QueueFull", about))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#findings")).to_contain_text("QueueFull: The queue is full. Writes wait for the drive.")
    lines = page.locator("#events li span").all_inner_texts()
    assert len(lines) > 20
    assert [line for line in lines if RAW.search(line.replace("windows.jsonl", ""))] == []


def test_the_sentence_beside_the_state_follows_it_and_what_was_to_come_goes_with_the_run(
    page: Page, service: Service
) -> None:
    workload = steady("followed", "2s")
    workload["phases"] = {"baseline": "2s", "soak": "2s", "cool_down": "4s"}
    run_id = start_run(service, workload)
    service.wait_for(run_id, "running")
    log_in(page, service, f"/runs/{run_id}")
    meaning, state = page.locator("#meaning"), page.locator("#state")
    expect(meaning).to_have_text(MEANINGS[RunState.RUNNING])
    expect(page.locator("#no-findings")).to_contain_text("are listed here as they are raised")
    expect(state).to_have_text("running, cool-down")
    expect(meaning).to_have_text(COOLING)
    expect(page.locator("#tile-left")).to_have_text("0:00:00")
    expect(page.locator("#verdict .badge")).to_be_visible()
    expect(meaning).to_be_empty()
    expect(page.locator("#no-findings")).to_have_text("No findings or alerts.")
    page.reload()
    expect(page.locator("#no-findings")).to_have_text("No findings or alerts.")


def test_a_load_that_was_moved_has_each_phase_once_as_in_the_report(page: Page, service: Service) -> None:
    workload = steady("moved", "1h", "10s", time="virtual")
    workload["phases"] = {"warm_up": "30m", "baseline": "30m", "soak": "1h", "cool_down": "10s"}
    run_id = start_run(service, workload)
    wait_until_finished(service, run_id)
    # Its journal as a worker leaves it whose engine was a window late: the phase that began is recorded again.
    journal = service.state_directory / "runs" / run_id / files.EVENTS
    lines = []
    for line in journal.read_bytes().splitlines(keepends=True):
        event = json.loads(line)
        if event["type"] == "phase" and event["name"] == "warm_up":
            early = {name: event["detail"][name] - 10 for name in ("start", "end")}
            lines.append(rewritten(line, detail=event["detail"] | early))
        lines.append(line)
    journal.write_bytes(b"".join(lines))
    page.add_init_script(KEEP_BANDS)
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#live")).to_have_attribute("data-ready", "true")
    expect(page.locator("#latency-chart canvas")).to_be_visible()
    on_page = page.evaluate("window.bands")
    shown = page.evaluate("fetch(location.pathname + '/series').then(async (answer) => (await answer.json()).phases)")
    assert [name for name, _, _ in shown] == ["prepare", "warm_up", "baseline", "soak", "cool_down"]
    page.goto(f"/runs/{run_id}/report")
    reported = page.evaluate("JSON.parse(document.getElementById('report-data').textContent).phases")
    # The report is of the journal before; until when it prepared is another line there.
    assert [[name, round(start), round(end)] for name, start, end in shown][1:] == [
        [name, round(start), round(end)] for name, start, end in reported
    ][1:]
    # In both charts: what is shaded is the baseline alone, as in the report.
    assert len({(round(left), round(width)) for left, width in on_page}) == 1


def test_the_phases_are_named_on_the_charts_and_where_the_pointer_is(page: Page, service: Service) -> None:
    workload = steady("named", "1h", "10s", time="virtual")
    workload["phases"] = {"warm_up": "30m", "baseline": "30m", "soak": "1h"}
    run_id = start_run(service, workload)
    wait_until_finished(service, run_id)
    page.add_init_script(KEEP_WRITTEN)
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#latency-chart canvas")).to_be_visible()
    written = dict(page.evaluate("[...window.written]"))
    # Each stands in its band, not before it.
    assert [written.get(name) for name in ("warm-up", "baseline", "soak")] == ["left", "left", "left"]
    area = page.locator("#latency-chart .u-over").bounding_box()
    assert area is not None
    for share, name in ((0.1, "warm-up"), (0.9, "soak")):
        page.mouse.move(area["x"] + share * area["width"], area["y"] + area["height"] / 2)
        expect(page.locator("#readout")).to_contain_text(re.compile(rf"elapsed \({name}\)"))
