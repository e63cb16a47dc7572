"""Spans of a run that was disturbed on purpose: they are drawn, and left out of what is judged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cliffwatch.analysis.coverage import Gap
from cliffwatch.base.units import format_length
from cliffwatch.journal.events import MARKED, Event, EventType


@dataclass(frozen=True, slots=True)
class Mark:
    """`start` and `end` in seconds since the epoch; `text` is what was done."""

    start: float
    end: float
    text: str

    @property
    def gap(self) -> Gap:
        """The span as one in which nothing that counts was measured."""
        return Gap(self.start, self.end, MARKED)

    def overlaps(self, start: float, end: float) -> bool:
        return start < self.end and end > self.start


def mark_of(event: Event) -> Mark | None:
    """The mark that an event is; None for any other, and for one that says no span."""
    if (event.type, event.name) != (EventType.NOTE, MARKED):
        return None
    start, end = event.moment("start"), event.moment("end")
    return (
        None if start is None or end is None or end <= start else Mark(start, end, str(event.detail.get("message", "")))
    )


def marks_in(events: Iterable[Event]) -> list[Mark]:
    """In the order of their beginnings."""
    return sorted(filter(None, map(mark_of, events)), key=lambda mark: mark.start)


def left_out(marks: Sequence[Mark], load_start: float) -> str:
    """What the verdict says of them; empty where there are none."""
    said = []
    for mark in marks:
        begun = format_length(max(0.0, mark.start - load_start))
        said.append(f"{format_length(mark.end - mark.start)} from {begun} on ({mark.text})")
    return f"Left out of the judgement, as it was marked: {'; '.join(said)}." if said else ""
