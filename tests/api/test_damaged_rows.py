"""What a journal or a row holds that no answer could: it is passed over or shown without; lists and starts go on."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update
from testkit import journals
from tests.api.harness import ORDER, Api, serving

from cliffwatch.journal import EventLog, EventType, JournalReader, files
from cliffwatch.journal.events import Event
from cliffwatch.model.settings import Settings
from cliffwatch.store.models import BaseRow, FiringRow, RunRow

CRON = {"kind": "cron", "expression": "0 2 * * sat", "time_zone": "Europe/Berlin"}
_EVENTS = (
    '{"at":1790000010,"type":"finding","name":"huge","detail":{"ratio":1e999}}',
    '{"at":1790000011,"type":"finding","name":"none","detail":{"ratio":NaN,"list":[-Infinity,1]}}',
    '{"at":1790000012,"type":"finding","name":"half \\ud800 of it","detail":{"text":"a \\u0000 in it"}}',
    '{"at":1e999,"type":"finding","name":"when","detail":{}}',
    '{"at":' + "9" * 400 + ',"type":"finding","name":"when","detail":{}}',
    '{"at":1790000013,"type":"note","name":"deep","detail":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
    '{"at":1790000014,"type":"state","name":"running","detail":{"load_start":1e999,"load_stop":[]}}',
    '{"at":1790000015,"type":"finding","name":"whole","detail":{"ratio":40.0}}',
)


def _damaged(runs: Path) -> Path:
    directory = journals.queue(runs, "one")
    journals.start(directory)
    journals.measure(directory, 2)
    with (directory / files.EVENTS).open("a") as events:
        events.write("".join(f"{line}\n" for line in _EVENTS))
    first, second = (directory / files.WINDOWS).read_bytes().splitlines(keepends=True)
    gauges = json.loads(second)["gauges"] | {"idle": float("nan"), "busy": 0.5}
    third = b'{"seq":2,"start":null,"end":5,"phase":"soak","counters":{},"gauges":{},"latency":{}}\n'
    (directory / files.WINDOWS).write_bytes(first + journals.rewritten(second, gauges=gauges) + third)
    return directory


def test_numbers_that_are_none_break_no_list_of_a_run(settings: Settings) -> None:
    directory = _damaged(settings.runs_directory)
    with serving(settings) as api:
        events = _strict(api, "/runs/one/events")
        found = {event["name"]: event["detail"] for event in events["items"]}
        assert (found["huge"], found["none"]) == ({"ratio": None}, {"ratio": None, "list": [None, 1]})
        assert found["half \N{REPLACEMENT CHARACTER} of it"] == {"text": "a \N{REPLACEMENT CHARACTER} in it"}
        assert found["whole"] == {"ratio": 40.0}
        assert ("when" in found, "deep" in found) == (False, False)
        windows = _strict(api, "/runs/one/windows")["items"]
        assert [window["gauges"].get("busy") for window in windows] == [None, 0.5]
        assert "idle" not in windows[1]["gauges"]
        assert len(_strict(api, "/findings")["items"]) == 4
        assert _strict(api, "/runs")["items"][0]["state"] == "running"
    reader = JournalReader(directory)
    list(reader.events())
    list(reader.windows())
    places = {(fault.file, fault.line) for fault in reader.faults}
    first = next(stored.id for stored in reader.events() if stored.event.name == "huge")
    assert {(files.EVENTS, first + number) for number in (0, 1, 3, 4, 5)} | {
        (files.WINDOWS, 2),
        (files.WINDOWS, 3),
    } <= places


def test_non_finite_values_are_written_to_the_journal_as_null(tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    EventLog(directory).append(Event(1.0, EventType.NOTE, "odd", {"ratio": float("inf"), "list": [float("nan")]}))
    written = (directory / files.EVENTS).read_text().splitlines()[-1]
    assert json.loads(written, parse_constant=pytest.fail)["detail"] == {"ratio": None, "list": [None]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (files.EVENTS, '{"at":1,"type":"state","name":"queued","detail":{"replaced_durations":[7]}}\n'),
        (files.ORDER, "{" * 200_000),
        (files.ORDER, '{"run_id": {}, "workload": []}'),
        (files.EVENTS, "[]\n7\nnull\n"),
    ],
    ids=["detail", "deep", "kinds", "no events"],
)
def test_a_journal_that_cannot_be_read_stops_no_start(settings: Settings, name: str, content: str) -> None:
    journals.queue(settings.runs_directory, "whole")
    (journals.queue(settings.runs_directory, "broken") / name).write_text(content)
    with serving(settings) as api:
        assert [run["id"] for run in _strict(api, "/runs")["items"]] == ["whole"]
        assert api.client.get("/readyz").status_code == 200


def test_damaged_rows_break_no_list(settings: Settings) -> None:
    journals.queue(settings.runs_directory, "one")
    with serving(settings) as api:
        count = len(_strict(api, "/workloads")["items"])
        with api.services.database.session() as session:
            session.execute(text("UPDATE workloads SET document = '{' WHERE name = (SELECT min(name) FROM workloads)"))
            session.execute(text("UPDATE runs SET reasons = '}', created_at = 1e300"))
            session.execute(text("UPDATE tokens SET scope = 'root', created_at = -1e300 WHERE name = 'operate'"))
        assert len(_strict(api, "/workloads")["items"]) == count
        assert [run["reasons"] for run in _strict(api, "/runs")["items"]] == [[]]
        assert len(_strict(api, "/tokens", "admin")["items"]) == 3
        assert api.get("/runs", scope="operate").status_code == 401


@pytest.mark.parametrize("column", ["state", "verdict", "target"])
def test_a_row_that_says_nothing_known_hides_no_other_and_is_made_anew(settings: Settings, column: str) -> None:
    for run_id in ("one", "two"):
        journals.queue(settings.runs_directory, run_id)
    with serving(settings) as api:
        with api.services.database.session() as session:
            session.execute(update(RunRow).where(RunRow.id == "one").values({column: "nonsense"}))
        assert [run["id"] for run in _strict(api, "/runs")["items"]] == ["two"]
        alone = api.get("/runs/one")
        assert (alone.status_code, alone.json()["code"]) == (503, "database_unavailable")
        assert "cliffwatch index rebuild" in alone.json()["detail"]
        # Other runs are planned, and what names this one is shown without what is not known of it.
        assert api.post("/runs/plan", ORDER).status_code == 200
        made = api.post("/schedules", {"name": "weekly", **ORDER, "trigger": CRON}).json()
        with api.services.database.session() as session:
            session.add(FiringRow(schedule_id=made["id"], due_at=1.0, outcome="queued", run_id="one", detail=""))
        assert api.get(f"/schedules/{made['id']}").json()["last_firing"]["run_state"] is None
        # As the reconciler does of each run that is not over.
        api.index("one")
        assert api.get("/runs/one").json()["state"] == "queued"
        with api.services.database.session() as session:
            session.execute(update(RunRow).where(RunRow.id == "one").values({column: "nonsense"}))
    with serving(settings) as api:
        listed = {run["id"]: (run["state"], run["verdict"]) for run in _strict(api, "/runs")["items"]}
    assert listed == {"one": ("queued", None), "two": ("queued", None)}


def _strict(api: Api, path: str, scope: str = "read") -> dict[str, Any]:
    """The answer, where it is JSON as everybody but Python reads it."""
    answer = api.get(path, scope=scope)
    assert answer.status_code == 200, answer.text
    body = json.loads(answer.text, parse_constant=pytest.fail)
    assert isinstance(body, dict)
    return body


#: What no column should hold, as SQL; a column of text takes numbers as text.
BAD = {
    "text": "'soon'",
    "bytes": "x'ff00'",
    "mojibake": "cast(x'ff41' AS text)",
    "far": "1e300",
    "object": '\'{"a":{"b":1e999}}\'',
    "list": "'[[1e999]]'",
}
LISTS = (
    "/runs",
    "/runs?state=queued",
    "/workloads",
    "/schedules",
    "/findings",
    "/discovery/workers",
    "/discovery/targets",
    "/tokens",
)
PAGES = ("/runs", "/schedules", "/metrics")


def _columns() -> list[tuple[str, str]]:
    tables = BaseRow.metadata.tables
    chosen = ("runs", "workloads", "schedules", "schedule_firings", "findings", "tokens")
    return [(name, column.name) for name in chosen for column in tables[name].columns]


@contextmanager
def another_program(api: Api) -> Iterator[sqlite3.Connection]:
    """It heeds none of the rules that the service's own connections keep."""
    file = api.services.database.engine.url.database
    assert file is not None
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("bad", BAD)
def test_nothing_that_a_row_can_hold_breaks_a_list(settings: Settings, bad: str) -> None:
    directory = journals.queue(settings.runs_directory, "one")
    journals.start(directory)
    journals.find(directory)
    broken = []
    with serving(settings) as api, another_program(api) as other:
        token = api.tokens["admin"]
        given = {"Authorization": f"Bearer {token}", "Cookie": f"cliffwatch_token={token}"}
        made = api.post("/schedules", {"name": "weekly", **ORDER, "trigger": CRON})
        assert made.status_code == 201, made.text
        with api.services.database.session() as session:
            session.add(FiringRow(schedule_id=made.json()["id"], due_at=1.0, outcome="missed", detail=""))
        for table, column in _columns():
            if (table, column) == ("tokens", "hash"):
                continue  # no token would be accepted any more
            kept = other.execute(f"SELECT rowid, {column} FROM {table}").fetchall()  # noqa: S608  our own names
            # Of one row, since some must differ.
            one = f"WHERE rowid = (SELECT min(rowid) FROM {table})"  # noqa: S608
            try:
                other.execute(f"UPDATE {table} SET {column} = {BAD[bad]} {one}")  # noqa: S608
            except sqlite3.IntegrityError:
                continue  # a key that is a whole number takes nothing else
            broken += [
                f"{table}.{column}: {path} {answer.status_code}"
                for path in (*(f"/api/v1{path}" for path in LISTS), *PAGES)
                if (answer := api.client.get(path, headers=given)).status_code >= 500
            ]
            for row, value in kept:
                other.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))  # noqa: S608
    assert broken == []
