"""Alert intake: append alerts to the journals of the runs that they are about.

An alert that names a run belongs to that run. An alert without a run, for example on an exporter that is down, belongs
to every run that is live at the moment. An alert that a journal has already is not written again: Alertmanager repeats
notifications, and sends one twice if the response was lost. Where a journal cannot be written, for example because its
disk is full, the notification is refused, and Alertmanager sends it again.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import Event, EventLog, EventType, files
from cliffwatch.journal.state import status_of
from cliffwatch.model.run_state import RunState
from cliffwatch.store.database import Database
from cliffwatch.store.queries import has_known_words, unfinished_runs

#: Alert that always fires: its arrival proves that alerts are delivered. It is recorded in no run.
WATCHDOG = "CliffwatchWatchdog"
INFORMATION = "info"
FIRING, RESOLVED = "firing", "resolved"
#: Maximum number of alerts that are recorded in one run, each with its resolution. More of them add no information, and
#: a client that may send alerts must not be able to fill the disk of the journals.
RUN_LIMIT = 2_000
LIMITED = "alerts_limited"
#: Limits for alerts without a run that are kept in memory: their number, and the time since the last notification.
#: Alertmanager repeats a firing alert every four hours.
STANDING_LIMIT = 200
STANDING_SECONDS = 5 * 3600.0

#: Key that repeated notifications of an alert have in common: fingerprint, start and status.
Key = tuple[str, float, str]


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of a notification. Times in seconds since the epoch; `ends_at` is None while it fires."""

    name: str
    status: str
    fingerprint: str
    starts_at: float
    ends_at: float | None
    severity: str
    summary: str
    description: str
    labels: dict[str, str]

    @property
    def run_id(self) -> str | None:
        return self.labels.get("run_id")

    def event(self, at: float) -> Event:
        """The alert as an event for a run's journal; `at` is when the service received the alert."""
        return Event(
            at,
            EventType.ALERT,
            self.name,
            {
                "status": self.status,
                "severity": self.severity,
                "summary": self.summary,
                "description": self.description,
                "fingerprint": self.fingerprint,
                "starts_at": self.starts_at,
                "ends_at": self.ends_at,
                "labels": self.labels,
            },
        )


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """How many alerts of a notification were recorded, repeated or left out: an alert of two runs counts twice.

    `left_out`: not recorded, since the run has RUN_LIMIT alerts already. `of_no_run`: alerts that no run got.
    """

    recorded: int = 0
    repeated: int = 0
    left_out: int = 0
    of_no_run: int = 0


@dataclass(frozen=True, slots=True)
class Recorded:
    """How many alerts were written to a run's journal, and how many were left out because of RUN_LIMIT."""

    written: int
    left_out: int


