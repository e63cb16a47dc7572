"""Kernel I/O counters of the drives below a target, per window, to compare with the engine's own counts.

Each window's line carries the totals over all drives, `device_…`; where there are several drives, the counters of each
as well, `<major:minor>.…`, to identify a drive that became slow. ARCHITECTURE.md lists the names.
"""

from collections.abc import Mapping, Sequence

from cliffwatch.base.clock import Clock, SystemClock
from cliffwatch.base.units import four_digits
from cliffwatch.machine.diskstats import CountersReset, DeviceCounters, read_counters, sum_counters
from cliffwatch.part.interval import Interval


class DeviceIo:
    """Traffic of a set of drives, interval by interval.

    An interval is empty when there are no drives, when one of them is gone, or when all their counters have been zero
    since they appeared, which shows that the kernel counts their I/O elsewhere.
    """

    def __init__(self, major_minors: Sequence[str], clock: Clock | None = None) -> None:
        self._major_minors = major_minors
        self._clock = clock or SystemClock()
        self._at, self._last = self._read()

    def restart(self) -> None:
        """Begin an interval now; traffic since the previous interval is not counted."""
        self._at, self._last = self._read()

    def since_last(self) -> Interval:
        """The interval that ends now; empty when it was not measured."""
        before, began = self._last, self._at
        self._at, self._last = self._read()
        seconds = self._at - began
        if before is None or self._last is None or seconds <= 0:
            return Interval()
        if sum_counters(self._last) == DeviceCounters():
            return Interval()
        try:
            moved = {number: now - before[number] for number, now in self._last.items()}
        except CountersReset:
            return Interval()
        return interval_of(moved, dict.fromkeys(moved, seconds))

    def _read(self) -> tuple[float, dict[str, DeviceCounters] | None]:
        counters = read_counters(self._major_minors) if self._major_minors else {}
        is_whole = bool(counters) and len(counters) == len(set(self._major_minors))
        return self._clock.monotonic(), counters if is_whole else None


def interval_of(
    moved: Mapping[str, DeviceCounters], seconds: Mapping[str, float], *, is_whole: bool = True
) -> Interval:
    """Counters and gauges of an interval. `moved`: increments of each drive's counters; `seconds`: time that they
    span. Both by major:minor, for at least one drive.

    `is_whole`: no drive is missing; otherwise there are no totals.
    """
    interval = Interval()
    if is_whole:
        total = sum_counters(moved)
        depth = sum(drive.weighted_milliseconds / 1000 / seconds[number] for number, drive in moved.items())
        interval.counters.update(
            {
                "device_written_bytes": total.write_bytes,
                "device_read_bytes": total.read_bytes,
                "device_write_operations": total.write_operations,
                "device_read_operations": total.read_operations,
                "device_write_milliseconds": total.write_milliseconds,
                "device_read_milliseconds": total.read_milliseconds,
                **_rare(total),
            }
        )
        interval.gauges["device_queue_depth"] = four_digits(depth)
    if len(moved) > 1 or not is_whole:
        _add_each(interval, moved, seconds)
    return interval


def _rare(total: DeviceCounters) -> dict[str, int]:
    """Flush and discard counters that are not zero: most windows have none."""
    counts = {
        "device_flush_operations": total.flush_operations,
        "device_flush_milliseconds": total.flush_milliseconds,
        "device_discard_operations": total.discard_operations,
        "device_discarded_bytes": total.discard_bytes,
        "device_discard_milliseconds": total.discard_milliseconds,
    }
    return {name: count for name, count in counts.items() if count}


def _add_each(interval: Interval, moved: Mapping[str, DeviceCounters], seconds: Mapping[str, float]) -> None:
    """Add counters of each drive, with short names, since each line of a run on sixteen drives has all of them."""
    for number, drive in moved.items():
        counts = {
            "written_bytes": drive.write_bytes,
            "write_milliseconds": drive.write_milliseconds,
            "read_operations": drive.read_operations,
            "read_milliseconds": drive.read_milliseconds,
        }
        interval.counters[f"{number}.write_operations"] = drive.write_operations
        interval.counters.update({f"{number}.{name}": count for name, count in counts.items() if count})
        interval.gauges[f"{number}.queue_depth"] = four_digits(drive.weighted_milliseconds / 1000 / seconds[number])
