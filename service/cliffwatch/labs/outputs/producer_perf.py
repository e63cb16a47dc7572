"""Read kafka-producer-perf-test of Kafka 0.9 to 4: a line for each interval of about five seconds.

Lines have no time: the length of an interval is its records divided by its rate. A blocked producer prints nothing
until a record is acknowledged, so its next interval is longer.
"""

import re
from collections.abc import Iterable

from cliffwatch.labs.outputs.rows import RATE_COLUMN, BadLineError, Progress, Reading, rows_of_progress

_NUMBER = r"(\d{1,15}(?:[.,]\d{1,9})?|NaN)"
_LINE = re.compile(
    rf"{_NUMBER} records sent, {_NUMBER} records/sec \({_NUMBER} MB/sec\), {_NUMBER} ms avg latency,"
    rf" {_NUMBER} ms max(?:imum)? latency(?P<whole>.*\b50th)?"
)


def read(lines: Iterable[str]) -> Reading:
    """Read producer-perf-test's output. Raises BadLineError for a line whose records or rate are not above zero."""
    said: list[Progress] = []
    end, count = 0.0, 0
    for number, line in enumerate(lines, start=1):
        found = _LINE.search(line)
        # The line with percentiles covers the whole test.
        if found is None or found["whole"]:
            continue
        records, rate, _, mean, longest = (_number(text) for text in found.groups()[:5])
        if not rate > 0 or not records > 0:
            raise BadLineError(number, "has no records, so that its length cannot be known; leave it out")
        end += records / rate
        count += round(records)
        said.append(Progress(number, end, {RATE_COLUMN: rate, "mean": mean / 1000, "max": longest / 1000}))
    return Reading(rows_of_progress(said), operations=count)


def _number(text: str) -> float:
    """Parse a number as Java prints it in any locale: `24691.2` or `24691,2`."""
    return float(text.replace(",", "."))
