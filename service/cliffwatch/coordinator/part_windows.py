"""Merge the windows of a run's parts into one window for each step of the grid.

Counters are added and histograms merged; each part's own values stand beside the sums, as `PART/name`, and its drives'
as `PART/NUMBER.name`. A part that reported nothing leaves a gap in its share: `measured_seconds` is the mean over all
parts, and nothing is scaled up.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import four_digits
from cliffwatch.model.drive_id import DriveId, drive_figure
from cliffwatch.model.part_names import of_part
from cliffwatch.model.window import OLDEST_OUTSTANDING, EngineWindow

#: How long after its end, in windows, a step is merged without late parts: windows in place of an engine that is silent
#: because its target hangs come two windows late.
PATIENCE_WINDOWS = 4.0
_TOLERANCE_SECONDS = 1e-6
#: Counters that are kept for each part beside the sum.
_OF_EACH = ("operations", "bytes", "errors", "skipped")
#: Gauges of which the run has the largest, the smallest, and the sum of its parts' values. Host gauges take the
#: largest, since parts of a machine differ only in when they read them. Other gauges are kept by part alone.
_LARGEST = frozenset({OLDEST_OUTSTANDING, "schedule_debt_seconds"})
_SMALLEST = frozenset({"growth_left_bytes"})
_SUMS = frozenset(
    {"device_queue_depth", "requested_operations_per_second", "requested_bytes_per_second", "target_rate"}
    | {"backlog_records", "backlog_bytes"}
)
_MEASURED = "measured_seconds"
#: Totals of a part that are its drive's counters too, if it has a single drive; zeros are left out, except of writes.
_OF_DRIVE = {
    "device_write_operations": "write_operations",
    "device_written_bytes": "written_bytes",
    "device_write_milliseconds": "write_milliseconds",
    "device_read_operations": "read_operations",
    "device_read_milliseconds": "read_milliseconds",
}


def merged(
    start: float,
    end: float,
    windows: Mapping[str, Sequence[EngineWindow]],
    drives: Mapping[str, Sequence[str]],
) -> EngineWindow:
    """Merge windows of parts into one from `start` to `end`. `windows`: the windows within it, by part; an absent part
    measured nothing. `drives`: numbers of the drives below each part of the run."""
    window = EngineWindow(start, end, {})
    measured = 0.0
    for part, own in windows.items():
        measured += sum(each.gauges.get(_MEASURED, each.end - each.start) for each in own)
        for each in own:
            _add_counters(window, part, each, drives[part])
            _add_latencies(window, part, each)
        if own:
            _add_gauges(window, part, own[-1].gauges, drives[part])
    share = measured / len(drives)
    if share < end - start - _TOLERANCE_SECONDS:
        window.gauges[_MEASURED] = round(share, 6)
    return window


def _add_counters(window: EngineWindow, part: str, own: EngineWindow, drives: Sequence[str]) -> None:
    def add(name: str, count: int) -> None:
        window.counters[name] = window.counters.get(name, 0) + count

    for name, count in own.counters.items():
        if (of_drive := drive_figure(name)) is not None:
            add(f"{DriveId(of_drive[0], part)}.{of_drive[1]}", count)
            continue
        add(name, count)
        if name in _OF_EACH:
            add(of_part(part, name), count)
        if len(drives) == 1 and name in _OF_DRIVE and (count or name == "device_write_operations"):
            add(f"{DriveId(drives[0], part)}.{_OF_DRIVE[name]}", count)


def _add_latencies(window: EngineWindow, part: str, own: EngineWindow) -> None:
    for name, histogram in own.latency.items():
        window.latency.setdefault(name, Histogram()).merge(histogram)
        key = of_part(part, name)
        if key in window.latency:
            histogram = Histogram.sum_of(window.latency[key], histogram)
        # Of one window of the part the histogram itself is kept, with its text: it is not encoded again.
        window.latency[key] = histogram
    # Quantiles cannot be merged: there are none of all parts, and of several windows of one the last one's are kept.
    window.quantiles.update({of_part(part, name): quantiles for name, quantiles in own.quantiles.items()})


def _add_gauges(window: EngineWindow, part: str, gauges: Mapping[str, float], drives: Sequence[str]) -> None:
    mine = window.gauges
    for name, value in gauges.items():
        if name in _LARGEST or name.startswith("host_"):
            mine[name] = max(value, mine.get(name, value))
            if name == OLDEST_OUTSTANDING:
                mine[of_part(part, name)] = value
        elif name in _SMALLEST:
            mine[name] = min(value, mine.get(name, value))
        elif name in _SUMS:
            mine[name] = four_digits(mine.get(name, 0.0) + value)
            if name == "device_queue_depth" and len(drives) == 1:
                mine[f"{DriveId(drives[0], part)}.queue_depth"] = value
        elif (of_drive := drive_figure(name)) is not None:
            mine[f"{DriveId(of_drive[0], part)}.{of_drive[1]}"] = value
        elif name != _MEASURED:
            mine[of_part(part, name)] = value


class PartWindows:
    """Windows of parts that wait to be merged, each part's in order."""

    def __init__(self, drives: Mapping[str, Sequence[str]], window_seconds: float, until: float) -> None:
        """`drives`: drives below each part. Windows that began before `until` were merged by an earlier worker."""
        self._drives = drives
        self._patience_seconds = PATIENCE_WINDOWS * window_seconds
        self._until = until
        self._waiting: dict[str, deque[EngineWindow]] = {part: deque() for part in drives}
        self._reached = dict.fromkeys(drives, float("-inf"))
        self._ended: set[str] = set()

    def take(self, part: str, window: EngineWindow) -> bool:
        """Add a window of a part; returns False if it is too late: the run's window was merged without it."""
        if window.start < self._until - _TOLERANCE_SECONDS:
            return False
        self._waiting[part].append(window)
        self._reached[part] = window.end
        return True

    def end(self, part: str) -> None:
        """Mark a part as ended: it sends no more windows."""
        self._ended.add(part)

    def due(self, now: float) -> list[EngineWindow]:
        """Merged windows that are complete or overdue, in order; `now` is on the run's time line."""
        found = []
        while any(self._waiting.values()):
            end = self._step_end()
            late = [part for part in self._drives if part not in self._ended and not self._has_reached(part, end)]
            if late and now < end + self._patience_seconds:
                break
            found.append(self._step(end))
        return found

    def _has_reached(self, part: str, end: float) -> bool:
        return self._reached[part] >= end - _TOLERANCE_SECONDS

    def _step_end(self) -> float:
        """End of the next merged window: the earliest end of a part's window that falls inside no other's."""
        end = min(queue[0].end for queue in self._waiting.values() if queue)
        while True:
            longer = max(self._ends_of_begun(end), default=end)
            if longer <= end + _TOLERANCE_SECONDS:
                return end
            end = longer

    def _ends_of_begun(self, end: float) -> Iterable[float]:
        for queue in self._waiting.values():
            for window in queue:
                if window.start >= end - _TOLERANCE_SECONDS:
                    break
                yield window.end

    def _step(self, end: float) -> EngineWindow:
        own: dict[str, list[EngineWindow]] = {}
        for part, queue in self._waiting.items():
            while queue and queue[0].start < end - _TOLERANCE_SECONDS:
                own.setdefault(part, []).append(queue.popleft())
        self._until = end
        return merged(min(windows[0].start for windows in own.values()), end, own, self._drives)
