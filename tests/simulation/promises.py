"""What a run's journal has promised, and whether it holds: asked at any moment, and once more when all is over."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

from tests.simulation.world import World

from cliffwatch.analysis.verdict import stopped_after
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, JournalWindow, WindowLog
from cliffwatch.journal.state import status_of
from cliffwatch.model.run_state import TRANSITIONS, RunState


class Promises:
    """Of all runs below a directory."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._windows: dict[str, list[JournalWindow]] = {}
        self._events: dict[str, list[Event]] = {}
        self._writers: dict[str, object] = {}

    @contextmanager
    def recorded(self, world: World) -> Iterator[None]:
        """While the block lasts, what is acknowledged is written down, and two that write to one run are seen."""
        opened: dict[int, str] = {}
        really_open, really_append, really_write = WindowLog.__init__, WindowLog.append, EventLog._write

        def open_windows(log: WindowLog, directory: Path, run_start: float) -> None:
            opened[id(log)] = directory.name
            really_open(log, directory, run_start)

        def append(log: WindowLog, window: Any, phase: str) -> JournalWindow:
            run_id, process = opened[id(log)], world.current()
            before = self._writers.get(run_id)
            assert before is None or before is process or not getattr(before, "is_alive", False), "two workers write"
            self._writers[run_id] = process
            committed = really_append(log, window, phase)
            self._windows.setdefault(run_id, []).append(committed)
            return committed

        def write(log: EventLog, descriptor: int, events: list[Event]) -> None:
            really_write(log, descriptor, events)
            self._events.setdefault(log._path.parent.name, []).extend(events)

        with ExitStack() as patched:
            patched.enter_context(mock.patch.object(WindowLog, "__init__", open_windows))
            patched.enter_context(mock.patch.object(WindowLog, "append", append))
            patched.enter_context(mock.patch.object(EventLog, "_write", write))
            yield

    def broken(self, run_id: str) -> str | None:
        """What is not as it was promised, or None."""
        reader = JournalReader(self._runs / run_id)
        windows = list(reader.windows())
        if [window.seq for window in windows] != list(range(len(windows))):
            return f"{run_id} has windows {[window.seq for window in windows]}"
        if any(later.start < earlier.end - 1e-6 for earlier, later in pairwise(windows)):
            return f"{run_id} has windows that overlap"
        lost = [window.seq for window in self._windows.get(run_id, []) if window not in windows]
        if lost:
            return f"{run_id} has lost windows {lost}"
        events = [stored.event for stored in reader.events()]
        gone = [event.name for event in _as_stored(self._events.get(run_id, [])) if event not in events]
        if gone:
            return f"{run_id} has lost events {gone}"
        states = [RunState(event.name) for event in events if event.type is EventType.STATE]
        wrong = [(a, b) for a, b in pairwise(states) if b not in TRANSITIONS[a]]
        return f"{run_id} went {wrong}" if wrong or states[:1] != [RunState.QUEUED] else None

    def unfinished(self, run_id: str) -> str | None:
        """What a run that had all the time that it wanted lacks, or None."""
        reader = JournalReader(self._runs / run_id)
        status = status_of(stored.event for stored in reader.events())
        if status is None or status.state is not RunState.FINISHED:
            return f"{run_id} is {status.state if status else 'nothing'} for ever"
        count = len(list(reader.windows()))
        if not _follows(status.reasons[0], count):
            return f"{run_id} has {count} windows, and its verdict is of {status.reasons}"
        return None


def _follows(reason: str, windows: int) -> bool:
    """Whether the verdict is of so many windows, or says that they were not analysed."""
    if windows == 0 and reason == stopped_after(0.0):
        return True
    return reason == f"{windows} windows" or reason.startswith("The analysis could not be made")


def _as_stored(events: list[Event]) -> list[Event]:
    return [Event.from_line(event.to_line()) for event in events]
