"""Reports on demand: of a run that has none, of one that goes on, and the verdict that comes with them."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from testkit import journals
from testkit.waiting import PATIENCE_SECONDS, wait_until
from tests.api.harness import Api

from cliffwatch.app.reports import WAITING_LIMIT, ReportService
from cliffwatch.base import durable, locks
from cliffwatch.journal import EventLog, EventType, JournalReader, files
from cliffwatch.journal.conclusion import unanalysed
from cliffwatch.journal.events import Event
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState
from cliffwatch.report.picture import process as picture_process
from cliffwatch.report.process import make_report

#: How many answer requests, in threads, at once.
THREADS = 40


def measured(api: Api, windows: int = 60) -> Path:
    directory = journals.queue(api.settings.runs_directory, "one")
    journals.start(directory)
    journals.measure(directory, windows)
    return directory


def test_a_report_that_was_missing_is_made_and_mends_the_verdict(api: Api) -> None:
    directory = measured(api)
    log = EventLog(directory)
    log.append(Event(journals.START + 64, EventType.ENGINE, "load_ended", {"how": "completed", "message": ""}))
    change_state(log, RunState.REPORTING, journals.START + 65)
    change_state(log, RunState.FINISHED, journals.START + 66, unanalysed(directory, "it was killed").detail())
    api.index("one")
    assert api.get("/runs/one").json()["verdict"] == "invalid"
    assert api.get("/runs/one/report").json()["code"] == "report_not_ready"
    assert api.post("/runs/one/report", scope="read").status_code == 403
    made = api.post("/runs/one/report").json()
    assert (made["verdict"], made["is_provisional"]) == ("pass", False)
    run = api.get("/runs/one").json()
    assert (run["state"], run["verdict"], run["reasons"]) == ("finished", "pass", made["reasons"])
    assert api.get("/runs/one/report").json()["verdict"]["name"] == "pass"
    assert "<html" in api.get("/runs/one/report.html").text


@pytest.mark.parametrize("left", ["nothing", "a directory", "a FIFO", "nothing, and the report is damaged"])
def test_a_report_is_not_replaced_by_one_without_the_windows_it_was_made_of(api: Api, left: str) -> None:
    directory = measured(api)
    make_report(directory)
    report, windows = directory / files.REPORT_JSON, directory / files.WINDOWS
    if "damaged" in left:
        report.write_text("{")
    before = report.read_bytes()
    windows.rename(directory / "moved")
    if left == "a directory":
        windows.mkdir()
    elif left == "a FIFO":
        os.mkfifo(windows)
    for state in (RunState.STOPPING, RunState.REPORTING, RunState.FINISHED):
        change_state(EventLog(directory), state, journals.START + 66, {"verdict": "pass", "reasons": []})
    api.index("one")
    refused = api.post("/runs/one/report")
    assert (refused.status_code, refused.json()["code"]) == (500, "journal_unreadable")
    said = "is gone" if left.startswith("nothing") else "is no file"
    assert f"{windows} {said}, and the report that is there was made from it; put it back" in refused.json()["detail"]
    assert report.read_bytes() == before


@pytest.mark.parametrize("is_over", [False, True])
def test_the_report_of_a_run_that_measured_nothing_is_made_again(api: Api, is_over: bool) -> None:
    directory = journals.queue(api.settings.runs_directory, "one")
    journals.start(directory)
    assert not (directory / files.WINDOWS).exists()
    for state in (RunState.REPORTING, RunState.FINISHED) if is_over else ():
        change_state(EventLog(directory), state, journals.START + 2, {"verdict": "failed", "reasons": []})
    api.index("one")
    for _ in range(2):
        made = api.post("/runs/one/report").raise_for_status().json()
        assert made["is_provisional"] is not is_over


def test_a_report_that_is_made_anew_changes_the_figures_of_the_list_at_once(api: Api) -> None:
    directory = measured(api)
    # As an earlier version of the program read it off the same windows.
    make_report(directory)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    right = report["throughput"]["load"]["bytes_per_second"]
    report["throughput"]["load"]["bytes_per_second"] = right * 3
    durable.write_json_durably(directory / files.REPORT_JSON, report)
    journals.finish(directory)
    api.index("one")
    assert api.get("/runs/one").json()["figures"]["bytes_per_second"] == right * 3
    api.post("/runs/one/report")
    assert api.get("/runs/one").json()["figures"]["bytes_per_second"] == right


def test_a_run_that_goes_on_has_a_report_of_what_there_is_so_far(api: Api) -> None:
    directory = measured(api, windows=5)
    api.index("one")
    made = api.post("/runs/one/report").json()
    assert (made["verdict"], made["is_provisional"]) == ("invalid", True)
    assert "still in progress" in made["reasons"][0]
    assert api.get("/runs/one/report").json()["coverage"]["measured_seconds"] == 5
    assert not (directory / files.REPORT_JSON).exists()
    assert api.get("/runs/one").json()["report"] is None
    # Once it is over, only its own report counts.
    journals.finish(directory)
    api.index("one")
    assert api.get("/runs/one/report").status_code == 409
    assert [stored.event.name for stored in JournalReader(directory).events()][-1] == "finished"


@pytest.mark.parametrize(
    ("method", "path", "place"), [("POST", "report", "reports"), ("GET", "report.png", "matplotlib")]
)
def test_requests_that_wait_for_reports_do_not_block_others(
    method: str, path: str, place: str, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each who waits holds a thread, of those that answer all requests."""
    directory = measured(api, windows=5)
    journals.finish(directory)
    api.index("one")
    make_report(directory)
    monkeypatch.setattr(picture_process, "_drawn", lambda directory, cache: b"drawn")
    cache = api.settings.state_directory / "cache" / place
    cache.mkdir(parents=True, exist_ok=True)
    held = os.open(cache, os.O_RDONLY | os.O_DIRECTORY)
    locks.take(held, cache)
    count = WAITING_LIMIT + 3
    with ThreadPoolExecutor(count) as askers:
        asked = [
            askers.submit(api.call, method, f"/runs/one/{path}", scope="operate", timeout=PATIENCE_SECONDS)
            for _ in range(count)
        ]
        try:
            wait_until(lambda: sum(each.done() for each in asked) == 3, "answers to those who are too many", 60)
        finally:
            os.close(held)
        answers = [each.result() for each in asked]
    assert Counter(answer.status_code for answer in answers) == {200: WAITING_LIMIT, 503: 3}
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert refused.json()["code"] == "not_ready"
    assert int(refused.headers["Retry-After"]) > 0


