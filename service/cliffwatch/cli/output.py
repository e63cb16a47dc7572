"""Output of the command line: data on stdout as a table or as JSON, messages on stderr."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

#: Characters that a terminal obeys instead of showing them, or that change the order in which it shows others.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
#: Text for an absent value: not measured, not known yet, not set.
ABSENT = "–"


class Output(StrEnum):
    """Output format of data."""

    TABLE = "table"
    JSON = "json"


#: Characters that a cell keeps on a narrow terminal.
_SHORTEST = 12


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, and the text of a row's cell."""

    heading: str
    text: Callable[[Mapping[str, Any]], str]


def visible(text: str) -> str:
    """Replace characters that control a terminal by JSON escapes: names and notes may come from untrusted users."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(*lines: str) -> None:
    """Print a message to stderr, so that it never mixes with the data on stdout."""
    for line in lines:
        print(visible(line), file=sys.stderr, flush=True)


def answer_to(question: str) -> str:
    """Ask on stderr and read a line from stdin; empty at the end of input."""
    say(question)
    sys.stderr.write("> ")
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def put(*lines: str) -> None:
    """Print lines of data for people to stdout."""
    for line in lines:
        print(visible(line))


def print_json(value: Any) -> None:
    print(visible(json.dumps(value, indent=2, ensure_ascii=False)))


def print_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], output: Output, empty: str, shortened: str = ""
) -> None:
    """Print a list as JSON or as a table; instead of an empty table, the message `empty` on stderr. On a terminal, the
    beginning of cells in the column `shortened` is cut where lines would be longer than it is wide."""
    if output is Output.JSON:
        print_json(list(rows))
        return
    if not rows:
        say(empty)
        return
    headings = [column.heading for column in columns]
    cells = [[column.text(row) for column in columns] for row in rows]
    if shortened and sys.stdout.isatty():
        import shutil  # takes as long to import as all else here

        cells = _fitted(headings, cells, headings.index(shortened), shutil.get_terminal_size().columns)
    put(*table_lines(headings, cells))


def _fitted(headings: Sequence[str], cells: list[list[str]], place: int, width: int) -> list[list[str]]:
    """Cells of which those in one column lack their beginning, so that lines are at most as wide as `width` if the
    column keeps some characters."""
    excess = max(map(len, table_lines(headings, cells))) - width
    longest = max(len(row[place]) for row in cells) - max(0, excess)
    kept = max(longest, len(headings[place]), _SHORTEST)
    return [
        [*row[:place], row[place] if len(row[place]) <= kept else f"…{row[place][1 - kept :]}", *row[place + 1 :]]
        for row in cells
    ]


def print_facts(value: Any, facts: Mapping[str, str], output: Output) -> None:
    """Print one object: `value` as JSON, or `facts` with one name and text a line."""
    if output is Output.JSON:
        print_json(value)
        return
    width = max(map(len, facts), default=0)
    for name, text in facts.items():
        first, *rest = (text.rstrip("\n") or ABSENT).split("\n")
        put(f"{name:<{width}}  {first}", *(f"{'':<{width}}  {line}" for line in rest))


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: columns two spaces apart, each as wide as its widest cell; no cell is cut, so grep works."""
    rows = [[visible(cell.replace("\n", "\\u000a")) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in (headings, *rows)
    ]


def plain(key: str) -> Callable[[Mapping[str, Any]], str]:
    """Function that formats a row's value at `key` (`a.b` for a nested key)."""

    def text(row: Mapping[str, Any]) -> str:
        value: Any = row
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return show(value)

    return text


def show(value: Any) -> str:
    """Format a value for people: a boolean as yes or no, a list with commas, None or an empty value as ABSENT."""
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
    """Format a duration, rounded to the second."""
    from cliffwatch.base.units import format_length

    return ABSENT if seconds is None else format_length(round(max(0.0, seconds)))


def show_latency(seconds: float | None) -> str:
    """Format a latency with three significant digits in a suitable unit: 0.00123 → `1.23 ms`."""
    from cliffwatch.base.units import format_latency

    return ABSENT if seconds is None else format_latency(seconds)


def show_time(moment: str | None) -> str:
    """Format an RFC 3339 time in UTC, to the second."""
    if moment is None:
        return ABSENT
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
