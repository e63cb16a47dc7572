"""Marked spans, in which a run was disturbed on purpose: charts draw them, and the verdict excludes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cliffwatch.analysis.coverage import Gap
from cliffwatch.base.units import format_length
from cliffwatch.journal.events import MARKED, Event, EventType


@dataclass(frozen=True, slots=True)
class Mark:
    """Marked span: `start` and `end` in seconds since the epoch.

    `text` is what was done, `by` the token that marked it, `reason` why it was marked only after the load; empty for a
    mark that was set under it.
    """

    start: float
    end: float
    text: str
    by: str = ""
    reason: str = ""

    @property
    def gap(self) -> Gap:
        """The marked span as a gap, since measurements in it do not count."""
        return Gap(self.start, self.end, MARKED)

    def overlaps(self, start: float, end: float) -> bool:
        return start < self.end and end > self.start


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Share of the judged time that marks leave, 0…1, and the marks, clipped to it: in order of their start, with
    `start` and `end` in seconds since the load's start."""

    judged_ratio: float
    marks: tuple[Mark, ...]


def mark_of(event: Event) -> Mark | None:
    """Convert a note event to a mark; None for any other event, and for a note without a valid span."""
    if (event.type, event.name) != (EventType.NOTE, MARKED):
        return None
    start, end = event.moment("start"), event.moment("end")
    if start is None or end is None or end <= start:
        return None
    text, by, reason = (str(event.detail.get(name, "")) for name in ("message", "by", "reason"))
    return Mark(start, end, text, by, reason)


def marks_in(events: Iterable[Event]) -> list[Mark]:
    """Marks among a run's events, in order of their start."""
    return sorted(filter(None, map(mark_of, events)), key=lambda mark: mark.start)


def left_out(marks: Sequence[Mark], load_start: float, begin: float, end: float) -> LeftOut:
    """Share of the judged time outside all marks, from `begin` to `end` in seconds since the epoch; time in several
    marks counts once."""
    clipped = [
        replace(mark, start=max(mark.start, begin), end=min(mark.end, end))
        for mark in marks
        if mark.overlaps(begin, end)
    ]
    marked, cursor = 0.0, begin
    for mark in sorted(clipped, key=lambda mark: mark.start):
        marked += max(0.0, mark.end - max(cursor, mark.start))
        cursor = max(cursor, mark.end)
    asked = end - begin
    shown = (replace(mark, start=mark.start - load_start, end=mark.end - load_start) for mark in clipped)
    return LeftOut(1 - marked / asked if asked > 0 else 1.0, tuple(shown))


def words_of(mark: Mark) -> str:
    """Clause on a clipped mark: how long, when, by which token, what was done, and why only after the load."""
    by = f" by {mark.by}" if mark.by else ""
    late = f"; marked after the load: {mark.reason}" if mark.reason else ""
    return (
        f"{format_length(mark.end - mark.start)} from {format_length(mark.start)} on left out{by} ({mark.text}{late})"
    )
