"""Snapshot of fio's cumulative JSON report, reduced to what windows need, and the difference of two."""

import errno
from dataclasses import dataclass
from typing import Any

import numpy as np

from cliffwatch.base.histogram import Histogram
from cliffwatch.model.latency_scale import SCALE_ENDS_NANOSECONDS
from cliffwatch.model.operation import Operation

#: The latency names of a window, which are also fio's names of its directions.
OPERATIONS = (Operation.WRITE, Operation.READ, Operation.SYNC)
#: The last of fio's latency bins, in nanoseconds: all longer latencies are counted there.
LAST_BIN_NANOSECONDS = SCALE_ENDS_NANOSECONDS["fio"]

#: Largest number that can be added up over a hundred jobs and still fits into 64 bits.
_LARGEST = 2**56


@dataclass(frozen=True, slots=True)
class Latencies:
    """All latencies of one direction so far: counts by nanoseconds (the middle of fio's bin), and the longest."""

    bins: dict[int, int]
    longest_nanoseconds: int

    @property
    def count(self) -> int:
        return sum(self.bins.values())


_NONE = Latencies({}, 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Totals since fio's jobs began. `at_seconds` is on fio's wall clock; the runtime is by its monotonic clock."""

    at_seconds: float
    runtime_seconds: float
    written_bytes: int = 0
    read_bytes: int = 0
    errors: int = 0
    write: Latencies = _NONE
    read: Latencies = _NONE
    sync: Latencies = _NONE

    def latencies(self) -> dict[str, Latencies]:
        return {Operation.WRITE.value: self.write, Operation.READ.value: self.read, Operation.SYNC.value: self.sync}


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two snapshots. `beyond` counts, by direction, latencies in fio's last bin, of unknown length."""

    counters: dict[str, int]
    latency: dict[str, Histogram]
    beyond: dict[str, int]


class WentBackError(ValueError):
    """A total of a later snapshot is less than that of an earlier one; the message names it."""


def read_snapshot(document: dict[str, Any]) -> Snapshot:
    """A snapshot from fio's JSON (`json+`), its jobs added up. Raises ValueError when it is not one."""
    try:
        jobs = document["jobs"]
        return Snapshot(
            at_seconds=_whole(document["timestamp_ms"]) / 1000,
            runtime_seconds=max((_whole(job[way]["runtime"]) for job in jobs for way in ("read", "write")), default=0)
            / 1000,
            written_bytes=sum(_whole(job["write"]["io_bytes"]) for job in jobs),
            read_bytes=sum(_whole(job["read"]["io_bytes"]) for job in jobs),
            errors=sum(_whole(job.get("total_err", _failed(job))) for job in jobs),
            write=_latencies(jobs, "write"),
            read=_latencies(jobs, "read"),
            sync=_latencies(jobs, "sync"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a report of fio's: {type(error).__name__}: {error}") from error


def _failed(job: dict[str, Any]) -> int:
    """Failed operations of a job, for a fio that does not count them: 1 if an error ended the job, else 0.

    EDEADLK is no such error: fio sets it when a job could not take part in fio's own statistics for five seconds at its
    end.
    """
    return int(job["error"] not in (0, errno.EDEADLK))


def _whole(value: Any) -> int:
    """Parse a count or a time as fio prints them. Raises ValueError for anything else, so that no sum is made of it."""
    if not isinstance(value, int) or not 0 <= value < _LARGEST:
        raise ValueError(f"not a report of fio's: {value!r:.40} stands where a count does")
    return value


def _latencies(jobs: list[dict[str, Any]], operation: str) -> Latencies:
    """Latencies of one operation over all jobs: total latency if fio binned it, else completion latency."""
    bins: dict[int, int] = {}
    longest = 0
    for job in jobs:
        described = job.get(operation, {})
        for measure in ("lat_ns", "clat_ns"):
            if counted := described.get(measure, {}).get("bins"):
                for nanoseconds, count in counted.items():
                    middle = _whole(int(nanoseconds))
                    bins[middle] = bins.get(middle, 0) + _whole(count)
                longest = max(longest, _whole(described[measure]["max"]))
                break
    return Latencies(bins, longest)


def difference(earlier: Snapshot, later: Snapshot) -> Difference:
    """Difference of two snapshots, from `earlier` to `later`. Raises WentBackError."""
    latency: dict[str, Histogram] = {}
    beyond: dict[str, int] = {}
    before = earlier.latencies()
    for operation, after in later.latencies().items():
        latency[operation], beyond[operation] = _histogram_between(operation, before[operation], after)
    counters = {
        "operations": latency["write"].count + latency["read"].count,
        "bytes": later.written_bytes + later.read_bytes - earlier.written_bytes - earlier.read_bytes,
        "errors": later.errors - earlier.errors,
        "written_bytes": later.written_bytes - earlier.written_bytes,
        "read_bytes": later.read_bytes - earlier.read_bytes,
        **{f"{operation}_operations": latency[operation].count for operation in OPERATIONS},
    }
    for name, value in counters.items():
        if value < 0:
            raise WentBackError(f"{name} by {-value}")
    return Difference(
        counters,
        {operation: histogram for operation, histogram in latency.items() if later.latencies()[operation].bins},
        {operation: count for operation, count in beyond.items() if count},
    )


def _histogram_between(operation: str, before: Latencies, after: Latencies) -> tuple[Histogram, int]:
    """Histogram of the latencies between two snapshots, and how many of them lie in fio's last bin.

    fio reports the longest latency so far exactly: if it grew and is beyond the last bin, one count is recorded at it.
    """
    values = sorted(before.bins.keys() | after.bins.keys())
    counts = [after.bins.get(value, 0) - before.bins.get(value, 0) for value in values]
    if counts and min(counts) < 0:
        raise WentBackError(f"latencies of {operation}")
    beyond = sum(count for value, count in zip(values, counts, strict=True) if value >= LAST_BIN_NANOSECONDS)
    if beyond and after.longest_nanoseconds > max(before.longest_nanoseconds, LAST_BIN_NANOSECONDS):
        counts[-1] -= 1
        values.append(after.longest_nanoseconds)
        counts.append(1)
    histogram = Histogram()
    histogram.record_many(np.array(values, dtype=np.int64), np.array(counts, dtype=np.int64))
    return histogram, beyond
