"""Retention: which runs are deleted, when, and that no wall clock makes a run older."""

import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from testkit import journals

from cliffwatch.app.admission import RunTurns
from cliffwatch.app.index import index_run
from cliffwatch.app.library import TRASH, RunLibrary
from cliffwatch.app.retention import ANNOUNCED_SECONDS, FILE, SET_CLOCK_SECONDS, TRASH_SECONDS, Retention
from cliffwatch.journal import EventLog
from cliffwatch.journal.annotated import annotated
from cliffwatch.model.annotations import Annotations
from cliffwatch.model.settings import read_settings
from cliffwatch.store.database import Database, open_database, upgrade
from cliffwatch.store.models import RunRow

HOUR = 3600.0
MINUTE = 60.0
KEPT = 2 * HOUR


@dataclass
class MovedClock:
    """A clock of which the test moves each hand: `passed` is the time that really passed."""

    set_by: float = 0.0
    passed: float = 0.0
    booted_at: float = 0.0
    slept: float = 0.0

    def wall(self) -> float:
        return journals.START + self.passed + self.set_by

    def monotonic(self) -> float:
        return 100.0 + self.passed - self.booted_at - self.slept

    def suspended(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.passed += seconds


@dataclass
class Service:
    """A service's retention of KEPT, over restarts and boots."""

    state: Path
    database: Database
    clock: MovedClock = field(default_factory=MovedClock)
    boot: int = 0

    def __post_init__(self) -> None:
        self.start()

    def start(self, retention: str | None = "2h") -> None:
        settings = read_settings(state_directory=self.state, retention=retention)
        self.runs = settings.runs_directory
        self.runs.mkdir(exist_ok=True)
        library = RunLibrary(settings, self.database, self.clock, RunTurns())
        library.start()
        self.retention = Retention(settings, self.database, self.clock, library)

    def finish(self, run_id: str, *, pinned: bool = False) -> Path:
        directory = journals.queue(self.runs, run_id)
        journals.start(directory)
        journals.finish(directory)
        if pinned:
            EventLog(directory).append(annotated(Annotations(pinned=True), "test", self.clock.wall()))
        with self.database.session() as session:
            index_run(session, directory)
        return directory

    def pass_time(self, seconds: float, step: float = MINUTE) -> None:
        """Let time pass, and have retention look each minute."""
        end = self.clock.passed + seconds
        while self.clock.passed < end:
            self.clock.passed = min(end, self.clock.passed + step)
            self.retention.expire()

    def indexed(self) -> set[str]:
        with self.database.snapshot() as session:
            return {row.id for row in session.query(RunRow)}

    def trashed(self) -> set[str]:
        place = self.runs / TRASH
        return {path.name for path in place.iterdir()} if place.is_dir() else set()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    url = f"sqlite:///{tmp_path / 'state.sqlite3'}"
    upgrade(url)
    database = open_database(url)
    made = Service.__new__(Service)
    monkeypatch.setattr("cliffwatch.app.retention.boot_id", lambda: f"boot-{made.boot}")
    made.__init__(tmp_path, database)  # type: ignore[misc]
    yield made
    database.close()


def test_a_finished_run_is_announced_moved_to_the_trash_and_removed_a_day_later(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    directory = service.finish("old")
    service.finish("pinned", pinned=True)
    journals.start(journals.queue(service.runs, "goes-on"))
    service.retention.expire()
    service.pass_time(KEPT - ANNOUNCED_SECONDS - MINUTE)
    assert list(service.retention.announced) == []
    service.pass_time(MINUTE)
    assert list(service.retention.announced) == ["old"]
    said = (
        "1 of 2 finished runs (50 %) are deleted in an hour, older than CLIFFWATCH_RETENTION; pin what is to stay: old"
    )
    assert [record.message for record in caplog.records if "deleted in an hour" in record.message] == [said]
    service.pass_time(ANNOUNCED_SECONDS - MINUTE)
    assert directory.exists()
    service.pass_time(MINUTE)
    assert (directory.exists(), service.trashed(), service.indexed()) == (False, {"old"}, {"pinned"})
    assert "moved to" in caplog.records[-1].message
    service.pass_time(TRASH_SECONDS - MINUTE)
    assert service.trashed() == {"old"}
    service.pass_time(2 * MINUTE)
    assert service.trashed() == set()
    assert sorted(path.name for path in service.runs.iterdir()) == [TRASH, "goes-on", "pinned"]


def test_a_run_is_moved_back_from_the_trash_and_is_new_again(service: Service) -> None:
    directory = service.finish("old")
    service.pass_time(KEPT + 2 * MINUTE)
    assert service.trashed() == {"old"}
    (service.runs / TRASH / "old").rename(directory)
    with service.database.session() as session:
        index_run(session, directory)
    service.pass_time(KEPT - MINUTE)
    assert directory.exists()
    service.pass_time(2 * MINUTE)
    assert service.trashed() == {"old"}


def test_two_runs_of_one_name_are_both_in_the_trash(service: Service) -> None:
    for _ in range(2):
        service.finish("old")
        service.pass_time(KEPT + 2 * MINUTE)
    first, second = sorted(service.trashed())
    assert first == "old"
    assert second.startswith("old~")
    service.start()
    assert service.indexed() == set()


@pytest.mark.parametrize("set_by", [86400.0 * 365, -86400.0 * 365])
def test_a_clock_that_is_set_deletes_nothing_and_delays_what_is_due(
    service: Service, set_by: float, caplog: pytest.LogCaptureFixture
) -> None:
    directory = service.finish("old")
    service.retention.expire()
    service.pass_time(KEPT - MINUTE)
    service.clock.set_by = set_by
    service.pass_time(SET_CLOCK_SECONDS)
    assert directory.exists()
    assert "the wall clock was set by" in caplog.text
    service.pass_time(2 * MINUTE)
    assert not directory.exists()


def test_a_clock_that_was_set_while_no_service_ran_delays_too(service: Service) -> None:
    directory = service.finish("old")
    service.retention.expire()
    service.pass_time(KEPT - MINUTE)
    service.clock.set_by, service.clock.passed = 5.0, service.clock.passed + MINUTE
    service.start()
    service.pass_time(SET_CLOCK_SECONDS - MINUTE)
    assert directory.exists()


def test_time_with_the_machine_off_and_time_without_the_file_do_not_count(service: Service) -> None:
    directory = service.finish("old")
    service.retention.expire()
    service.pass_time(KEPT - MINUTE)
    service.clock.passed += 1000 * HOUR
    service.clock.booted_at, service.boot = service.clock.passed, 1
    service.start()
    (service.state / FILE).unlink()
    service.start()
    service.pass_time(KEPT - MINUTE)
    assert directory.exists()
    service.pass_time(2 * MINUTE)
    assert not directory.exists()


def test_a_run_that_was_imported_in_place_of_another_is_new(service: Service) -> None:
    directory = service.finish("again")
    service.pass_time(KEPT - MINUTE)
    with service.database.session() as session:
        session.get_one(RunRow, "again").imported_at = service.clock.wall()
    service.pass_time(KEPT - MINUTE)
    assert directory.exists()


def test_without_a_retention_nothing_is_deleted_and_ages_are_observed(service: Service) -> None:
    directory = service.finish("old")
    service.start(retention=None)
    service.retention.expire()
    service.pass_time(100 * HOUR, step=HOUR)
    assert directory.exists()
    service.start()
    service.pass_time(ANNOUNCED_SECONDS)
    assert directory.exists()
    service.pass_time(2 * MINUTE)
    assert not directory.exists()


def test_a_disk_of_journals_that_is_missing_forgets_no_run(service: Service, tmp_path: Path) -> None:
    directory = service.finish("old")
    service.retention.expire()
    service.pass_time(KEPT - MINUTE)
    away = service.runs.rename(tmp_path / "away")
    service.runs.mkdir()
    service.pass_time(10 * MINUTE)
    assert service.indexed() == {"old"}
    service.runs.rmdir()
    away.rename(service.runs)
    service.pass_time(MINUTE)
    assert not directory.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"time": 1, "finished": {"old": -1}, "announced": []}', "\0"])
def test_a_damaged_file_makes_no_run_older(service: Service, content: str) -> None:
    directory = service.finish("old")
    service.retention.expire()
    service.pass_time(KEPT - MINUTE)
    (service.state / FILE).write_text(content)
    service.start()
    service.pass_time(KEPT - MINUTE)
    assert directory.exists()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.real(why="histories of clocks at random")
def test_no_run_is_deleted_before_it_was_observed_for_as_long_as_it_is_kept(service: Service, seed: int) -> None:
    chance, clock = random.Random(seed), service.clock
    seen_at: dict[str, float] = {}
    deleted: set[str] = set()
    number = 0
    for _ in range(250):
        event = chance.random()
        if event < 0.25:
            clock.set_by += chance.choice((1.5, -1.5, HOUR, -HOUR, 86400.0, -86400.0, 1e9, -1e9))
        elif event < 0.3:
            clock.set_by = 0.0
        elif event < 0.4:
            service.finish(f"run-{number}")
            number += 1
        elif event < 0.45:
            service.start()
        elif event < 0.5:
            # The machine is off for a while, and its clock may be wrong afterwards.
            off = chance.uniform(0, 10 * HOUR)
            clock.passed += off
            clock.booted_at, clock.slept = clock.passed, 0.0
            service.boot += 1
            clock.set_by += chance.choice((0.0, 86400.0, -86400.0))
            seen_at = {run_id: at + off for run_id, at in seen_at.items()}
            service.start()
        elif event < 0.55:
            slept = chance.uniform(0, HOUR)
            clock.slept += slept
            clock.passed += slept
        clock.passed += chance.uniform(0, 10 * MINUTE)
        service.retention.expire()
        present = service.indexed()
        for run_id in seen_at.keys() - present - deleted:
            assert clock.passed - seen_at[run_id] >= KEPT
            deleted.add(run_id)
        seen_at |= dict.fromkeys(present - seen_at.keys(), clock.passed)
    service.pass_time(KEPT + SET_CLOCK_SECONDS + 2 * MINUTE)
    assert service.indexed() == set()
