"""Marked spans, in which a run was disturbed on purpose: charts draw them, and the verdict excludes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cliffwatch.analysis.coverage import Gap
from cliffwatch.base.units import format_length
from cliffwatch.journal.events import MARKED, Event, EventType


@dataclass(frozen=True, slots=True)
class Mark:
    """Marked span: `start` and `end` in seconds since the epoch; `text` is what was done."""

    start: float
    end: float
    text: str

    @property
    def gap(self) -> Gap:
        """The marked span as a gap, since measurements in it do not count."""
        return Gap(self.start, self.end, MARKED)

    def overlaps(self, start: float, end: float) -> bool:
        return start < self.end and end > self.start


def mark_of(event: Event) -> Mark | None:
    """Convert a note event to a mark; None for any other event, and for a note without a valid span."""
    if (event.type, event.name) != (EventType.NOTE, MARKED):
        return None
    start, end = event.moment("start"), event.moment("end")
    return (
        None if start is None or end is None or end <= start else Mark(start, end, str(event.detail.get("message", "")))
    )


def marks_in(events: Iterable[Event]) -> list[Mark]:
    """Marks among a run's events, in order of their start."""
    return sorted(filter(None, map(mark_of, events)), key=lambda mark: mark.start)


def left_out(marks: Sequence[Mark], load_start: float) -> str:
    """Sentence of the verdict on marked spans; empty where there are none."""
    said = []
    for mark in marks:
        begun = format_length(max(0.0, mark.start - load_start))
        said.append(f"{format_length(mark.end - mark.start)} from {begun} on ({mark.text})")
    return f"Left out of the judgement, as it was marked: {'; '.join(said)}." if said else ""
