"""Shared by the format readers: rows of windows, faults by line, names of columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.table import END_COLUMN, Row

RATE_COLUMN = "operations_per_second"
#: A number as programs print it; longer ones are damage.
NUMBER = r"\d{1,15}(?:\.\d{1,9})?"


class BadLineError(ValueError):
    """A line that begins as one of the format does, and cannot be read; `line` counts from 1, 0 is the whole file."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows and faults that a reader made of a file.

    `windows` are in order of time. `operations` is how many it counted, None where the format does not. `slowest` is
    how long an operation took at least, and when it was over, where no window says so. `remark` says what the reader
    took for granted, as a sentence.
    """

    windows: list[Row]
    operations: int | None = None
    slowest: tuple[float, float] | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Line of progress: figures since the line before. `end` is in the program's own seconds, from any zero."""

    line: int
    end: float
    numbers: Mapping[str, float]


def rows_of_progress(said: Sequence[Progress], zero: float | None = 0.0) -> list[Row]:
    """Rows from one line to the next. The first begins at `zero`, or, where that is None, as long before its line as
    lines usually are apart. Raises BadLineError where time goes back."""
    if not said:
        return []
    for earlier, later in pairwise(said):
        if later.end <= earlier.end:
            raise BadLineError(
                later.line,
                f"is at {later.end:g} s, after one at {earlier.end:g} s; give the output of one run at a time",
            )
    if zero is None:
        usual = median([later.end - earlier.end for earlier, later in pairwise(said)] or [0.0])
        zero = said[0].end - usual
    starts = [zero, *(each.end for each in said[:-1])]
    return [
        Row(start - zero, {}, known(each.numbers) | {END_COLUMN: each.end - zero})
        for start, each in zip(starts, said, strict=True)
        if each.end > start
    ]


def known(numbers: Mapping[str, float]) -> dict[str, float]:
    """Filter out what is no measurement: NaN, which stands for the mean of nothing, and what lies below zero."""
    return {name: value for name, value in numbers.items() if math.isfinite(value) and value >= 0}


def quantile_column(percent: float) -> str:
    """The column of a percentile: `p99` of 99, `p999` of 99.9."""
    return "p" + f"{percent:g}".replace(".", "")