def test_health_is_answered_while_all_threads_are_taken(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(api, windows=1)
    api.index("one")
    taken, over = threading.Semaphore(0), threading.Event()

    def busy(service: ReportService, run_id: str, name: str) -> bytes:
        taken.release()
        assert over.wait(60)
        return b"{}"

    monkeypatch.setattr(ReportService, "read", busy)
    with ThreadPoolExecutor(THREADS) as askers:
        asked = [askers.submit(api.get, "/runs/one/report", timeout=90) for _ in range(THREADS)]
        try:
            assert all(taken.acquire(timeout=30) for _ in range(THREADS))
            for path in ("/healthz", "/readyz"):
                assert api.client.get(path, timeout=30).status_code == 200
        finally:
            over.set()
        assert {each.result().status_code for each in asked} == {200}


@pytest.mark.parametrize(
    "put", [Path.mkdir, lambda path: path.symlink_to(path), os.mkfifo], ids=["directory", "link to itself", "pipe"]
)
def test_an_unreadable_report_file_is_named_in_the_error(api: Api, put: Callable[[Path], object]) -> None:
    directory = measured(api)
    journals.finish(directory)
    api.index("one")
    for name, path in (("report", directory / files.REPORT_JSON), ("report.html", directory / files.REPORT_HTML)):
        put(path)
        answer = api.get(f"/runs/one/{name}")
        assert (answer.status_code, answer.json()["code"]) == (500, "journal_unreadable")
        assert f"{path} cannot be read" in answer.json()["detail"]
        assert "`cliffwatch run report one` makes it anew" in answer.json()["detail"]
    picture = api.get("/runs/one/report.png")
    assert picture.status_code == 200 or picture.json()["code"] == "journal_unreadable"


def test_a_report_that_holds_nothing_breaks_no_page(api: Api) -> None:
    directory = measured(api)
    journals.finish(directory)
    (directory / files.REPORT_JSON).write_text("null")
    api.index("one")
    api.client.post("/login", data={"token": api.tokens["read"]})
    now = api.client.get("/runs/one/now")
    assert (now.status_code, now.json()["limits"]) == (200, [])
