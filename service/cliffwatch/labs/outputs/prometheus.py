"""Read what Prometheus answers to /api/v1/query_range: a matrix of one or several series, one or several answers.

A series is known by its name or by its label `quantile`; the unit of a latency by its name (`_seconds`, `_ms`). A value
stands for the step that ends at its time; steps without a value are gaps.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, nan
from statistics import median
from typing import Any

from cliffwatch.analysis.table import COLUMNS, END_COLUMN, ERRORS_COLUMN, SKIPPED_COLUMN, Row
from cliffwatch.labs.outputs.rows import RATE_COLUMN, BadLineError, Reading, known, quantile_column

_UNITS = {
    "seconds": 1.0,
    "milliseconds": 1e-3,
    "ms": 1e-3,
    "microseconds": 1e-6,
    "us": 1e-6,
    "nanoseconds": 1e-9,
    "ns": 1e-9,
}
#: Beginning of an answer; one with many series begins likewise.
_ANSWER = re.compile(r'\s*\{\s*"status"\s*:\s*"success"[^\[]*"resultType"\s*:')
_WORDS = re.compile(r"[_:.]+")
_MEANS, _RATES = {"mean", "avg", "average"}, {"rate", "ops", "iops", "qps", "rps", "tps"}
_FAILED, _SKIPPED = {"errors", "error", "failed", "failures"}, {"dropped", "skipped"}
_DEVICE = "device_write_latency"
_LIMIT_SERIES = 1000
#: Rounding of a time, in steps.
_SLACK = 0.01
_HISTOGRAM = "ask for `label_replace(histogram_quantile(0.99, sum by (le) (rate({0}[1m]))), {1})`"
_NAMED = '"__name__", "latency_p99_seconds", "", ""'
_RENAME = f"give it a name such as `label_replace(…, {_NAMED})`"


@dataclass(frozen=True, slots=True)
class _Series:
    """Values by time. `column` is a column of the table, or `sum` and `count` of a mean; a counter counts from its
    start. `labels` are those that do not say what it measures."""

    column: str
    is_counter: bool
    labels: Mapping[str, str]
    values: Mapping[float, float]


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return _ANSWER.match("\n".join(head)) is not None


def read(lines: Iterable[str], unit_seconds: float | None) -> Reading:
    """Read answers. `unit_seconds`: unit of latencies whose names state none. Raises BadLineError."""
    found = [_series(each, unit_seconds) for answer in _answers("\n".join(lines)) for each in _results(answer)]
    if len(found) > _LIMIT_SERIES:
        raise BadLineError(
            0, f"has {len(found):,} series; ask for {_LIMIT_SERIES} or fewer, such as `sum by (job) (…)`"
        )
    times = sorted({at for each in found for at in each.values})
    step = min(
        (
            median([later - earlier for earlier, later in pairwise(each.values)] or [1.0])
            for each in found
            if each.values
        ),
        default=1.0,
    )
    if any(later - earlier < step * (1 - _SLACK) for earlier, later in pairwise(times)):
        raise BadLineError(
            0, f"has series of different times, closer than their step of {step:g} s; ask for one `step`"
        )
    rows = {at: Row(at - times[0], {}, {END_COLUMN: at - times[0] + step}) for at in times}
    differing = _differing([each.labels for each in found])
    sums: dict[str, dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for each in found:
        prefix = ",".join(each.labels[name] for name in differing if name in each.labels)
        for at, value in _increases(each, step) if each.is_counter else each.values.items():
            if each.column in ("sum", "count"):
                sums[prefix][each.column][at] = value
            elif each.column == RATE_COLUMN:
                _add(rows[at], each.column, value / step if each.is_counter else value)
            elif each.column in (ERRORS_COLUMN, SKIPPED_COLUMN):
                _add(rows[at], each.column, value if each.is_counter else value * step)
            else:
                rows[at].numbers[f"{prefix}.{each.column}" if prefix and each.column != _DEVICE else each.column] = (
                    value
                )
    for prefix, parts in sums.items():
        for at, count in parts["count"].items():
            _add(rows[at], RATE_COLUMN, count / step)
            if count > 0 and at in parts["sum"]:
                rows[at].numbers[f"{prefix}.mean" if prefix else "mean"] = parts["sum"][at] / count
    windows = [Row(row.at, {}, known(row.numbers)) for row in rows.values()]
    # The first value of a counter has no increase.
    if windows and len(windows[0].numbers) == 1:
        windows = windows[1:]
    return Reading(windows, remark=f"A value of Prometheus counts as the {step:g} s that end at its time.")


def _answers(text: str) -> Iterable[dict[str, Any]]:
    """JSON documents of the text, one after another. Raises BadLineError."""
    decoder, place = json.JSONDecoder(), 0
    text = text.strip()
    while place < len(text):
        try:
            document, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise BadLineError(text.count("\n", 0, place) + 1, f"begins no JSON that can be read: {error}") from error
        if not isinstance(document, dict):
            raise BadLineError(0, "is no answer of /api/v1/query_range, which is an object")
        yield document
        place = end + len(text[end:]) - len(text[end:].lstrip())


def _results(answer: dict[str, Any]) -> list[dict[str, Any]]:
    if answer.get("status") == "error":
        raise BadLineError(0, f"is an error of Prometheus: {answer.get('error')!s:.200}")
    data = answer.get("data")
    kind = data.get("resultType") if isinstance(data, dict) else None
    if not isinstance(data, dict) or kind != "matrix" or not isinstance(data.get("result"), list):
        raise BadLineError(0, f"has a result of type {kind!r:.20} and no matrix; ask /api/v1/query_range with a `step`")
    return [each for each in data["result"] if isinstance(each, dict)]


def _series(found: dict[str, Any], unit_seconds: float | None) -> _Series:
    labels = {str(key): str(value) for key, value in (found.get("metric") or {}).items()}
    name = labels.pop("__name__", "")
    shown = f"series {name or json.dumps(labels)!s:.100}"
    if "le" in labels or name.endswith("_bucket"):
        raise BadLineError(0, f"has the buckets of {shown}; {_HISTOGRAM.format(name or '…_bucket', _NAMED)}")
    if "histograms" in found:
        query = _HISTOGRAM.format(name or "…", _NAMED).replace("sum by (le) (rate", "sum (rate")
        raise BadLineError(0, f"has native histograms of {shown}; {query}")
    column, is_latency, is_counter = _meaning(name, labels.pop("quantile", None), shown)
    scale = _unit(name, unit_seconds, shown) if is_latency else 1.0
    try:
        pairs = sorted((float(at), float(value) * scale) for at, value in found["values"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadLineError(0, f'has values of {shown} that are not `[time, "number"]` ({error!r})') from error
    if not all(isfinite(at) for at, _ in pairs):
        raise BadLineError(0, f"has a time of {shown} that is not finite")
    return _Series(column, is_counter, labels, dict(pairs))


def _meaning(name: str, quantile: str | None, shown: str) -> tuple[str, bool, bool]:
    """Column of a series, whether it is a latency, and whether it is a counter. Raises BadLineError."""
    words = _WORDS.split(name.lower())
    said = set(words)
    if quantile is not None:
        try:
            return quantile_column(100 * float(quantile)), True, False
        except ValueError as error:
            raise BadLineError(0, f"has the quantile {quantile!r:.20} of {shown}; write 0.99") from error
    if words[-1] in ("sum", "count"):
        return words[-1], words[-1] == "sum", True
    if _DEVICE in name:
        return _DEVICE, True, False
    is_counter = words[-1] == "total"
    if is_counter or "per_second" in name or any(word.startswith("rate") for word in words) or said & _RATES:
        column = ERRORS_COLUMN if said & _FAILED else SKIPPED_COLUMN if said & _SKIPPED else RATE_COLUMN
        return column, False, is_counter
    percentile = next((word for word in words if word in COLUMNS), "mean" if said & _MEANS else None)
    if percentile is None:
        raise BadLineError(0, f"does not say whether {shown} is a percentile, a mean or a rate; {_RENAME}")
    return percentile, True, False


def _unit(name: str, unit_seconds: float | None, shown: str) -> float:
    unit = next((_UNITS[word] for word in _WORDS.split(name.lower()) if word in _UNITS), unit_seconds)
    if unit is None:
        raise BadLineError(0, f"has no unit in the name of {shown}; say it with `--latency-unit s`, or {_RENAME}")
    return unit


def _increases(series: _Series, step: float) -> Iterable[tuple[float, float]]:
    """Increase of a counter in each step whose first and last values are known; NaN where the counter was reset."""
    for (before, low), (at, high) in pairwise(series.values.items()):
        if abs(at - before - step) <= _SLACK * step:
            yield at, high - low if high >= low else nan


def _differing(labels: Sequence[Mapping[str, str]]) -> list[str]:
    """Labels that are not the same in all series."""
    names = sorted({name for each in labels for name in each})
    return [name for name in names if len({each[name] for each in labels if name in each}) > 1]


def _add(row: Row, column: str, value: float) -> None:
    row.numbers[column] = row.numbers.get(column, 0.0) + value
