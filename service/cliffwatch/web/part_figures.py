"""Figures of each part of a run with several targets, for its page: which of them is the slow one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from cliffwatch.base.units import format_latency, format_rate, format_ratio
from cliffwatch.journal import JournalReader
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.order import RunOrder
from cliffwatch.model.part_names import of_part, split_part
from cliffwatch.model.shown_drives import drives_of_parts

#: A part whose p99 is so many times that of the others is shown as the slow one.
_SLOW_FROM = 1.5


@dataclass(frozen=True, slots=True)
class PartFigure:
    """A part's p99 and its rate, as a tile of the page."""

    name: str
    value: str
    note: str
    is_bad: bool


def parts_now(order: RunOrder, reader: JournalReader) -> list[PartFigure]:
    """Figures of each part in the last window; none for a run with one target, or before it has a window."""
    last = reader.last_window()
    if not order.more_targets or last is None:
        return []
    name, seconds = primary_latency([key for key in last.latency if not split_part(key)[0]]), last.end - last.start
    levels = {part: last.latency.get(of_part(part, name or ""), {}).get("p99") for part in order.parts}
    figures, drives = [], drives_of_parts(reader.facts())
    for part, target in order.parts.items():
        own, others = levels[part], [level for other, level in levels.items() if other != part and level]
        rate = format_rate(last.counters.get(of_part(part, "operations"), 0) / seconds)
        figures.append(
            _figure(
                part,
                own,
                own / median(others) if own and others else None,
                [rate, str(target), *_drive(drives.get(part))],
            )
        )
    return figures


def parts_reported(report: Mapping[str, Any]) -> list[PartFigure]:
    """Figures of each part over the soak, from report.json. Raises KeyError or TypeError for another document."""
    return [
        _figure(
            part["name"],
            part.get("p99_seconds"),
            part.get("ratio_to_others"),
            ["soak", part["target"], *_drive(part.get("drives"))],
        )
        for part in report.get("parts", [])
    ]


def _drive(names: str | None) -> list[str]:
    return [] if names is None else [f"drive {names}"]


def _figure(name: str, p99_seconds: float | None, ratio: float | None, notes: Sequence[str]) -> PartFigure:
    is_slow = ratio is not None and ratio >= _SLOW_FROM
    slow = [f"{format_ratio(ratio)} the others"] if ratio is not None and is_slow else []
    value = "–" if p99_seconds is None else f"p99 {format_latency(p99_seconds)}"
    return PartFigure(name, value, ", ".join([*slow, *notes]), is_slow)
