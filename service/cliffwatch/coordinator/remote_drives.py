"""Drives of other hosts that a run watches: poll a Prometheus server for their I/O counters during the load.

A thread polls, so that the load never waits for an answer. While Prometheus is down, windows have no counters of the
drives, and the journal records that they are missing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cliffwatch.base.rounds import Rounds
from cliffwatch.coordinator.drive_counts import LONGEST_SECONDS, DriveCounts
from cliffwatch.model.window import EngineWindow
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.connection import PrometheusConnection
from cliffwatch.telemetry.drives import RemoteDrive, read_counters
from cliffwatch.telemetry.prometheus import QueryFailed

#: Bounds of the interval between queries to Prometheus, which are made five times a window.
_LEAST_SECONDS, _MOST_SECONDS = 1.0, 5.0
#: Assumed delay from a scrape's timestamp until Prometheus has its samples: exporters usually answer faster.
_SCRAPE_SECONDS = 1.0
#: How much further back each query reaches than a window needs, in case an answer comes late.
_MORE_SECONDS = 30.0
_PATIENCE_SECONDS = 5.0
#: Failed queries in a row from which drives count as missing; fewer may be a restart of Prometheus.
_FAILURES = 3

MISSING, RESUMED = "drives_missing", "drives_resumed"


class RemoteDrives:
    """Watched drives of one run. Use as a context manager: a thread polls Prometheus meanwhile."""

    def __init__(
        self,
        server: PrometheusAddress,
        selector: str,
        drives: Sequence[RemoteDrive],
        window_seconds: float,
        now: Callable[[], float],
    ) -> None:
        """`now` returns run time, in seconds since the epoch."""
        self._selector, self._now = selector, now
        self._connection = PrometheusConnection(server, _PATIENCE_SECONDS)
        period = min(_MOST_SECONDS, max(_LEAST_SECONDS, window_seconds / 5))
        self._counts = DriveCounts({drive.name: drive.number for drive in drives}, period + _SCRAPE_SECONDS)
        self._names = [drive.name for drive in drives]
        self._failures: list[str] = []
        self._since = now()
        self._is_missing = False
        self._rounds = Rounds("drives", period, self.ask, "the drives' counters could not be read")

    def __enter__(self) -> "RemoteDrives":
        self.ask()
        self._rounds.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._rounds.stop(2 * _PATIENCE_SECONDS):
            self._connection.close()

    def ask(self) -> None:
        """Query Prometheus once and store the counters; a failed query is remembered for `look`."""
        span = LONGEST_SECONDS + _MORE_SECONDS
        try:
            with self._connection.connected() as prometheus:
                self._counts.add(read_counters(prometheus, self._selector, self._now(), span))
        except QueryFailed as error:
            self._failures = [*self._failures, str(error)][-_FAILURES:]
        else:
            self._failures = []

    def add_to(self, window: EngineWindow) -> None:
        """Add the drives' counters and gauges to a window, as far as they are known at its end."""
        self._counts.between(window.start, window.end).add_to(window)

    def look(self) -> tuple[str, dict[str, Any]] | None:
        """Event (name and detail) that drives are missing, or that all are there again; None without a change."""
        failures, newest, now = self._failures, self._counts.newest(), self._now()
        silent = [name for name in self._names if now - newest.get(name, self._since) > LONGEST_SECONDS]
        if len(failures) >= _FAILURES:
            reason, gone = failures[-1], self._names
        else:
            reason, gone = "Prometheus has no new samples of them", silent
        if bool(gone) == self._is_missing:
            return None
        self._is_missing = bool(gone)
        return (MISSING, {"drives": gone, "reason": reason}) if gone else (RESUMED, {})


def drive_facts(drive: RemoteDrive) -> dict[str, Any]:
    """Entry of a drive in facts.json, with the keys as for a drive of this machine, and the label `instance`."""
    return {
        "name": drive.name,
        "instance": drive.instance,
        "major_minor": drive.number,
        "model": drive.model or None,
        "firmware": drive.firmware or None,
        "serial": drive.serial or None,
        "wwn": drive.wwn or None,
    }


def drive_of(facts: Mapping[str, Any]) -> RemoteDrive:
    """Parse an entry that `drive_facts` made."""
    texts = {name: str(facts.get(name) or "") for name in ("instance", "model", "serial", "wwn", "firmware")}
    return RemoteDrive(str(facts["name"]), str(facts["major_minor"]), **texts)
