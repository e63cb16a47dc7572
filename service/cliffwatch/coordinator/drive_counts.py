"""What drives of other hosts counted in each window, from the scrapes of a Prometheus.

Scrapes are late, and do not fall on the edges of windows. So the traffic of a window is that between two scrapes: the
newest one before it began, and the newest one before it ended. Between windows nothing is counted twice or left out,
nothing is filled in, and each window says how old its scrapes were at its end. A drive that was not scraped since the
window before has no counters in it.
"""

import threading
from collections.abc import Mapping

from cliffwatch.base.units import four_digits
from cliffwatch.machine.diskstats import CountersReset, DeviceCounters
from cliffwatch.model.window import DRIVES_AGE, DRIVES_SPAN
from cliffwatch.part.device_io import interval_of
from cliffwatch.part.interval import Interval

#: Traffic between two scrapes that are further apart belongs to no window: Prometheus or the host was away. Above twice
#: the longest interval of scrapes in use, a minute.
LONGEST_SECONDS = 150.0

Scrapes = Mapping[str, Mapping[float, DeviceCounters]]


class DriveCounts:
    """Counters of a run's drives. Scrapes are added by one thread while another requests windows."""

    def __init__(self, numbers: Mapping[str, str], lag_seconds: float) -> None:
        """`numbers`: by the drive's name, what its counters are named by. Scrapes of the last `lag_seconds` of a window
        may not be known at its end, and are those of the next."""
        self._numbers = numbers
        self._lag_seconds = lag_seconds
        self._lock = threading.Lock()
        self._scrapes: dict[str, dict[float, DeviceCounters]] = {name: {} for name in numbers}
        #: The scrape at which the window before ended; one that came late is then no window's beginning.
        self._reached: dict[str, float] = {}

    def add(self, scrapes: Scrapes) -> None:
        """Add scrapes, some of which may be known. Drives that are not the run's are ignored."""
        with self._lock:
            for name, known in self._scrapes.items():
                known.update(scrapes.get(name, {}))

    def newest(self) -> dict[str, float]:
        """When each drive was scraped last, of those that ever were."""
        with self._lock:
            return {name: max(known) for name, known in self._scrapes.items() if known}

    def between(self, start: float, end: float) -> Interval:
        """The interval of a window. Windows are requested in their order."""
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
