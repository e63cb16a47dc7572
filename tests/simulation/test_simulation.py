"""Whatever goes wrong, in whatever order: no window is lost or there twice, and each run comes to its end.

A seed that fails is printed with its history. `python -m tests.simulation.simulate SEED 1` repeats it, and it is kept
in `KEPT` once what it found is mended.
"""

import secrets
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.simulation.simulate import Broken, simulate_all

from cliffwatch.base import durable
from cliffwatch.coordinator import __main__ as worker_main
from cliffwatch.journal.recovery import Tail

#: They found: half of a run that was refused; a verdict of windows that were on no disk; a run that waited for hours
#: because the clock was set back; a run that was shown, with its name on no disk; one that was over only in the index;
#: a state whose line lacked nothing but its end, so that it counted for those who write and not for those who read.
KEPT = (13, 20, 47, 1168, 4146, 4610)
FIRST, FEW, MANY = 100_000, 35, 500
LONG = pytest.mark.real(why="tens of seconds, for what the gate's seeds do in part")


def test_seeds_that_failed_once_hold() -> None:
    simulate_all(KEPT)


def test_nothing_is_lost() -> None:
    simulate_all(range(FIRST, FIRST + FEW))


@pytest.mark.real(why="minutes")
@pytest.mark.timeout(3600)
def test_nothing_is_lost_with_other_seeds_each_time() -> None:
    first = secrets.randbelow(2**31)
    simulate_all(range(first, first + MANY))


def test_a_seed_is_the_same_each_time() -> None:
    seen: list[list[str]] = []
    for _ in range(2):
        simulate_all([1168], lambda seed, history: seen.append(history))
    assert seen[0] == seen[1]
    assert len(seen[0]) > 10


def test_no_file_stays_open() -> None:
    seen: list[int] = []
    simulate_all([1168], lambda seed, history: seen.append(_files_open()))
    assert seen[0] > 0, "no process left a file open, so that this proves nothing"
    assert _files_open() == 0


def _files_open() -> int:
    links = (entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())
    return sum("/cliffwatch-simulation-" in str(link) for link in links)


@LONG
def test_all_of_it_goes_wrong() -> None:
    """In some seed of a few: whatever a seed could do and none does proves nothing."""
    words = Counter[str]()
    simulate_all(range(60), lambda seed, history: words.update(" ".join(history).split()))
    assert not [
        word for word in ("killed", "frozen", "power", "set", "answers", "database", "SIGTERM") if not words[word]
    ]


WITHOUT: dict[str, Callable[[], Any]] = {
    "an fsync": lambda: mock.patch.object(durable, "append_durably", durable.write_all),
    "the worker's lock": lambda: mock.patch.object(worker_main, "_take_lock", return_value=True),
    "the end of half a line": lambda: mock.patch.object(Tail, "settle"),
}


@LONG
@pytest.mark.parametrize("what", WITHOUT)
def test_without_it_something_is_broken(what: str) -> None:
    with WITHOUT[what](), pytest.raises(Broken):
        simulate_all(range(200_000, 200_300))
    assert _files_open() == 0
