"""One process at a time holds a lock, for as long as it lives."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cliffwatch.base import locks

HOLDER = """
import sys
from pathlib import Path
from cliffwatch.base import locks
locks.hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_holds(path: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.kill()


@contextmanager
def held(path: Path) -> Iterator[None]:
    lock = locks.hold(path)
    try:
        yield
    finally:
        os.close(lock)


def open_descriptors() -> set[str]:
    # Without that of the directory itself, which is gone when its entry is looked at.
    return {path.name for path in Path("/proc/self/fd").iterdir() if path.exists()}


def test_a_lock_is_held_for_as_long_as_its_process_lives(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not locks.is_held(path)
    with another_holds(path) as holder:
        assert locks.is_held(path)
        holder.kill()
        holder.wait()
        assert not locks.is_held(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_lock_that_another_holds_is_tried_once_without_patience(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_holds(path), pytest.raises(TimeoutError, match=r"another process holds its lock.*/lock"):
        locks.hold(path, patience_seconds=0)


def test_a_wait_for_a_lock_ends_and_says_how_long_it_was(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held(path), pytest.raises(TimeoutError, match=r"another process has held its lock for 0.05 s.*/lock"):
        locks.hold(path, patience_seconds=0.05)


@pytest.mark.parametrize("patience_seconds", [60.0, float("inf")])
def test_a_waiting_process_has_the_lock_when_it_is_released(tmp_path: Path, patience_seconds: float) -> None:
    path = tmp_path / "lock"
    with another_holds(path) as holder:
        released = threading.Event()

        def let_it_go() -> None:
            released.set()
            holder.kill()

        threading.Timer(0.05, let_it_go).start()
        os.close(locks.hold(path, patience_seconds))
        assert released.is_set()


def test_an_attempt_that_failed_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held(path):
        before = open_descriptors()
        with pytest.raises(TimeoutError):
            locks.hold(path, patience_seconds=0)
        assert open_descriptors() == before
    assert not locks.is_held(path)


def test_a_directory_can_be_locked_and_who_looks_holds_nothing(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert not locks.is_held(tmp_path)
        locks.take(descriptor, tmp_path, patience_seconds=0)
        assert locks.is_held(tmp_path)
    finally:
        os.close(descriptor)
    assert not locks.is_held(tmp_path)
