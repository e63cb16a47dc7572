"""Annotations of runs, runs by label, the request of a run, and which runs can be deleted, by hand and by age."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session
from testkit import journals
from tests.api.harness import ORDER, WORKLOAD, Api, serving

from cliffwatch.app.index import rebuild
from cliffwatch.app.library import RunLibrary
from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.journal import JournalReader, files
from cliffwatch.journal.event_text import event_text
from cliffwatch.journal.events import ANNOTATED
from cliffwatch.model.annotations import LABELS_LIMIT
from cliffwatch.model.settings import Settings
from cliffwatch.report.process import ReportOutcome

SEEN = {"labels": {"release": "26.1"}, "note": "new firmware", "pinned": True}


def over(api: Api, run_id: str, at: float = journals.START) -> Path:
    directory = journals.queue(api.settings.runs_directory, run_id, at=at)
    journals.start(directory, at + 1)
    journals.finish(directory, at=at + 65)
    api.index(run_id)
    return directory


def annotate(api: Api, run_id: str, **change: Any) -> Any:
    return api.call("PATCH", f"/runs/{run_id}", change, "operate")


def delete(api: Api, run_id: str) -> Any:
    return api.call("DELETE", f"/runs/{run_id}", scope="operate")


def shown(api: Api, run_id: str) -> dict[str, Any]:
    body = api.get(f"/runs/{run_id}").json()
    return {name: body[name] for name in SEEN}


def listed(api: Api, **query: Any) -> list[str]:
    return [run["id"] for run in api.get("/runs", params=query).json()["items"]]


def test_annotations_are_changed_one_by_one_and_survive_the_index(api: Api) -> None:
    directory = over(api, "one")
    assert shown(api, "one") == {"labels": {}, "note": "", "pinned": False}
    assert annotate(api, "one", **SEEN).json()["labels"] == SEEN["labels"]
    assert annotate(api, "one", labels={"drive": "A\N{GREEK SMALL LETTER BETA} 1", "release": None}).status_code == 200
    after = SEEN | {"labels": {"drive": "A\N{GREEK SMALL LETTER BETA} 1"}}
    assert shown(api, "one") == after
    annotate(api, "one", note="new firmware")
    events = [stored.event for stored in JournalReader(directory).events() if stored.event.name == ANNOTATED]
    assert len(events) == 2, "what changes nothing is no event"
    assert events[0].detail == SEEN | {"by": "operate", "changed": ["labels.release", "note", "pinned"]}
    assert events[1].detail == after | {"by": "operate", "changed": ["labels.drive", "labels.release"]}
    sentences = [event_text("note", ANNOTATED, event.detail) for event in events]
    assert sentences == [
        "operate annotated the run: label release=26.1; pinned; note: new firmware",
        "operate annotated the run: label drive=A\N{GREEK SMALL LETTER BETA} 1; label release removed",
    ]
    with api.services.database.session() as session:
        rebuild(session, api.settings.runs_directory)
    assert shown(api, "one") == after
    assert annotate(api, "one", note="", pinned=False).json()["labels"] == after["labels"]
    assert shown(api, "one") == after | {"note": "", "pinned": False}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"labels": {"Release": "1"}}, "labels"),
        ({"labels": {"release": ""}}, "labels.release"),
        ({"labels": {"release": "a\nb"}}, "labels.release"),
        ({"labels": {"release": "x" * 101}}, "labels.release"),
        ({"labels": {"release": " x"}}, "labels.release"),
        ({"labels": {f"l{number}": "x" for number in range(LABELS_LIMIT + 1)}}, "labels"),
        ({"note": "x" * 4001}, "note"),
        ({"note": "a\0b"}, "note"),
        ({"pinned": "perhaps"}, "pinned"),
        ({"notes": "x"}, "notes"),
    ],
)
def test_a_wrong_annotation_is_named_and_changes_nothing(api: Api, change: dict[str, Any], field: str) -> None:
    over(api, "one")
    answer = annotate(api, "one", **change)
    assert answer.status_code == 422
    assert any(field in fault["field"] for fault in answer.json()["errors"]), answer.json()
    assert shown(api, "one") == {"labels": {}, "note": "", "pinned": False}
    assert annotate(api, "none", pinned=True).status_code == 404
    assert api.call("PATCH", "/runs/one", {}, "read").status_code == 403


def test_runs_are_listed_by_all_of_their_labels(api: Api) -> None:
    for run_id, labels in (
        ("both", {"release": "26.1", "drive": "A"}),
        ("first", {"release": "26.1"}),
        # Neither another case, nor a value that holds what a label looks like, nor a longer one.
        ("other", {"release": "26.10", "drive": "a", "said": '"drive":"A"', "x-release": "26.1", "note": '"gone":'}),
    ):
        over(api, run_id)
        annotate(api, run_id, labels=labels)
    assert sorted(listed(api, label="release=26.1")) == ["both", "first"]
    assert listed(api, label=["release=26.1", "drive=A"]) == ["both"]
    assert listed(api, label="drive=A") == ["both"]
    assert listed(api, label="release=26.1", verdict="failed") == []
    assert sorted(listed(api, label="drive")) == ["both", "other"]
    assert listed(api, label=["drive", "said"]) == ["other"]
    assert listed(api, label="gone") == listed(api, label="elease") == []
    for wrong in ("=26.1", "release=", "Release=1", f"release={'x' * 101}"):
        answer = api.get("/runs", params={"label": ["drive=A", wrong]})
        (fault,) = answer.json()["errors"]
        assert (answer.status_code, fault["field"]) == (422, "label")
        assert f"{wrong[:60]!r} is not a label; write name=value, such as release=26.1" in fault["message"]


def test_a_run_begins_with_the_labels_of_its_request(api: Api) -> None:
    labelled = ORDER | {"labels": {"release": "26.1"}}
    run = api.put("/runs/labelled", labelled).json()
    assert run["labels"] == {"release": "26.1"}
    assert api.put("/runs/labelled", labelled).status_code == 200
    assert api.put("/runs/labelled", ORDER).status_code == 409
    annotate(api, "labelled", labels={"release": "26.2"})
    asked = api.get("/runs/labelled/request").json()
    assert asked["labels"] == {"release": "26.2"}
    assert asked["target"] == ORDER["target"]
    again = api.post("/runs", asked).json()
    assert again["labels"] == {"release": "26.2"}
    first, second = (JournalReader(Path(each["directory"])).document(files.ORDER) for each in (run, again))
    assert first["workload"] == second["workload"]


def test_a_run_again_is_of_the_version_and_the_durations_that_it_had(api: Api) -> None:
    api.put("/workloads/steady", WORKLOAD)
    api.put("/runs/short", {"workload": "steady", "target": ORDER["target"], "durations": {"soak": "30s"}})
    api.put("/workloads/steady", WORKLOAD | {"window": "2s"})
    asked = api.get("/runs/short/request").json()
    assert asked["workload"] == "steady@1"
    assert {name: text for name, text in asked["durations"].items() if text is not None} == {"soak": "30s"}
    again = api.post("/runs", asked).json()
    assert again["workload"] == {"name": "steady", "version": 1}
    assert JournalReader(Path(again["directory"])).document(files.ORDER)["workload"]["phases"]["soak"] == "30s"


def test_a_drill_is_repeated_by_a_drill_and_a_label_of_the_users_own_is_none(api: Api) -> None:
    api.put("/runs/labelled", ORDER | {"labels": {"drill": "over-provisioned"}})
    refused = api.get("/runs/labelled/request")
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
    assert "`cliffwatch drill --variant over-provisioned`" in refused.json()["detail"]
    annotate(api, "labelled", labels={"drill": "failover to b"})
    assert api.get("/runs/labelled/request").json()["labels"] == {"drill": "failover to b"}


def test_the_request_of_a_device_run_is_returned_without_its_confirmation(api: Api) -> None:
    directory = over(api, "device")
    order = JournalReader(directory).document(files.ORDER)
    order["target"] = {"kind": "device", "identity": "S1", "confirmation": "erase S1"}
    durable.write_json_durably(directory / files.ORDER, order)
    assert api.get("/runs/device/request").json()["target"]["confirmation"] == ""


def test_a_finished_run_is_deleted_and_nothing_of_it_is_left(api: Api) -> None:
    directory = over(api, "one")
    journals.find(directory)
    api.index("one")
    assert api.call("DELETE", "/runs/one", scope="read").status_code == 403
    assert delete(api, "one").status_code == 204
    assert list(api.settings.runs_directory.iterdir()) == []
    assert (listed(api), delete(api, "one").status_code) == ([], 404)
    assert api.get("/findings").json()["items"] == []
    # Its id is free again.
    assert api.put("/runs/one", ORDER).status_code == 201


def test_pinned_queued_and_ending_runs_are_not_deleted(api: Api) -> None:
    over(api, "pinned")
    annotate(api, "pinned", pinned=True)
    refused = delete(api, "pinned").json()
    assert (refused["code"], "is pinned; unpin it first" in refused["detail"]) == ("wrong_state", True)
    api.put("/runs/waits", ORDER)
    assert delete(api, "waits").json()["code"] == "wrong_state"
    ending = over(api, "ending")
    with (ending / files.WORKER_LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert delete(api, "ending").json()["code"] == "wrong_state"
    assert sorted(listed(api)) == ["ending", "pinned", "waits"]
    annotate(api, "pinned", pinned=False)
    assert [delete(api, run_id).status_code for run_id in ("pinned", "ending")] == [204, 204]


def test_a_run_whose_process_hangs_stays_because_others_wait_for_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    over(api, "hung")
    with monkeypatch.context() as patch:
        # A process that waits in the kernel for a drive: tests/app/test_hung_targets.py has real ones.
        patch.setattr("cliffwatch.app.library.hung_processes", lambda _: [ProcessIdentity(7, 1, "boot")])
        answer = delete(api, "hung").json()
    assert (answer["code"], "process 7 of run hung" in answer["detail"]) == ("wrong_state", True)
    assert delete(api, "hung").status_code == 204


def test_a_deletion_that_was_cut_short_is_finished(settings: Settings) -> None:
    with serving(settings) as api:
        directory = over(api, "one")
        directory.rename(directory.with_name(".deleted-one-0000"))
        # Of a run of that name that was deleted earlier, and is there again.
        over(api, "again")
        (settings.runs_directory / ".deleted-again-0000").mkdir()
    with serving(settings) as api:
        assert [path.name for path in settings.runs_directory.iterdir()] == ["again"]
        assert listed(api) == ["again"]


def test_a_deletion_that_fails_leaves_the_run_as_it_was(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = over(api, "one")
    with monkeypatch.context() as patch:
        patch.setattr("cliffwatch.app.library.durable.sync_directory", _fail)
        assert delete(api, "one").status_code == 503
    assert (directory / files.EVENTS).exists()
    assert shown(api, "one")["pinned"] is False
    with monkeypatch.context() as patch:
        # A database that goes away between the rename and the deletion of the row.
        patch.setattr("cliffwatch.app.library.durable.sync_directory", lambda _: patch.setattr(Session, "get", _fail))
        assert delete(api, "one").status_code == 503
    assert (directory / files.EVENTS).exists()
    assert delete(api, "one").status_code == 204
    assert (listed(api), list(api.settings.runs_directory.iterdir())) == ([], [])


def test_the_pin_of_a_run_with_a_damaged_journal_is_read_from_the_index(api: Api) -> None:
    for run_id in ("damaged", "pinned"):
        directory = over(api, run_id)
        annotate(api, run_id, pinned=run_id == "pinned")
        (directory / files.EVENTS).write_bytes(b"")
    assert delete(api, "pinned").json()["code"] == "wrong_state"
    assert delete(api, "damaged").status_code == 204


def test_a_pinned_run_whose_pinning_line_is_damaged_stays(api: Api) -> None:
    directory = over(api, "one")
    annotate(api, "one", pinned=True)
    log = directory / files.EVENTS
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line.replace(b'"pinned"', b'"planned"') for line in lines))
    assert sum(b'"planned"' in line for line in log.read_bytes().splitlines()) == 1
    assert delete(api, "one").json()["code"] == "wrong_state"
    annotate(api, "one", pinned=False)
    assert delete(api, "one").status_code == 204


def test_a_run_is_not_annotated_while_it_is_deleted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    over(api, "one")
    answers: list[int] = []
    pin = threading.Thread(target=lambda: answers.append(annotate(api, "one", pinned=True).status_code))
    remove_row = RunLibrary._delete_row

    def remove_row_late(library: RunLibrary, run_id: str) -> None:
        pin.start()
        pin.join(0.5)
        assert answers == [], "it waits until the run is gone"
        remove_row(library, run_id)

    with monkeypatch.context() as patch:
        patch.setattr(RunLibrary, "_delete_row", remove_row_late)
        assert delete(api, "one").status_code == 204
    pin.join(30)
    assert answers == [404]
    assert list(api.settings.runs_directory.iterdir()) == []


def test_a_report_does_not_bring_a_deleted_run_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = over(api, "one")

    def deleted_meanwhile(*_: object) -> ReportOutcome:
        assert delete(api, "one").status_code == 204
        return ReportOutcome(None, "it is gone")

    with monkeypatch.context() as patch:
        patch.setattr("cliffwatch.app.reports.make_report", deleted_meanwhile)
        assert api.post("/runs/one/report").status_code == 404
    assert not directory.exists()


def test_no_report_is_begun_of_a_run_that_was_deleted_while_others_were_made(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = over(api, "one")

    @contextmanager
    def others_first(_: Path) -> Iterator[None]:
        assert delete(api, "one").status_code == 204
        yield

    with monkeypatch.context() as patch:
        patch.setattr("cliffwatch.app.reports.one_at_a_time", others_first)
        patch.setattr("cliffwatch.app.reports.make_report", _fail)
        assert api.post("/runs/one/report").status_code == 404
    assert not directory.exists()


def test_a_picture_of_a_run_that_is_deleted_meanwhile_is_not_found(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = over(api, "one")
    (directory / files.REPORT_JSON).write_text("{}")

    def drawn(*_: object) -> bytes:
        assert delete(api, "one").status_code == 204
        raise Problem(Code.INTERNAL, "the picture cannot be drawn: report.json is not there")

    monkeypatch.setattr("cliffwatch.report.picture.process._drawn", drawn)
    answer = api.get("/runs/one/report.png")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_run_whose_journal_was_taken_away_can_be_deleted(api: Api) -> None:
    directory = over(api, "one")
    directory.rename(api.settings.state_directory / "taken-away")
    assert api.post("/runs/one/report").status_code == 404
    assert not directory.exists()
    assert delete(api, "one").status_code == 204
    assert listed(api) == []


def _fail(*_: object) -> None:
    raise OSError(5, "input/output error")
