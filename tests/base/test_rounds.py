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


def test_what_was_never_begun_can_be_stopped() -> None:
    Rounds("test", 0.01, lambda: None, "").stop()


def test_whoever_watches_over_the_database_goes_on_when_a_look_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
