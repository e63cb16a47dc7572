"""Read k6's points, as `--out json=FILE` or `--out csv=FILE` writes them: a line for each value of each metric.

An operation is a request of HTTP or gRPC, in a script without them an iteration. Durations are in milliseconds. An
iteration that was due and not started (`dropped_iterations`) is one skipped operation. While VUs are active the load
goes on, so that a target that hangs until the end of the file is a stall.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from math import inf

from cliffwatch.labs.outputs.json_lines import json_objects
from cliffwatch.labs.outputs.operations import OperationLog
from cliffwatch.labs.outputs.rows import BadLineError, Reading, require_total

_DURATIONS = ("http_req_duration", "grpc_req_duration")
_COUNTED = ("http_reqs", "iterations", "dropped_iterations")
_USED = {*_DURATIONS, *_COUNTED, "http_req_failed", "checks", "iteration_duration", "vus"}
_HEAD = "metric_name,timestamp,metric_value"
#: Beginning of a line of JSON, whose keys come in the order of the release.
_LINE = re.compile(r'\{"(?:type":"(?:Metric|Point)"|metric":"[^"]+","type":"Point")')
_SERIES = "`k6 run --out json=FILE` writes a line for each value"
#: Line of the end-of-test summary.
_TOTAL = re.compile(rf"\s*(?P<metric>{'|'.join(_COUNTED)})\.*: +(?P<count>\d{{1,15}}) ")
#: Times since the epoch in seconds are below this; k6 also writes milliseconds, microseconds and nanoseconds.
_SECONDS_MOST = 1e11


@dataclass(slots=True)
class _Point:
    line: int
    metric: str
    at: float
    value: float
    is_failed: bool = False


class _Points:
    """Points as they are read: operations, failures, and counts by metric."""

    def __init__(self) -> None:
        self.requests, self.iterations = OperationLog(), OperationLog()
        self.counts: Counter[str] = Counter()
        self.line = 0
        self._request: _Point | None = None
        self._failed: list[tuple[int, float]] = []
        self._failed_checks: list[tuple[int, float]] = []

    def add(self, point: _Point) -> None:
        """Add a point. Whether a request failed follows its duration, as a point or as a tag."""
        self.line = point.line
        if point.metric in _COUNTED:
            self.counts[point.metric] += round(point.value)
        if point.metric in _DURATIONS:
            self._end_request()
            self._request = point
        elif point.metric == "http_req_failed" and point.value:
            if self._request is None:
                self._failed.append((point.line, point.at))
            else:
                self._request.is_failed = True
        elif point.metric == "checks" and not point.value:
            self._failed_checks.append((point.line, point.at))
        elif point.metric == "iteration_duration":
            self.iterations.add(point.line, point.at, point.value / 1000)
        for log in (self.requests, self.iterations):
            if point.metric == "vus" and point.value > 0:
                log.went_on(point.line, point.at)
            elif point.metric == "dropped_iterations":
                log.add_skipped(point.line, point.at, point.value)

    def reading(self) -> Reading:
        """Make the rows. Raises BadLineError where points of requests are missing."""
        self._end_request()
        has_requests = self.counts["durations"] > 0
        log = self.requests if has_requests else self.iterations
        # A request that failed usually fails a check, too.
        for failure in max(self._failed, self._failed_checks, key=len):
            log.add_failure(*failure)
        if self.counts["http_reqs"] and self.counts["durations of http"]:
            require_total(self.line, "requests", self.counts["durations of http"], self.counts["http_reqs"])
        unit = "A request of k6 is an operation" if has_requests else "An iteration of k6 is an operation"
        dropped = self.counts["dropped_iterations"]
        more = f", and so is each of {dropped:,} iterations that were dropped" if dropped else ""
        reading = log.reading()
        return Reading(reading.windows, operations=reading.operations, remark=f"{unit}{more}.")

    def _end_request(self) -> None:
        request, self._request = self._request, None
        if request is None:
            return
        self.counts["durations"] += 1
        self.counts["durations of http"] += request.metric == _DURATIONS[0]
        if request.is_failed:
            self._failed.append((request.line, request.at))
        else:
            self.requests.add(request.line, request.at, request.value / 1000)


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(line.startswith(_HEAD) or _LINE.match(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read points, and a summary after them. Raises BadLineError for other lines, and where the two differ."""
    totals: dict[str, tuple[int, int]] = {}
    points = _Points()
    for point in _points(_without_summary(lines, totals), totals):
        points.add(point)
    if not points.line:
        return Reading([])
    for metric, (line, total) in totals.items():
        require_total(line, metric, points.counts[metric], total)
    return points.reading()


def _without_summary(lines: Iterable[str], totals: dict[str, tuple[int, int]]) -> Iterator[str]:
    """Lines, with blanks in place of those of the end-of-test summary, whose counts are put into `totals`."""
    for number, line in enumerate(lines, start=1):
        if found := _TOTAL.match(line):
            totals[found["metric"]] = (number, int(found["count"]))
        yield "" if found else line


def _points(lines: Iterable[str], totals: dict[str, tuple[int, int]]) -> Iterator[_Point]:
    rest = iter(lines)
    first = next(rest, "")
    if first.startswith(_HEAD):
        yield from _of_csv(first.split(","), rest)
        return
    for line, found in json_objects(chain([first], rest), "k6"):
        try:
            if found.get("type") == "Point" and found["metric"] in _USED:
                data = found["data"]
                point = _Point(line, str(found["metric"]), _moment(data["time"]), _value(data["value"]))
                point.is_failed = (data.get("tags") or {}).get("expected_response") == "false"
                yield point
            elif "metrics" in found:
                counted = {name: found["metrics"].get(name, {}) for name in _COUNTED}
                # A custom summary has the counts among "values".
                counts = {name: each.get("values", each).get("count") for name, each in counted.items()}
                totals |= {name: (line, int(count)) for name, count in counts.items() if count is not None}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BadLineError(line, f"is no point of k6 ({error!r}); {_SERIES}") from error


def _of_csv(head: list[str], lines: Iterable[str]) -> Iterator[_Point]:
    place = head.index("expected_response") if "expected_response" in head else None
    for number, fields in enumerate(csv.reader(lines), start=2):
        if not fields or fields[0] not in _USED:
            continue
        try:
            point = _Point(number, fields[0], _moment(fields[1]), _value(fields[2]))
            point.is_failed = place is not None and fields[place] == "false"
        except (ValueError, IndexError, OverflowError) as error:
            raise BadLineError(number, f"{','.join(fields)[:60]!r} is no point of k6; {_SERIES}") from error
        yield point


def _value(found: str | float) -> float:
    """Value of a point. Raises ValueError for one that is not finite or below zero."""
    value = float(found)
    if not 0 <= value < inf:
        raise ValueError(f"{value} was not measured")
    return value


def _moment(text: str) -> float:
    """Seconds since the epoch. Raises ValueError."""
    if not text.isdigit():
        return datetime.fromisoformat(text).timestamp()
    value = float(text)
    while value > _SECONDS_MOST:
        value /= 1000
    return value
