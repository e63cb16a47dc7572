"""Helpers of the format readers: rows of windows, errors by line, names of columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.stalls import Slowest
from cliffwatch.analysis.table import END_COLUMN, ERRORS_COLUMN, Row

RATE_COLUMN = "operations_per_second"
#: Most that a program's own total may differ from the sum of its lines.
TOTAL_TOLERANCE = 0.01
_RATE_ROUNDING = 0.05
#: Times above this are seconds since the epoch.
EPOCH_FROM = 1e8
#: Distance between lines, in usual intervals, from which on a line is absent between them.
ABSENT_INTERVALS = 1.5
#: A number as programs print it; longer ones are damage.
NUMBER = r"\d{1,15}(?:\.\d{1,9})?"


class BadLineError(ValueError):
    """Line of a format that cannot be read; `line` counts from 1, and 0 stands for the whole file."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows that a reader made of a file, with remarks on how it was read.

    `windows` are in order of time. `operations` is the number of operations, None if the format does not count them.
    `slowest` is the slowest operation where no window shows it.
    `remark` is a sentence on what the reader assumed.
    """

    windows: list[Row]
    operations: int | None = None
    slowest: Slowest | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress line: figures since the previous line. `end` is in seconds by the program's own clock, from any zero."""

    line: int
    end: float
    numbers: Mapping[str, float]


def rows_of_progress(said: Sequence[Progress], zero: float | None = 0.0) -> list[Row]:
    """Make a row for each progress line, from the end of the previous line to its own. The first row begins at `zero`,
    or if that is None, one median interval before its end. Raises BadLineError if time does not increase."""
    if not said:
        return []
    for earlier, later in pairwise(said):
        if later.end <= earlier.end:
            raise went_back((earlier.line, earlier.end), (later.line, later.end))
    if zero is None:
        usual = median([later.end - earlier.end for earlier, later in pairwise(said)] or [0.0])
        zero = said[0].end - usual
    starts = [zero, *(each.end for each in said[:-1])]
    return [
        Row(start - zero, {}, known(each.numbers) | {END_COLUMN: each.end - zero})
        for start, each in zip(starts, said, strict=True)
        if each.end > start
    ]


def rows_of_intervals(said: Sequence[Progress]) -> list[Row]:
    """`rows_of_progress` of a program that prints its lines at even intervals, each about its own interval only: where
    lines are absent there is a gap. A last line that comes after less than half an interval is left out, unless
    operations failed in it."""
    rows = rows_of_progress(said, None)
    usual = median([row.numbers[END_COLUMN] - row.at for row in rows] or [0.0])
    for row in rows:
        if row.numbers[END_COLUMN] - row.at > ABSENT_INTERVALS * usual:
            row.at = row.numbers[END_COLUMN] - usual
    if rows and rows[-1].numbers[END_COLUMN] - rows[-1].at < usual / 2 and not rows[-1].numbers.get(ERRORS_COLUMN):
        rows.pop()
    return rows


def require_total(line: int, what: str, found: float, total: float, unprinted: float = 0.0) -> None:
    """Raise BadLineError where a program's total differs by more than 1 % from the sum of what was read.
    `unprinted`: how much may be in the total alone, since it came after the last line."""
    if found - total > TOTAL_TOLERANCE * total or total - found > TOTAL_TOLERANCE * total + unprinted:
        raise BadLineError(line, f"states {total:,.0f} {what} in all, and the lines before it add up to {found:,.0f}")


def require_rates(rows: Sequence[Row], line: int, total: float, what: str) -> None:
    """`require_total` for the rates of rows, which have one decimal. What came after the last row is in the total
    alone, as long as it is no more than two rows hold."""
    counts = [row.numbers.get(RATE_COLUMN, 0.0) * (row.numbers[END_COLUMN] - row.at) for row in rows]
    rounding = _RATE_ROUNDING * sum(row.numbers[END_COLUMN] - row.at for row in rows)
    require_total(line, what, max(0.0, sum(counts) - rounding), total, 2 * max(counts) + 2 * rounding)


def went_back(earlier: tuple[int, float], later: tuple[int, float]) -> BadLineError:
    """Error of a line whose time is not after that of an earlier one, both as (line, seconds). Seconds since a
    program's start begin again with another run; those of a wall clock also go back when it is set."""
    (number, seconds), (line, again) = earlier, later
    if again == seconds or again < EPOCH_FROM:
        what = f"is at {again:.10g} s, after one at {seconds:.10g} s"
        return BadLineError(line, f"{what} in line {number}; give the output of one run at a time")
    what = f"is {seconds - again:.6g} s before line {number} by its time: the clock was set back between them"
    return BadLineError(line, f"{what}, or the lines are not in order; give those before or those from there on")


def known(numbers: Mapping[str, float]) -> dict[str, float]:
    """Filter out values that are not measurements: infinite ones, NaN (a mean of no values), and those below zero."""
    return {name: value for name, value in numbers.items() if math.isfinite(value) and value >= 0}


def quantile_column(percent: float) -> str:
    """Column name of a percentile: `p99` for 99, `p999` for 99.9."""
    return "p" + f"{percent:g}".replace(".", "")
