"""Hundreds of journals without an index: the service is ready at once, and indexes behind."""

import os
import shutil
import time
from pathlib import Path

import pytest
from sqlalchemy.orm import Session
from testkit import journals
from testkit.waiting import wait_until
from tests.api.harness import serving

from cliffwatch.app import indexer as module
from cliffwatch.app.admission import RunTurns
from cliffwatch.app.index import IndexReport, index_all
from cliffwatch.app.indexer import Indexer
from cliffwatch.base.clock import SystemClock
from cliffwatch.model.settings import read_settings
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow

COUNT = 300


def make_journals(runs: Path, count: int) -> None:
    for number in range(count):
        directory = journals.queue(runs, f"run-{number:04}", at=journals.START + number)
        journals.start(directory)
        journals.finish(directory)
        for file in directory.iterdir():
            os.utime(file, (number, number))


def indexed(database: Database) -> set[str]:
    with database.snapshot() as session:
        return {row.id for row in session.query(RunRow)}


def test_live_and_newest_runs_are_indexed_first_and_the_rest_in_the_background(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    make_journals(tmp_path, 8)
    # Its worker beats, although its events are old.
    heartbeat = tmp_path / "run-0001" / "worker.json"
    heartbeat.write_text("{}")
    made = Indexer(database, tmp_path, RunTurns(), SystemClock())
    assert made.index_first().indexed == 3
    assert indexed(database) == {"run-0001", "run-0006", "run-0007"}
    shutil.rmtree(tmp_path / "run-0000")
    made.tick()
    assert len(indexed(database)) == 7


def test_an_unfinished_run_whose_row_is_to_be_made_anew_comes_first(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after the state directory was moved: the reconciler must not look for it in its former place."""
    make_journals(tmp_path / "before", 2)
    journals.start(journals.queue(tmp_path / "before", "goes-on"))
    Indexer(database, tmp_path / "before", RunTurns(), SystemClock()).index_first()
    (tmp_path / "before").rename(tmp_path / "after")
    os.utime(tmp_path / "after" / "goes-on" / "events.jsonl", (0, 0))
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    Indexer(database, tmp_path / "after", RunTurns(), SystemClock()).index_first()
    with database.snapshot() as session:
        assert session.get_one(RunRow, "goes-on").directory == str(tmp_path / "after" / "goes-on")


def test_a_journal_that_is_moved_in_is_indexed_and_a_damaged_one_is_reported_once(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    made = Indexer(database, tmp_path, RunTurns(), SystemClock())
    made.index_first()
    make_journals(tmp_path, 1)
    (tmp_path / "damaged").mkdir()
    for _ in range(3):
        made.tick()
    assert indexed(database) == {"run-0000"}
    assert caplog.text.count("the journal of run damaged is damaged") == 1


def test_a_service_is_ready_before_hundreds_of_journals_are_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read_settings(state_directory=tmp_path / "state")
    make_journals(settings.runs_directory, COUNT)
    # Slow, as thousands are: 50 of them are indexed before the service is ready.
    counted: list[int] = []

    def slowly(session: Session, paths: list[Path], anew: set[str]) -> IndexReport:
        counted.append(len(paths))
        time.sleep(0.01 * len(paths))
        return index_all(session, paths, anew)

    monkeypatch.setattr(module, "index_all", slowly)
    with serving(settings) as api:
        ready_after = sum(counted)
        assert api.client.get("/readyz").status_code == 200
        assert api.get(f"/runs/run-{COUNT - 1:04}").status_code == 200
        assert ready_after < COUNT
        wait_until(lambda: api.get("/runs/run-0000").status_code == 200, "the oldest run")
    assert counted[0] == 50
