"""How the command line prints: data on stdout as a table or as JSON, everything said to a person on stderr."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from cliffwatch.base.units import format_duration, format_latency

#: What stands where there is no value: not measured, not yet, not set.
ABSENT = "–"


class Output(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, and the text of a row's cell."""

    heading: str
    text: Callable[[Mapping[str, Any]], str]


def say(*lines: str) -> None:
    """A message to the terminal (stderr); never mixed with data."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], output: Output, empty: str) -> None:
    """A list: JSON as it came, or a table; `empty` is said when there is nothing to list."""
    if output is Output.JSON:
        print_json(list(rows))
    elif rows:
        for line in table_lines(
            [column.heading for column in columns], [[c.text(row) for c in columns] for row in rows]
        ):
            print(line)
    else:
        say(empty)


def print_facts(value: Any, facts: Mapping[str, str], output: Output) -> None:
    """One thing: JSON as it came, or its facts one a line."""
    if output is Output.JSON:
        print_json(value)
        return
    width = max(map(len, facts), default=0)
    for name, text in facts.items():
        first, *rest = text.splitlines() or [ABSENT]
        print(f"{name:<{width}}  {first}")
        for line in rest:
            print(f"{'':<{width}}  {line}")


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, two spaces apart; nothing is cut off, so that lines can be searched."""
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in (headings, *rows)
    ]


def plain(key: str) -> Callable[[Mapping[str, Any]], str]:
    """The text of a row's `key` (dotted for a key within a key)."""

    def text(row: Mapping[str, Any]) -> str:
        value: Any = row
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return show(value)

    return text


def show(value: Any) -> str:
    """A value as a person reads it."""
    if value is None or value == "":
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return ", ".join(map(str, value)) or ABSENT
    return str(value)


def show_seconds(seconds: float | None) -> str:
    """A length of time, to the second."""
    return ABSENT if seconds is None else format_duration(round(max(0.0, seconds)))


def show_latency(seconds: float | None) -> str:
    """Three significant digits in the unit that suits: 0.00123 → `1.23 ms`."""
    return ABSENT if seconds is None else format_latency(seconds)


def show_time(moment: str | None) -> str:
    """An RFC 3339 time, to the second, in UTC."""
    if moment is None:
        return ABSENT
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
