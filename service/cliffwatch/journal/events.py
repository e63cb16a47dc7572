"""events.jsonl: what happened to a run, appended by its worker and by the service.

Two processes append to this file, so every append holds the file's lock, and a state change reads the present state
under the same lock. A line that a dying process left incomplete is terminated, never removed: readers report it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from cliffwatch.base import durable, locks
from cliffwatch.base.finite_json import json_text, lenient_json
from cliffwatch.base.regular_files import open_regular, reading
from cliffwatch.journal import files
from cliffwatch.journal.checksum import opened, sealed

#: Timeout for the lock, which is held only during an append, unless the process was frozen or its disk does not answer.
LOCK_WAIT_SECONDS = 5.0


#: Note on a run whose own directory is no longer where it was made; `message` says what happened to it.
TARGET_DISPLACED = "target_displaced"
#: Event of a part that created or reopened the run's own directory.
CLAIMED = "directory_claimed"
#: Note of files of the run that could not be removed at its end, with the place and the reason.
LEFT_BEHIND = "files_left_behind"
#: Note of a span in which a run was disturbed on purpose.
MARKED = "marked"
#: Note of a run's annotations after a change: fields of Annotations, and `by`.
ANNOTATED = "annotated"
#: Field of a finding that was not raised during the run, but found by its report.
FOUND_AT_END = "found_at_end"


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


_FIELDS = frozenset({"at", "type", "name", "detail"})
_LARGEST = 2.0**63


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a run. `at` is in seconds since the epoch; `detail` has JSON values only, with units in its names."""

    at: float
    type: EventType
    name: str
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def happened_at(self) -> float:
        """Time shown to people, in seconds since the epoch.

        For an alert it is the alert's start or end, since `at` is when the service received it.
        """
        if self.type is not EventType.ALERT:
            return self.at
        is_over = self.detail.get("status") == "resolved"
        return self.moment("ends_at" if is_over else "starts_at") or self.at

    def number(self, name: str) -> float | None:
        """Number in the field `name` of `detail`; None where it is missing, not a number, or beyond ±2⁶³."""
        return number_in(self.detail, name)

    def moment(self, name: str) -> float | None:
        """Time in the field `name` of `detail`, in seconds since the epoch; None where it is missing or invalid."""
        return moment_in(self.detail, name)

    def to_line(self) -> str:
        body = {"at": round(self.at, 6), "type": self.type.value, "name": self.name, "detail": self.detail}
        return sealed(json_text(body))

    @classmethod
    def from_line(cls, line: str | bytes) -> "Event":
        """Parse an event. Raises ValueError when the line is no event."""
        body, _ = lenient_json(opened(line))
        try:
            if len(body) > len(_FIELDS):
                raise ValueError(f"not an event: it has {', '.join(sorted(set(body) - _FIELDS))[:80]}")
            event = cls(float(body["at"]), EventType(body["type"]), body["name"], body["detail"])
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not an event: {error!r}") from error
        if not isinstance(event.name, str) or not isinstance(event.detail, dict):
            raise ValueError("not an event: its name is no text, or its detail is no object")
        if not 0 <= event.at <= files.LAST_MOMENT:
            raise ValueError(f"not an event: {event.at!r} is no time, in seconds since 1970")
        return event


def number_in(detail: Mapping[str, Any], name: str) -> float | None:
    """Number in the field `name` of an event's detail; None where `Event.number` gives None."""
    value = detail.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST <= value <= _LARGEST:
        return None
    return float(value)


def moment_in(detail: Mapping[str, Any], name: str) -> float | None:
    """Time in the field `name` of an event's detail; None where `Event.moment` gives None."""
    value = number_in(detail, name)
    return value if value is not None and 0 <= value <= files.LAST_MOMENT else None


def found_at_end(findings: Iterable[Mapping[str, Any]], known: Iterable[Event], at: float) -> list[Event]:
    """Events for those findings of a report that were not raised during the run: only the whole run shows them.

    Findings with the field `raised` were raised before and are left out, as are findings that an earlier worker
    recorded in the events so far (`known`).
    """
    recorded = [event.detail for event in known if is_found_at_end(event)]
    fresh = [{**finding, FOUND_AT_END: True} for finding in findings if "raised" not in finding]
    return [Event(at, EventType.FINDING, str(each["kind"]), each) for each in fresh if each not in recorded]


def is_found_at_end(event: Event) -> bool:
    """Whether the event is a finding of the report, not one that detection raised during the run."""
    return event.type is EventType.FINDING and event.detail.get(FOUND_AT_END) is True


def ends_load(event: Event) -> bool:
    """Whether the event is the final end of the run's load.

    An engine may write a `load_ended` event too when it ends, but without the field `how`.
    """
    return event.type is EventType.ENGINE and event.name == "load_ended" and "how" in event.detail


class EventLog:
    """Append-only writer of a run's events.jsonl, which all processes use.

    Raises OSError; TimeoutError while another process holds the lock for too long, for example because it is frozen.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / files.EVENTS

    def append(self, event: Event) -> None:
        """Append an event durably."""
        with self._locked() as descriptor:
            self._write(descriptor, [event])

    def append_if(self, decide: Callable[[list[Event]], Event | None]) -> Event | None:
        """Append and return the event that `decide` returns for the events so far; no other process appends meanwhile.

        If `decide` returns None, nothing is appended.
        """

        def decide_all(events: list[Event]) -> list[Event]:
            event = decide(events)
            return [] if event is None else [event]

        return next(iter(self.append_all(decide_all)), None)

    def append_all(self, decide: Callable[[list[Event]], list[Event]]) -> list[Event]:
        """As `append_if`, for any number of events: they are on disk when this returns."""
        with self._locked() as descriptor:
            # A line without its newline would count here, but not for a reader until another line follows it.
            self._close_off(descriptor)
            events = decide(list(self._read()))
            if events:
                self._write(descriptor, events)
            return events

    def _read(self) -> Iterator[Event]:
        with reading(self._path) as file:
            for line in file:
                try:
                    yield Event.from_line(line)
                except ValueError:
                    continue  # JournalReader reports damaged lines; a decision is made from what can be read

    @contextmanager
    def _locked(self) -> Iterator[int]:
        descriptor = open_regular(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            locks.take(descriptor, self._path, LOCK_WAIT_SECONDS)
            yield descriptor
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, events: list[Event]) -> None:
        self._close_off(descriptor)
        is_new = os.fstat(descriptor).st_size == 0
        durable.append_durably(descriptor, "".join(event.to_line() for event in events).encode())
        if is_new:
            durable.sync_directory(self._path.parent)

    @staticmethod
    def _close_off(descriptor: int) -> None:
        """Terminate a last line that has no newline; the newline is synced with the next append."""
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > 0 and os.pread(descriptor, 1, size_bytes - 1) != b"\n":
            durable.write_all(descriptor, b"\n")
