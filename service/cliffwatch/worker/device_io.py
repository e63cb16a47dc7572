"""What the kernel saw of the drives below a target, to hold against what an engine says that it did."""

from collections.abc import Sequence

from cliffwatch.drives.diskstats import CountersReset, DeviceCounters, read_counters, sum_counters


class DeviceIo:
    """Bytes moved by a set of drives, interval by interval. No drives, or one that is gone: nothing is said of it."""

    def __init__(self, major_minors: Sequence[str]) -> None:
        self._major_minors = major_minors
        self._last = self._read()

    def restart(self) -> None:
        """Begin an interval now; what was between is not counted."""
        self._last = self._read()

    def since_last(self) -> dict[str, int]:
        """`device_written_bytes` and `device_read_bytes` of the interval that ends now; empty when not measured."""
        before, self._last = self._last, self._read()
        if before is None or self._last is None:
            return {}
        try:
            moved = self._last - before
        except CountersReset:
            return {}
        return {"device_written_bytes": moved.write_bytes, "device_read_bytes": moved.read_bytes}

    def _read(self) -> DeviceCounters | None:
        counters = read_counters(self._major_minors)
        return sum_counters(counters) if counters and len(counters) == len(self._major_minors) else None
