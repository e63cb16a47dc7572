"""Firing alerts for the list of runs: those of each live run, and those that name no run.

The alerts of a run are in its journal, which is followed: each line is read once. An alert that names no run is in the
journals of all live runs, so that it is known after a restart too; without a live run, it is known only from its
notification.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cliffwatch.app.alerts import FIRING, Alert
from cliffwatch.journal import Event, EventType, JournalReader, files
from cliffwatch.web.runbooks import runbook_link

#: Maximum number of journals that are followed at the same time; the least recently requested is dropped.
FOLLOWED_RUNS = 256


@dataclass(frozen=True, slots=True)
class FiringAlert:
    """An alert as a page shows it. `starts_at` in seconds since the epoch; `runbook` is the path of its page."""

    name: str
    severity: str
    words: str
    starts_at: float
    fingerprint: str
    names_a_run: bool
    runbook: str | None = None

    @staticmethod
    def of(alert: Alert) -> "FiringAlert":
        words = " ".join(filter(None, (alert.summary, alert.description)))
        runbook = runbook_link(alert.name, alert.labels)
        return FiringAlert(
            alert.name, alert.severity, words, alert.starts_at, alert.fingerprint, alert.run_id is not None, runbook
        )

    @staticmethod
    def of_event(event: Event) -> "FiringAlert":
        reported = event.detail
        labels = reported.get("labels")
        labels = labels if isinstance(labels, dict) else {}
        return FiringAlert(
            event.name,
            str(reported.get("severity") or ""),
            " ".join(str(reported[name]) for name in ("summary", "description") if reported.get(name)),
            event.moment("starts_at") or event.at,
            str(reported.get("fingerprint")),
            "run_id" in labels,
            runbook_link(event.name, labels),
        )


@dataclass(slots=True)
class _Followed:
    offset_bytes: int = 0
    last_id: int = 0
    firing: dict[str, FiringAlert] = field(default_factory=dict)

    def read_on(self, directory: Path) -> None:
        for stored in JournalReader(directory).events(self.offset_bytes, self.last_id + 1):
            self.offset_bytes, self.last_id = stored.offset_bytes, stored.id
            if stored.event.type is EventType.ALERT:
                alert = FiringAlert.of_event(stored.event)
                self.firing.pop(alert.fingerprint, None)
                if stored.event.detail.get("status") == FIRING:
                    self.firing[alert.fingerprint] = alert


class FollowedAlerts:
    """Firing alerts of live runs, from their journals, of which a bounded number is followed."""

    def __init__(self) -> None:
        self._followed: OrderedDict[Path, _Followed] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, directory: Path) -> list[FiringAlert]:
        """Firing alerts of the run whose journal is in `directory`, the newest first."""
        with self._lock:
            followed = self._followed.pop(directory, None) or _Followed()
            path = directory / files.EVENTS
            if not path.exists() or path.stat().st_size < followed.offset_bytes:
                followed = _Followed()
            followed.read_on(directory)
            self._followed[directory] = followed
            while len(self._followed) > FOLLOWED_RUNS:
                self._followed.popitem(last=False)
            return sorted(followed.firing.values(), key=lambda alert: -alert.starts_at)


def of_no_run(standing: Sequence[Alert], by_run: Sequence[Sequence[FiringAlert]]) -> list[FiringAlert]:
    """Alerts that name no run, from notifications and from journals of runs, each once, the newest first."""
    reported = [alert for alerts in by_run for alert in alerts if not alert.names_a_run]
    known = {alert.fingerprint: alert for alert in [*reported, *map(FiringAlert.of, standing)]}
    return sorted(known.values(), key=lambda alert: -alert.starts_at)
