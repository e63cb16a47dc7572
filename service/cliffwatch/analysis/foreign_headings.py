"""Headings of tables that other people and programs write: `timestamp,p99_ms,ops` for `elapsed_seconds,p99,…`.

A heading is taken only where it says what it is, its unit included: `p99_ms`, `latency_p99_us`, `tps`. Times may be
RFC 3339, or seconds or milliseconds since the epoch; they count from the first row's.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from cliffwatch.analysis.table import TIME_COLUMN
from cliffwatch.base.printed_numbers import plain_number

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0}
_UNITS |= {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
_LATENCY = re.compile(
    r"(?:(?:latency|lat)[_ .-]?)?(p50|p90|p95|p99|p99\.?9|p99\.?99|mean|avg|max|median)(?:[_ .-]?(?:latency|lat))?"
    rf"(?:[_ ]|[_ ]?[\[(])({'|'.join(_UNITS)})[\])]?"
)
_QUANTILES = {"p99.9": "p999", "p99.99": "p9999", "avg": "mean", "median": "p50"}
_RATES = frozenset(
    {"ops", "ops/s", "ops_per_sec", "ops_per_second", "iops", "tps", "qps", "rps"}
    | {"operations/s", "requests_per_second", "transactions_per_second"}
)
_TIMES = frozenset({"time", "timestamp", "ts", "date", "datetime", "elapsed", "t", "elapsed_ms", "elapsed_s", "time_s"})
#: Numbers from which a time is since the epoch: in seconds, and in milliseconds (both of 2001 and later).
_EPOCH_SECONDS, _EPOCH_MILLISECONDS = 1e9, 1e12


def known_heading(heading: str) -> tuple[str, float] | None:
    """Known column that a heading means, and by what its values are multiplied; None for one that means none."""
    words = heading.strip().lower()
    if words in _RATES:
        return "operations_per_second", 1.0
    if words in _TIMES:
        return TIME_COLUMN, 1e-3 if words.endswith("_ms") else 1.0
    if match := _LATENCY.fullmatch(words):
        return _QUANTILES.get(match[1], match[1]), _UNITS[match[2]]
    return None


def said_of(taken: Mapping[str, str]) -> str:
    """Remark on the headings that were taken for known columns."""
    return f"Taken: {', '.join(f'{heading!r} for {column}' for heading, column in taken.items())}."


class Converted:
    """Rows of a table with foreign headings, with the known columns' values; cells that are no numbers stay."""

    def __init__(self, header: Sequence[str], known: Sequence[str], is_known: Callable[[str], bool]) -> None:
        """`known` are the columns that a table may have; `is_known` says so of those that vary, such as of devices."""
        self.header = list(header)
        self.taken: dict[str, str] = {}
        self._factors: dict[int, float] = {}
        self._time: int | None = None
        self._zero: float | None = None
        for place, heading in enumerate(header):
            meant = None if heading in known or is_known(heading) else known_heading(heading)
            if meant is None or meant[0] in (*header, *self.header):
                continue
            self.header[place], self.taken[heading] = meant[0], meant[0]
            if meant[0] == TIME_COLUMN:
                self._time = place
            self._factors[place] = meant[1]

    def rows(self, rows: Iterator[list[str]]) -> Iterator[list[str]]:
        for row in rows:
            yield [self._cell(place, text) if place in self._factors else text for place, text in enumerate(row)]

    def _cell(self, place: int, text: str) -> str:
        try:
            value = _moment(text) if place == self._time else plain_number(text)
        except ValueError:
            return text
        if place != self._time:
            return repr(value * self._factors[place])
        self._zero = value if self._zero is None else self._zero
        is_epoch = self._zero >= _EPOCH_SECONDS
        factor = 1e-3 if self._zero >= _EPOCH_MILLISECONDS else 1.0 if is_epoch else self._factors[place]
        return repr(round((value - (self._zero if is_epoch else 0.0)) * factor, 6))


def _moment(text: str) -> float:
    """Seconds (or milliseconds) of a time: a number, or a date and time, of UTC where it names no zone. Raises
    ValueError for anything else."""
    try:
        return plain_number(text)
    except ValueError:
        moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
