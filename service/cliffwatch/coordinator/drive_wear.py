"""Write amplification of a run's drives, which its windows have as gauges: evidence of garbage collection in detection.

A thread polls Prometheus for the bytes that each drive counts, so that the load never waits for an answer. A drive
counts in large units and is scraped now and then: a window has the amplification over the last half minute or more
before its end. Where Prometheus does not answer, or a drive does not report what it writes to its media, windows have
none.
"""

import logging
import threading
from collections.abc import Callable, Mapping

from cliffwatch.base.rounds import Rounds
from cliffwatch.base.units import four_digits
from cliffwatch.model.window import EngineWindow
from cliffwatch.telemetry.connection import PrometheusConnection
from cliffwatch.telemetry.drive_health import BytesWritten, DriveSource, read_bytes_written
from cliffwatch.telemetry.prometheus import QueryFailed

#: Seconds between queries to Prometheus; and between the two scrapes of an amplification, at least and at most.
PERIOD_SECONDS, SPAN_SECONDS, LONGEST_SECONDS = 5.0, 30.0, 180.0
#: A last scrape that is older than this says nothing of a window: exporters are scraped once a minute or more often.
STALE_SECONDS = 75.0
#: Fewer bytes written in that time are too few for a ratio: a drive may count in units of 32 MB.
BYTES_LEAST = 256 << 20
_PATIENCE_SECONDS = 2.0
GAUGE = "write_amplification"

_LOG = logging.getLogger(__name__)


class DriveWear:
    """Write amplification of one run's drives. Use as a context manager: a thread polls Prometheus meanwhile."""

    def __init__(
        self, source: DriveSource, selector: str, numbers: Mapping[str, str], now: Callable[[], float]
    ) -> None:
        """`source`: where the drives' series are; without a server, windows get nothing. `selector` selects the drives.
        `numbers`: for each drive's name, the `DriveId` that its figures are named with. `now` returns run time."""
        self._source, self._selector, self._numbers, self._now = source, selector, numbers, now
        self._lock = threading.Lock()
        self._known: dict[str, dict[float, BytesWritten]] = {name: {} for name in numbers}
        self._connection = None if source.server is None else PrometheusConnection(source.server, _PATIENCE_SECONDS)
        self._has_failed = False
        self._rounds = Rounds("wear", PERIOD_SECONDS, self.ask, "the drives' written bytes could not be read")

    def __enter__(self) -> "DriveWear":
        if self._connection is not None and self._numbers:
            self._rounds.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._rounds.stop(2 * _PATIENCE_SECONDS) and self._connection is not None:
            self._connection.close()

    def ask(self) -> None:
        """Query Prometheus once and store what drives counted. The log has the first of several failed queries."""
        assert self._connection is not None, "started with a server only"
        try:
            with self._connection.connected() as prometheus:
                self.add(read_bytes_written(prometheus, self._source, self._selector, self._now(), LONGEST_SECONDS))
        except QueryFailed as error:
            if not self._has_failed:
                _LOG.warning("windows have no write amplification: %s", error)
            self._has_failed = True
        else:
            self._has_failed = False

    def add(self, scrapes: Mapping[str, Mapping[float, BytesWritten]]) -> None:
        """Add scrapes; some may have been added before. Drives that the run does not watch are ignored."""
        oldest = self._now() - 2 * LONGEST_SECONDS
        with self._lock:
            for name, known in self._known.items():
                known.update(scrapes.get(name, {}))
                self._known[name] = {moment: each for moment, each in known.items() if moment >= oldest}

    def add_to(self, window: EngineWindow) -> None:
        """Add the gauges `device_write_amplification`, of all drives together, and of several drives each one's."""
        with self._lock:
            written = {name: written_until(known, window.end) for name, known in self._known.items()}
        found = [(self._numbers[name], each) for name, each in written.items() if each is not None]
        if found and len(found) == len(self._numbers):
            together = BytesWritten(sum(each.host for _, each in found), sum(each.media for _, each in found))
            window.gauges[f"device_{GAUGE}"] = four_digits(together.amplification)
        if len(self._numbers) > 1:
            window.gauges.update({f"{number}.{GAUGE}": four_digits(each.amplification) for number, each in found})


def written_until(known: Mapping[float, BytesWritten], end: float) -> BytesWritten | None:
    """Bytes written between the last scrape before `end` and the latest one before it that they are enough since; None
    where scrapes are too old or too far apart, or bytes too few."""
    last = max((moment for moment in known if moment <= end), default=None)
    if last is None or end - last > STALE_SECONDS:
        return None
    for first in sorted(known, reverse=True):
        if not SPAN_SECONDS <= last - first <= LONGEST_SECONDS:
            continue
        written = BytesWritten(known[last].host - known[first].host, known[last].media - known[first].media)
        if written.host >= BYTES_LEAST and written.media > 0:
            return written
    return None
