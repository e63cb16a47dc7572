"""What is done again and again goes on when one round fails, and ends when it is stopped."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.waiting import wait_until

from cliffwatch.base.rounds import Rounds
from cliffwatch.store.database import open_database, upgrade
from cliffwatch.store.monitor import DatabaseMonitor


def failing_at_first(done: list[int]) -> Callable[[], None]:
    def act() -> None:
        done.append(len(done))
        if len(done) == 1:
            raise OSError("the disk is away")

    return act


def test_a_round_that_fails_is_logged_and_the_next_one_follows(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    rounds = Rounds("test", 0.01, failing_at_first(done), "it could not be done")
    with caplog.at_level(logging.ERROR):
        rounds.start()
        wait_until(lambda: len(done) >= 3, "three rounds")
        rounds.stop()
    assert [record.getMessage() for record in caplog.records] == ["it could not be done"]
    assert "the disk is away" in caplog.text
    assert "test" not in [thread.name for thread in threading.enumerate()]


def test_how_long_a_round_has_been_going_on_is_known_while_it_does() -> None:
    may_end = threading.Event()
    rounds = Rounds("test", 0.01, may_end.wait, "it could not be done")
    assert rounds.busy_seconds() == 0.0
    rounds.start()
    wait_until(lambda: rounds.busy_seconds() > 0.05, "a round that goes on")
    may_end.set()
    rounds.stop()
    assert rounds.busy_seconds() == 0.0


def test_rounds_that_fail_alike_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    def act() -> None:
        done.append(len(done))
        if len(done) in range(1, 20):
            raise OSError("the disk is away")
        if len(done) == 20:
            raise ValueError("the disk is strange")
        if len(done) == 22:
            raise ValueError("it is strange again")

    rounds = Rounds("test", 0.001, act, "it could not be done")
    with caplog.at_level(logging.ERROR):
        rounds.start()
        wait_until(lambda: len(done) >= 23, "all rounds")
        rounds.stop()
    in_a_row = [f"it could not be done, {count} times in a row: the disk is away" for count in (2, 4, 8, 16)]
    first = "it could not be done"
    assert [record.getMessage() for record in caplog.records] == [first, *in_a_row, first, first]
    assert caplog.text.count("Traceback") == 3


def test_rounds_that_were_never_started_can_be_stopped() -> None:
    Rounds("test", 0.01, lambda: None, "").stop()


def test_the_database_monitor_goes_on_when_a_look_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'database'}"
    upgrade(url)
    looks: list[int] = []
    monkeypatch.setattr("cliffwatch.store.monitor.PERIOD_SECONDS", 0.01)
    act = failing_at_first(looks)
    monkeypatch.setattr(DatabaseMonitor, "look", lambda _: act())
    database = open_database(url)
    monitor = DatabaseMonitor(database)
    monitor.start()
    try:
        wait_until(lambda: len(looks) >= 3, "three looks")
    finally:
        monitor.stop()
        database.close()
