"""events.jsonl: what happened to a run, appended by its worker and by the service.

Two processes write here, so every append holds the file's lock, and a state change reads the present state under the
same lock. A line that a dying process left half written is closed off, never removed: readers report it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from cliffwatch.base import durable, locks
from cliffwatch.base.finite_json import json_text, lenient_json
from cliffwatch.journal import files

#: Nobody holds the lock longer than an append takes, unless the process was frozen or its disk does not answer.
LOCK_WAIT_SECONDS = 5.0


#: Note on a run whose own directory is no longer where it was made; `message` says what became of it.
TARGET_DISPLACED = "target_displaced"


class EventType(StrEnum):
    """What an event is about; the `name` says what happened."""

    STATE = "state"
    PHASE = "phase"
    ENGINE = "engine"
    GAP = "gap"
    FINDING = "finding"
    ALERT = "alert"
    CLOCK = "clock"
    JOURNAL = "journal"
    DEVICE = "device"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Event:
    """`at` in seconds since the epoch; `detail` holds JSON values only, with units in its names."""

    at: float
    type: EventType
    name: str
    detail: dict[str, Any] = field(default_factory=dict)

    def to_line(self) -> str:
        body = {"at": round(self.at, 6), "type": self.type.value, "name": self.name, "detail": self.detail}
        return json_text(body) + "\n"

    @classmethod
    def from_line(cls, line: str | bytes) -> "Event":
        """Raises ValueError when the line is not an event."""
        body, _ = lenient_json(line)
        try:
            event = cls(float(body["at"]), EventType(body["type"]), str(body["name"]), dict(body["detail"]))
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not an event: {error!r}") from error
        if not 0 <= event.at <= files.LAST_MOMENT:
            raise ValueError(f"not an event: {event.at!r} is no time, in seconds since 1970")
        return event


def ends_load(event: Event) -> bool:
    """Whether it is the end of the run's load, for good. Engines may have an event of this name, when one of them ends;
    it does not say `how`."""
    return event.type is EventType.ENGINE and event.name == "load_ended" and "how" in event.detail


class EventLog:
    """The one way to append to a run's events.jsonl.

    Raises OSError: TimeoutError while another process holds the lock and does nothing, as one that was frozen does.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / files.EVENTS

    def append(self, event: Event) -> None:
        """On disk when this returns."""
        with self._locked() as descriptor:
            self._write(descriptor, [event])

    def append_if(self, decide: Callable[[list[Event]], Event | None]) -> Event | None:
        """Append what `decide` makes of the events so far, with nobody else appending in between."""

        def decide_all(events: list[Event]) -> list[Event]:
            event = decide(events)
            return [] if event is None else [event]

        return next(iter(self.append_all(decide_all)), None)

    def append_all(self, decide: Callable[[list[Event]], list[Event]]) -> list[Event]:
        """As `append_if`, for any number of events: they are on disk when this returns."""
        with self._locked() as descriptor:
            events = decide(list(self._read()))
            if events:
                self._write(descriptor, events)
            return events

    def _read(self) -> Iterator[Event]:
        with self._path.open("rb") as file:
            for line in file:
                try:
                    yield Event.from_line(line)
                except ValueError:
                    continue  # JournalReader reports damaged lines; a decision is made from what can be read

    @contextmanager
    def _locked(self) -> Iterator[int]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, durable.PRIVATE_FILE)
        try:
            locks.take(descriptor, self._path, LOCK_WAIT_SECONDS)
            yield descriptor
        finally:
            os.close(descriptor)

    @staticmethod
    def _write(descriptor: int, events: list[Event]) -> None:
        size_bytes = os.fstat(descriptor).st_size
        torn = size_bytes > 0 and os.pread(descriptor, 1, size_bytes - 1) != b"\n"
        lines = "".join(event.to_line() for event in events).encode()
        durable.append_durably(descriptor, (b"\n" if torn else b"") + lines)
