"""Read fio's JSON with `--status-interval`: a window is the difference between two successive objects.

fio's counts are totals since its start. Percentiles need the bins of `--output-format=json+`; without them a
window has only a mean. While a job hangs, fio writes no object: the window then is longer by that time, and the slowest
I/O shows the hang.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from cliffwatch.analysis.stalls import Slowest
from cliffwatch.analysis.table import ERRORS_COLUMN
from cliffwatch.base.histogram import QUANTILES
from cliffwatch.engines.fio.snapshot import Snapshot, WentBackError, difference, read_snapshot
from cliffwatch.engines.fio.stream import Damaged, OutputStream, Text
from cliffwatch.labs.outputs.rows import (
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    quantile_column,
    require_total,
    rows_of_progress,
)

_DIRECTIONS = ("write", "read", "trim", "sync")
_Sums = dict[str, tuple[int, float]]


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any('"fio version"' in line for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read fio's JSON. Raises BadLineError for an object that is not fio's, or whose counts decrease."""
    stream = OutputStream()
    objects: list[tuple[int, Snapshot, _Sums]] = []
    total: int | None = None
    longest = (0.0, 0.0)
    for number, line in enumerate(lines, start=1):
        for piece in stream.feed(f"{line}\n".encode()):
            if isinstance(piece, Damaged):
                raise BadLineError(number, f"ends an object that cannot be read: {piece.reason}")
            if not isinstance(piece, Text):
                snapshot, sums, seconds = _read_object(number, piece)
                objects.append((number, snapshot, sums))
                total = _operations(piece)
                longest = max(longest, (seconds, -snapshot.at_seconds))
    # An object that the end of the file cuts off is left out: fio was killed within it, or is still writing.
    if not objects:
        return Reading([])
    first = objects[0]
    start = (0, Snapshot(first[1].at_seconds - first[1].runtime_seconds, 0.0), dict[str, tuple[int, float]]())
    said: list[Progress] = []
    operations = 0
    for earlier, later in pairwise([start, *objects]):
        if later[1].at_seconds <= earlier[1].at_seconds:
            continue
        try:
            numbers = _numbers(earlier[1:], later[1:])
        except WentBackError as error:
            raise BadLineError(later[0], f"ends an object that counts less than the one before ({error})") from error
        operations += round(numbers[RATE_COLUMN] * (later[1].at_seconds - earlier[1].at_seconds))
        said.append(Progress(later[0], later[1].at_seconds, numbers))
    if total is not None:
        require_total(objects[-1][0], "operations", operations, total)
    has_bins = any(snapshot.write.bins or snapshot.read.bins for _, snapshot, _ in objects)
    remark = "" if has_bins else "fio's JSON has a mean and no percentile of an interval; `--output-format=json+` has."
    slowest = Slowest(longest[0], -longest[1] - start[1].at_seconds)
    return Reading(rows_of_progress(said, start[1].at_seconds), operations, slowest, remark)


def _read_object(number: int, document: dict[str, Any]) -> tuple[Snapshot, _Sums, float]:
    """Parse an object: counts and sums of latencies so far, and the longest latency in seconds. Raises BadLineError."""
    if "client_stats" in document:
        what = "ends an object of fio's client mode (`client_stats`), which is not read"
        raise BadLineError(
            number, f"{what}; give what `fio --output-format=json+ --status-interval=1` writes on the host"
        )
    try:
        return read_snapshot(document), _sums(document), _longest_seconds(document)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise BadLineError(number, f"ends an object that is no report of fio's: {error}") from error


def _sums(document: dict[str, Any]) -> _Sums:
    """Number of operations and the sum of their latencies in seconds, by direction, over all jobs."""
    found: _Sums = {}
    for direction in _DIRECTIONS:
        described = [each for job in document["jobs"] for each in _latencies(job.get(direction, {}))]
        found[direction] = (
            sum(int(each["N"]) for each in described),
            sum(int(each["N"]) * float(each["mean"]) for each in described) / 1e9,
        )
    return found


def _operations(document: dict[str, Any]) -> int | None:
    """Number of operations so far, as fio counts them apart from latencies. None where a job does not state it."""
    counts = [job.get(way, {}).get("total_ios") for job in document["jobs"] for way in ("read", "write", "trim")]
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if len(known) == len(counts) else None


def _longest_seconds(document: dict[str, Any]) -> float:
    """Latency of the slowest operation so far, in seconds."""
    described = [each for job in document["jobs"] for name in _DIRECTIONS for each in _latencies(job.get(name, {}))]
    return max((float(each["max"]) for each in described), default=0.0) / 1e9


def _latencies(described: dict[str, Any]) -> list[dict[str, Any]]:
    """Statistics of the total latency (`lat_ns`) where fio measured it, else of the completion latency (`clat_ns`)."""
    return [described[name] for name in ("lat_ns", "clat_ns") if described.get(name, {}).get("N")][:1]


def _numbers(earlier: tuple[Snapshot, _Sums], later: tuple[Snapshot, _Sums]) -> dict[str, float]:
    change = difference(earlier[0], later[0])
    seconds = later[0].at_seconds - earlier[0].at_seconds
    numbers: dict[str, float] = {ERRORS_COLUMN: float(change.counters["errors"])}
    operations = 0
    for direction, (count, total) in later[1].items():
        count_before, total_before = earlier[1].get(direction, (0, 0.0))
        if count < count_before:
            raise WentBackError(f"latencies of {direction}")
        if direction != "sync":
            operations += count - count_before
        if count > count_before:
            numbers[f"{direction}.mean"] = max(0.0, total - total_before) / (count - count_before)
    for operation, histogram in change.latency.items():
        for quantile, value in zip(QUANTILES, histogram.percentiles_seconds(), strict=True):
            if value is not None:
                numbers[f"{operation}.{quantile_column(100 * quantile)}"] = value
    return numbers | {RATE_COLUMN: operations / seconds}