class AlertIntake:
    """Receiver of alert notifications: records them in journals, and counts them for the service's metrics."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("recorded", "repeated", "left_out", "of_no_run"), 0)
        self._watchdog_at: float | None = None
        #: Alerts without a run, by fingerprint, with the monotonic time of their last notification. Resolved ones are
        #: included: one of several Alertmanagers may still report such an alert as firing.
        self._standing: dict[str, tuple[float, Alert]] = {}

    def take(self, alerts: Sequence[Alert]) -> IntakeResult:
        """Record a notification: every alert is in the journals of its runs when this returns.

        Raises Problem(not_ready) if a journal cannot be written; the alerts are recorded in the other journals anyway.
        """
        now = self._clock.wall()
        self._remember(alerts)
        with self._database.snapshot() as session:
            rows = [row for row in unfinished_runs(session) if has_known_words(row)]
            runs = [(row.id, Path(row.directory), RunState(row.state)) for row in rows]
        recorded = repeated = left_out = 0
        placed: set[int] = set()
        failures: list[str] = []
        for run_id, directory, state in runs:
            wanted = [index for index, alert in enumerate(alerts) if _belongs(alert, run_id, state)]
            if not wanted:
                continue
            try:
                found = record(directory, [alerts[index].event(now) for index in wanted])
            except (OSError, Problem) as error:
                failures.append(f"the journal of run {run_id} cannot be written: {error}")
                continue
            if found is None:
                continue
            recorded += found.written
            left_out += found.left_out
            repeated += len(wanted) - found.written - found.left_out
            placed.update(wanted)
        result = IntakeResult(recorded, repeated, left_out, 0 if failures else len(alerts) - len(placed))
        self._count(result, now if any(alert.name == WATCHDOG for alert in alerts) else None)
        if failures:
            raise Problem(Code.NOT_READY, "; ".join(failures))
        return result

    def figures(self) -> tuple[dict[str, int], float | None]:
        """Numbers of alerts by result since the service started, and time of the last watchdog alert, if any."""
        with self._lock:
            return dict(self._counts), self._watchdog_at

    def standing(self) -> list[Alert]:
        """Firing alerts that name no run, received by this process within STANDING_SECONDS, newest first."""
        oldest = self._clock.monotonic() - STANDING_SECONDS
        with self._lock:
            known = [alert for heard, alert in self._standing.values() if heard >= oldest and alert.status == FIRING]
        return sorted(known, key=lambda alert: -alert.starts_at)

    def _remember(self, alerts: Sequence[Alert]) -> None:
        now = self._clock.monotonic()
        with self._lock:
            for alert in alerts:
                if alert.run_id is not None or alert.severity == INFORMATION:
                    continue
                _, before = self._standing.get(alert.fingerprint, (now, None))
                if before is not None and _age(before) > _age(alert):
                    continue
                self._standing.pop(alert.fingerprint, None)
                self._standing[alert.fingerprint] = (now, alert)
            for fingerprint in list(self._standing)[:-STANDING_LIMIT]:
                del self._standing[fingerprint]

    def _count(self, result: IntakeResult, watchdog_at: float | None) -> None:
        with self._lock:
            for name in self._counts:
                self._counts[name] += getattr(result, name)
            self._watchdog_at = watchdog_at or self._watchdog_at


def record(directory: Path, events: Sequence[Event]) -> Recorded | None:
    """Append the alert events that the journal does not have yet, and a note when RUN_LIMIT first leaves out an alert.

    Returns None, and appends nothing, when the run has finished. Raises OSError when the journal cannot be written,
    Problem(journal_unreadable) when it is missing.
    """
    over, left_out, noted = False, 0, 0
    if not (directory / files.EVENTS).exists():
        raise Problem(Code.JOURNAL_UNREADABLE, f"{directory / files.EVENTS} is not there")

    def decide(present: list[Event]) -> list[Event]:
        nonlocal over, left_out, noted
        status = status_of(present)
        over = status is None or status.state is RunState.FINISHED
        if over:
            return []
        known = {_key_of(event) for event in present if event.type is EventType.ALERT}
        fresh = {_key_of(event): event for event in events if not _is_known(_key_of(event), known)}
        taken = _within_limit(known, fresh)
        left_out = len(fresh) - len(taken)
        is_news = left_out > 0 and not any((event.type, event.name) == (EventType.NOTE, LIMITED) for event in present)
        notes = [Event(events[0].at, EventType.NOTE, LIMITED, {"limit": RUN_LIMIT})] if is_news else []
        noted = len(notes)
        return [*taken, *notes]

    written = len(EventLog(directory).append_all(decide)) - noted
    return None if over else Recorded(written, left_out)


def _age(alert: Alert) -> tuple[float, bool]:
    """Key that sorts the notifications of one alert: by its start, and `resolved` after `firing`."""
    return alert.starts_at, alert.status != FIRING


def _is_known(key: Key, known: set[Key]) -> bool:
    """Whether a journal (its keys are `known`) has this alert event already, or the same alert as resolved."""
    fingerprint, start, _ = key
    return key in known or (fingerprint, start, RESOLVED) in known


def _within_limit(known: set[Key], fresh: dict[Key, Event]) -> list[Event]:
    """The new alert events that RUN_LIMIT allows; the resolution of a recorded alert is always allowed."""
    begun = {(fingerprint, start) for fingerprint, start, _ in known}
    taken = []
    for (fingerprint, start, _), event in fresh.items():
        if (fingerprint, start) in begun or len(begun) < RUN_LIMIT:
            begun.add((fingerprint, start))
            taken.append(event)
    return taken


def _belongs(alert: Alert, run_id: str, state: RunState) -> bool:
    if alert.run_id is not None:
        return alert.run_id == run_id
    return state is not RunState.QUEUED and alert.severity != INFORMATION


def _key_of(event: Event) -> Key:
    return str(event.detail.get("fingerprint")), event.number("starts_at") or 0.0, str(event.detail.get("status"))
