"""I/O counters of drives of other hosts, for each window, from the scrapes of a Prometheus server.

Scrapes are late, and do not fall on the edges of windows. So a window's traffic is the difference of two scrapes: the
newest one before the window began, and the newest one before it ended. No traffic is counted twice or left out between
windows, nothing is interpolated, and each window has a gauge with the age of the scrapes at the window's end. A drive
without a new scrape since the previous window has no counters in the present one.
"""

import threading
from collections.abc import Mapping

from cliffwatch.base.units import four_digits
from cliffwatch.machine.diskstats import CountersReset, DeviceCounters
from cliffwatch.model.window import DRIVES_AGE, DRIVES_SPAN
from cliffwatch.part.device_io import interval_of
from cliffwatch.part.interval import Interval

#: Traffic between two scrapes that are further apart than this belongs to no window: Prometheus or the host was down.
#: More than twice the longest scrape interval in use, which is a minute.
LONGEST_SECONDS = 150.0

Scrapes = Mapping[str, Mapping[float, DeviceCounters]]


class DriveCounts:
    """Counters of a run's drives. Scrapes are added by one thread while another requests windows."""

    def __init__(self, numbers: Mapping[str, str], lag_seconds: float) -> None:
        """`numbers`: for each drive's name, the number that its counters are named with, in place of major:minor.
        `lag_seconds`: scrapes this recent may not have arrived when a window ends, so the next window counts them."""
        self._numbers = numbers
        self._lag_seconds = lag_seconds
        self._lock = threading.Lock()
        self._scrapes: dict[str, dict[float, DeviceCounters]] = {name: {} for name in numbers}
        #: Time of the previous window's last scrape, by drive: the next window begins at it, not at a later arrival.
        self._reached: dict[str, float] = {}

    def add(self, scrapes: Scrapes) -> None:
        """Add scrapes; some may have been added before. Drives that the run does not watch are ignored."""
        with self._lock:
            for name, known in self._scrapes.items():
                known.update(scrapes.get(name, {}))

    def newest(self) -> dict[str, float]:
        """Time of each drive's last scrape; a drive without any scrape is absent."""
        with self._lock:
            return {name: max(known) for name, known in self._scrapes.items() if known}

    def between(self, start: float, end: float) -> Interval:
        """Counters and gauges of the window from `start` to `end`. Windows must be requested in order."""
        moved: dict[str, DeviceCounters] = {}
        seconds: dict[str, float] = {}
        ages: list[float] = []
        with self._lock:
            for name, number in self._numbers.items():
                scrapes = self._scrapes[name]
                first = self._reached.get(name, _newest_before(scrapes, start - self._lag_seconds))
                last = _newest_before(scrapes, end - self._lag_seconds)
                if last is None:
                    continue
                self._reached[name] = last
                before = scrapes.get(first) if first is not None else None
                self._scrapes[name] = {moment: each for moment, each in scrapes.items() if moment >= last}
                if first is None or before is None or not 0 < last - first <= LONGEST_SECONDS:
                    continue
                try:
                    moved[number] = scrapes[last] - before
                except CountersReset:
                    continue
                seconds[number] = last - first
                ages.append(end - last)
        if not moved:
            return Interval()
        interval = interval_of(moved, seconds, is_whole=len(moved) == len(self._numbers))
        interval.gauges.update({DRIVES_AGE: four_digits(max(ages)), DRIVES_SPAN: four_digits(max(seconds.values()))})
        return interval


def _newest_before(scrapes: Mapping[float, object], moment: float) -> float | None:
    return max((each for each in scrapes if each <= moment), default=None)
