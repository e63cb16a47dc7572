"""Output of the command line: data on stdout as a table or as JSON, messages on stderr."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from cliffwatch.base.units import format_latency, format_length

#: What a terminal obeys instead of showing it, or what changes the order in which it shows the rest.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
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


def visible(text: str) -> str:
    """The text with what a terminal would obey written as JSON writes it: names and notes may be a stranger's."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(*lines: str) -> None:
    """A message to the terminal (stderr); never mixed with data."""
    for line in lines:
        print(visible(line), file=sys.stderr, flush=True)


def put(*lines: str) -> None:
    """Data for a person (stdout)."""
    for line in lines:
        print(visible(line))


def print_json(value: Any) -> None:
    print(visible(json.dumps(value, indent=2, ensure_ascii=False)))


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], output: Output, empty: str) -> None:
    """A list: JSON as it came, or a table; `empty` is said when there is nothing to list."""
    if output is Output.JSON:
        print_json(list(rows))
    elif rows:
        put(*table_lines([column.heading for column in columns], [[c.text(row) for c in columns] for row in rows]))
    else:
        say(empty)


def print_facts(value: Any, facts: Mapping[str, str], output: Output) -> None:
    """One thing: JSON as it came, or its facts one a line."""
    if output is Output.JSON:
        print_json(value)
        return
    width = max(map(len, facts), default=0)
    for name, text in facts.items():
        first, *rest = (text.rstrip("\n") or ABSENT).split("\n")
        put(f"{name:<{width}}  {first}", *(f"{'':<{width}}  {line}" for line in rest))


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, two spaces apart; nothing is cut off, so that lines can be searched."""
    rows = [[visible(cell.replace("\n", "\\u000a")) for cell in row] for row in rows]
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
    return ABSENT if seconds is None else format_length(round(max(0.0, seconds)))


def show_latency(seconds: float | None) -> str:
    """Three significant digits in the unit that suits: 0.00123 → `1.23 ms`."""
    return ABSENT if seconds is None else format_latency(seconds)


def show_time(moment: str | None) -> str:
    """An RFC 3339 time, to the second, in UTC."""
    if moment is None:
        return ABSENT
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
