"""Read the result file of OpenMessaging Benchmark, upstream and forks: lists with a value for each sample.

Latencies are in milliseconds. Upstream writes no sample times; it takes a sample every ten seconds, or a little later.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from cliffwatch.analysis.table import ERRORS_COLUMN, LARGEST
from cliffwatch.base.finite_json import lenient_json
from cliffwatch.labs.outputs.rows import RATE_COLUMN, BadLineError, Progress, Reading, rows_of_progress
from cliffwatch.model.operation import Operation

_SAMPLE_SECONDS = 10.0
#: A day: no benchmark samples less often.
_LONGEST_MILLISECONDS = 86_400_000
_OPERATIONS = {"publishLatency": Operation.PUBLISH.value, "endToEndLatency": Operation.END_TO_END.value}
_COLUMNS = {
    "50pct": "p50",
    "95pct": "p95",
    "99pct": "p99",
    "999pct": "p999",
    "9999pct": "p9999",
    "Avg": "mean",
    "Max": "max",
}


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any('"publishRate"' in line for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read a result file. Raises BadLineError for any other content."""
    try:
        document = lenient_json("\n".join(lines).encode())[0]
    except (ValueError, json.JSONDecodeError) as error:
        raise BadLineError(0, f"is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("publishRate"), list):
        raise BadLineError(0, "has no list publishRate; give the JSON file that the benchmark writes at its end")
    published, consumed = _list(document, "publishRate"), _list(document, "consumeRate")
    rates = published if any(published) or len(consumed) != len(published) else consumed
    length = _sample_seconds(document["sampleRateMillis"]) if "sampleRateMillis" in document else _SAMPLE_SECONDS
    failed = _list(document, "publishErrorRate")
    columns = {
        f"{operation}.{column}": _list(document, f"{name}{field}")
        for name, operation in _OPERATIONS.items()
        for field, column in _COLUMNS.items()
    }
    said = []
    for index, rate in enumerate(rates):
        numbers = {column: values[index] / 1000 for column, values in columns.items() if index < len(values)}
        numbers |= {RATE_COLUMN: rate}
        if index < len(failed):
            numbers[ERRORS_COLUMN] = failed[index] * length
        said.append(Progress(0, (index + 1) * length, numbers))
    remark = f"The file has no times: a sample counts as {length:g} s." if "sampleRateMillis" not in document else ""
    operations = round(sum(rate * length for rate in rates if math.isfinite(rate)))
    return Reading(rows_of_progress(said), operations=operations, remark=remark)


def _sample_seconds(milliseconds: object) -> float:
    """Seconds between samples. Raises BadLineError."""
    is_number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
    if not is_number or not 1 <= float(str(milliseconds)) <= _LONGEST_MILLISECONDS:
        message = f"sampleRateMillis is {milliseconds!r:.40}; write milliseconds from 1 to {_LONGEST_MILLISECONDS}"
        raise BadLineError(0, message)
    return float(str(milliseconds)) / 1000


def _list(document: dict[str, Any], name: str) -> list[float]:
    """List of numbers at `name`; empty if absent. A value that was not measured is NaN. Raises BadLineError."""
    values = document.get(name, [])
    if not isinstance(values, list):
        raise BadLineError(0, f"has no list {name}, but {type(values).__name__}")
    found = [math.nan if value is None or value == "NaN" else value for value in values]
    for index, value in enumerate(found):
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
            raise BadLineError(0, f"{name}[{index}] is {value!r:.40}, and no number that was measured")
    return [float(value) for value in found]
