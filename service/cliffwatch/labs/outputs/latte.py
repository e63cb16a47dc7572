"""Read latte: the log that `latte run` prints, a line for each sample, or its JSON report, which has the same samples.

Latencies are of cycles, in milliseconds: with one decimal and without a mean in the log, exact in the report. Cycles
that failed are among those of a sample.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from cliffwatch.analysis.table import ERRORS_COLUMN
from cliffwatch.labs.outputs.rows import (
    ABSENT_INTERVALS,
    NUMBER,
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    known,
    quantile_column,
    require_total,
    rows_of_intervals,
    rows_of_progress,
)

_HEAD = re.compile(r" +Time +Cycles +Errors +Thrpt\. +.*Latency \[ms/op\]")
_LATENCIES = ("Min", "25", "50", "75", "90", "99", "99.9", "Max")
_UNITS = re.compile(r" +\[s\] +\[op\] +\[op\] +\[op/s\] +" + " +".join(re.escape(name) for name in _LATENCIES))
_COLUMNS = {"50": "p50", "90": "p90", "99": "p99", "99.9": "p999", "Max": "max"}
_BEGINNING = re.compile(r" *\d+\.\d{3} +\d")
_LINE = re.compile(
    rf" *(?P<end>{NUMBER}) +(?P<cycles>\d{{1,15}}) +(?P<errors>\d{{1,15}}) +(?:{NUMBER}|inf|NaN)"
    rf"(?P<latencies>(?: +{NUMBER}){{{len(_LATENCIES)}}})\s*$"
)
_SUMMARY = "SUMMARY STATS"
_TOTAL = re.compile(r" *(?P<what>Cycles|Errors) +\[op\] +(?P<count>\d{1,15})\s*$")
#: Key of the report that other programs' JSON does not have.
_REPORT = '"requests_per_cycle"'
#: Percentiles of the report that have a column; 100 is the longest.
_PERCENTILES = (50, 90, 95, 99, 99.9, 99.99, 100)
_REMEDY = "give the report as latte wrote it"


@dataclass(frozen=True, slots=True)
class _Sample:
    """Sample: its end in seconds since the start, cycles and failed ones among them, latencies in seconds."""

    line: int
    end: float
    cycles: int
    errors: int
    latencies: dict[str, float]


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_HEAD.match(line) or _REPORT in line for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read a log or a report. Raises BadLineError for a line or value that cannot be read, and where totals differ."""
    rest = iter(lines)
    first = next(rest, "")
    return _of_report("\n".join([first, *rest])) if first.startswith("{") else _of_log([first, *rest])


def _of_log(lines: Sequence[str]) -> Reading:
    found: list[_Sample] = []
    totals: dict[str, tuple[int, int]] = {}
    has_head, is_summary = False, False
    for number, line in enumerate(lines, start=1):
        if _UNITS.match(line):
            has_head = True
        elif line.startswith(_SUMMARY):
            has_head, is_summary = False, True
        elif is_summary and (total := _TOTAL.match(line)):
            totals.setdefault(total["what"], (number, int(total["count"])))
        elif has_head and _BEGINNING.match(line):
            found.append(_of_line(number, line))
    usual = median([later.end - earlier.end for earlier, later in pairwise(found)] or [0.0])
    rows = rows_of_intervals([Progress(each.line, each.end, numbers) for each, numbers in _numbers(found, usual)])
    if not rows:
        return Reading([])
    _require_totals(found, totals)
    completed = sum(each.cycles - each.errors for each in found)
    return Reading(rows, completed, remark="Latencies of latte's log have 0.1 ms; those of its report are exact.")


def _of_line(number: int, line: str) -> _Sample:
    if (read := _LINE.match(line)) is None:
        raise BadLineError(
            number, f"is a line of a sample that cannot be read: {line[:80]!r}; remove it if it was cut off"
        )
    values = {name: float(text) / 1000 for name, text in zip(_LATENCIES, read["latencies"].split(), strict=True)}
    latencies = {column: values[name] for name, column in _COLUMNS.items()}
    return _checked(_Sample(number, float(read["end"]), int(read["cycles"]), int(read["errors"]), latencies))


def _of_report(text: str) -> Reading:
    try:
        document = json.loads(text)
        result = document["result"]
        percents = [float(percent) for percent in document["percentiles"]]
        found = [_of_sample(sample, percents) for sample in result["log"]]
        totals = {"Cycles": (0, int(result["cycle_count"])), "Errors": (0, int(result["error_count"]))}
        starts = [float(sample["time_s"]) for sample in result["log"]]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, BadLineError):
            raise
        raise BadLineError(0, f"is no report of latte 0.27 or later ({error!r:.80}); {_REMEDY}") from error
    if not found:
        raise BadLineError(0, "is a report without samples; run latte without --drop-sampling-log")
    # Samples of a number of cycles are of different lengths, so that a long one is no gap.
    said = [Progress(0, each.end, numbers) for each, numbers in _numbers(found, math.inf, starts[0])]
    rows = rows_of_progress(said, starts[0])
    _require_totals(found, totals)
    return Reading(rows, sum(each.cycles - each.errors for each in found))


def _of_sample(sample: Mapping[str, Any], percents: Sequence[float]) -> _Sample:
    latencies = _distribution(sample["cycle_latency"], percents, "")
    by_function = sample["cycle_latency_by_fn"]
    # A single function's latencies are those of all.
    for name, found in by_function.items() if len(by_function) > 1 else ():
        latencies |= _distribution(found, percents, f"{name.replace('.', '_')}.")
    end = float(sample["time_s"]) + float(sample["duration_s"])
    return _checked(_Sample(0, end, int(sample["cycle_count"]), int(sample["cycle_error_count"]), latencies))


def _distribution(found: Mapping[str, Any], percents: Sequence[float], prefix: str) -> dict[str, float]:
    """Latencies in seconds by column; none where nothing was completed, which has a mean of 0."""
    values = [float(each["value"]) / 1000 for each in found["percentiles"]]
    at = {round(percent, 3): value for percent, value in zip(percents, values, strict=True)}
    mean = float(found["mean"]["value"]) / 1000
    columns = {percent: "max" if percent == 100 else quantile_column(percent) for percent in _PERCENTILES}
    named = {f"{prefix}{columns[percent]}": at[percent] for percent in _PERCENTILES if percent in at}
    return known({f"{prefix}mean": mean} | named) if mean > 0 else {}


def _checked(sample: _Sample) -> _Sample:
    if not 0 <= sample.errors <= sample.cycles:
        raise BadLineError(sample.line, f"has {sample.errors:,} errors among {sample.cycles:,} cycles; {_REMEDY}")
    return sample


def _numbers(
    found: Sequence[_Sample], usual: float, zero: float | None = None
) -> Iterable[tuple[_Sample, dict[str, float]]]:
    """Samples with their windows' figures. One after a longer time than usual is of the usual time only."""
    last = zero if zero is not None else (found[0].end - usual if found else 0.0)
    for each in found:
        seconds = each.end - last if each.end - last <= ABSENT_INTERVALS * usual else usual
        rate = (each.cycles - each.errors) / seconds if seconds > 0 else 0.0
        yield each, {RATE_COLUMN: rate, ERRORS_COLUMN: float(each.errors)} | (each.latencies if each.cycles else {})
        last = each.end


def _require_totals(found: Sequence[_Sample], totals: Mapping[str, tuple[int, int]]) -> None:
    for what, counts in (
        ("Cycles", [each.cycles for each in found]),
        ("Errors", [each.errors for each in found]),
    ):
        if what in totals:
            line, total = totals[what]
            require_total(line, what.lower(), sum(counts), total)
