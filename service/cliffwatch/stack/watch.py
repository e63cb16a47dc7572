"""Monitor whether the watchers that `up` started still answer, and record changes in the live runs.

Each watcher is checked every few seconds. A change is a note in the journal of every live run, so that the journal
shows from when to when a watcher was missing. A change that a journal has already is not recorded again, also not after
a restart of the service. Nothing here can stop a run.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Problem
from cliffwatch.base.http_client import http_client
from cliffwatch.base.rounds import Rounds
from cliffwatch.journal import Event, EventLog, EventType, files
from cliffwatch.journal.state import status_of
from cliffwatch.model.run_state import RunState
from cliffwatch.model.settings import Settings
from cliffwatch.stack.components import ALERTMANAGER, EXPORTERS, HOST, PROMETHEUS
from cliffwatch.stack.processes import ANSWER_TIMEOUT_SECONDS, Watcher, fault_of, watchers
from cliffwatch.store.database import Database
from cliffwatch.store.queries import unfinished_runs

_LOG = logging.getLogger(__name__)
PERIOD_SECONDS = 3.0
#: How long a stop waits for the round in progress, which may ask each watcher.
_STOP_SECONDS = 10.0
#: Failed checks in a row after which a watcher is down: under load, a watcher may fail to answer once.
FAULTS_IN_A_ROW = 2
#: Maximum age of Prometheus' newest sample: it scrapes itself every 10 s, and three missing in a row are no jitter.
STALE_SECONDS = 35.0
#: Maximum time without a watchdog alert, which comes every minute.
SILENCE_SECONDS = 300.0
NOTIFICATIONS = "notifications"
WATCHERS_NOTE, DOWN_NOTE, BACK_NOTE = "watchers", "watcher_down", "watcher_back"
_NEWEST_SAMPLE = 'timestamp(up{job="prometheus"})'
_NOT_STARTED = "it is not started"


@dataclass(slots=True)
class _Seen:
    """State of one watcher's process: when it first answered, and how often in a row it did not."""

    process: object
    since: float | None = None
    faults: int = 0


class Watch:
    """Background thread of the service that checks the availability of the watchers.

    `watchdog_at` returns when the last watchdog alert came, which proves that alerts are delivered.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        watchdog_at: Callable[[], float | None],
        *,
        stale_seconds: float = STALE_SECONDS,
    ) -> None:
        self._stale_seconds = stale_seconds
        self._settings = settings
        self._database = database
        self._clock = clock
        self._watchdog_at = watchdog_at
        self._began = clock.wall()
        self._seen: dict[str, _Seen] = {}
        self._present: dict[str, str] = {}
        self._impossible: frozenset[str] = frozenset()
        #: Reason why Prometheus stores nothing of an exporter's answers, by the exporter's name.
        self._refused: dict[str, str] = {}
        #: Whether each watcher is up according to a run's journal, by run.
        self._recorded: dict[str, dict[str, bool]] = {}
        self._client = http_client(ANSWER_TIMEOUT_SECONDS)
        self._rounds = Rounds("watch", PERIOD_SECONDS, self.tick, "the watchers could not be checked")

    def start(self) -> None:
        self._rounds.start()

    def stop(self) -> None:
        """Stop the thread, and wait a few seconds for the check in progress. May be called without a start."""
        if self._rounds.stop(_STOP_SECONDS):
            self._client.close()

    def up(self) -> dict[str, bool]:
        """Whether each watcher that was started, or should have been, is up, as of the last check."""
        return {name: not fault for name, fault in self._present.items()}

    def up_of_possible(self) -> dict[str, bool]:
        """As `up`, without watchers that this machine cannot use, such as the drive exporter without an NVMe drive."""
        return {name: is_up for name, is_up in self.up().items() if name not in self._impossible}

    def tick(self) -> None:
        """Check the watchers once, and record changes in the runs."""
        self._present = self._look()
        with self._database.snapshot() as session:
            idle = {RunState.QUEUED.value, RunState.FINISHED.value}
            runs = {row.id: Path(row.directory) for row in unfinished_runs(session) if row.state not in idle}
        self._recorded = {run_id: recorded for run_id, recorded in self._recorded.items() if run_id in runs}
        for run_id, directory in runs.items():
            self._record_changes(run_id, directory)

    def _look(self) -> dict[str, str]:
        """Fault of each watcher by name; empty where it is healthy."""
        found = watchers(self._settings)
        self._impossible = frozenset(name for name, watcher in found.items() if not watcher.is_possible)
        self._refused = self._refusals() if found.get(PROMETHEUS.name) else {}
        present = {name: self._fault(watcher) for name, watcher in found.items()}
        # A watcher that was there and is no longer recorded was stopped.
        present |= {name: _NOT_STARTED for name in self._present if name not in found and name != NOTIFICATIONS}
        if all(name in found and found[name].process for name in (PROMETHEUS.name, ALERTMANAGER.name)):
            present[NOTIFICATIONS] = self._silence()
        return present

    def _fault(self, watcher: Watcher) -> str:
        if watcher.process is None:
            return watcher.without
        seen = self._seen.get(watcher.name)
        if seen is None or seen.process != watcher.process:
            seen = self._seen[watcher.name] = _Seen(watcher.process)
        fault = fault_of(self._client, watcher)
        if not watcher.process.is_alive():
            return fault
        fault = fault or self._refused.get(watcher.name, "")
        if not fault and watcher.name == PROMETHEUS.name:
            fault = self._staleness(seen)
        if not fault:
            seen.faults = 0
            seen.since = seen.since or self._clock.wall()
            return ""
        seen.faults += 1
        before = self._present.get(watcher.name, "")
        return fault if before or seen.faults >= FAULTS_IN_A_ROW else ""

    def _refusals(self) -> dict[str, str]:
        """Prometheus' scrape errors by exporter, except connection errors: exporters that answer, but not acceptably.

        Empty where Prometheus does not answer.
        """
        url = f"http://{HOST}:{self._settings.prometheus_port}/api/v1/targets"
        try:
            targets = self._client.get(url, params={"state": "active"}).json()["data"]["activeTargets"]
            errors = {str(target["labels"]["job"]): str(target.get("lastError") or "") for target in targets}
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return {}
        return {
            exporter.name: refusal_words(errors[job])
            for job, exporter in EXPORTERS.items()
            if errors.get(job) and "connect" not in errors[job]
        }

    def _staleness(self, seen: _Seen) -> str:
        """Fault of a Prometheus that answers but stores nothing: its newest sample is old. Empty if there is none."""
        if seen.since is None:
            return ""
        url = f"http://{HOST}:{self._settings.prometheus_port}/api/v1/query"
        try:
            body = self._client.get(url, params={"query": _NEWEST_SAMPLE}).json()
            newest = max((float(sample["value"][1]) for sample in body["data"]["result"]), default=0.0)
        except (httpx.HTTPError, ValueError, KeyError, TypeError, IndexError) as error:
            return f"it does not answer queries: {error}"
        age_seconds = self._clock.wall() - max(newest, seen.since)
        return f"it has stored no sample for {age_seconds:.0f} s" if age_seconds > self._stale_seconds else ""

    def _silence(self) -> str:
        """Fault if Prometheus and Alertmanager are up, but no watchdog alert arrives; empty otherwise."""
        since = [self._seen[name].since for name in (PROMETHEUS.name, ALERTMANAGER.name)]
        if None in since:
            return ""
        last = max(self._began, self._watchdog_at() or 0.0, *(moment for moment in since if moment is not None))
        silent_seconds = self._clock.wall() - last
        return f"no alert has come for {silent_seconds:.0f} s" if silent_seconds > SILENCE_SECONDS else ""

    def _record_changes(self, run_id: str, directory: Path) -> None:
        up = self.up()
        if self._recorded.get(run_id, {}) == up:
            return
        try:
            record_changes(directory, self._present, self._clock.wall())
        except (OSError, Problem) as error:
            _LOG.warning("the watchers' state cannot be recorded in run %s: %s", run_id, error)
        else:
            self._recorded[run_id] = up


def refusal_words(error: str) -> str:
    """Text of a scrape error of Prometheus, with the cause first where it is known."""
    causes = {
        "sample limit exceeded": "it answers more samples than the sample_limit of its job, and all are dropped",
        "body size limit exceeded": "its answer is larger than the body_size_limit of its job, and is dropped",
        "Content-Type": "its answer has no Content-Type that Prometheus can read",
    }
    cause = next((words for said, words in causes.items() if said in error), "Prometheus cannot scrape it")
    return f"{cause} ({error})"


def record_changes(directory: Path, present: Mapping[str, str], at: float) -> list[Event]:
    """Append changes of watchers that a run's journal does not have yet, and return them.

    `present` has the fault of each watcher by name, empty for one that is up. Raises OSError when the journal cannot be
    written.
    """
    if not (directory / files.EVENTS).exists():
        raise FileNotFoundError(f"{directory / files.EVENTS} is not there")

    def decide(events: list[Event]) -> list[Event]:
        status = status_of(events)
        if status is None or status.state is RunState.FINISHED:
            return []
        believed = believed_up(events)
        if believed is None:
            there = sorted(name for name, fault in present.items() if not fault)
            without = {name: fault for name, fault in sorted(present.items()) if fault}
            return [Event(at, EventType.NOTE, WATCHERS_NOTE, {"there": there, "without": without})]
        changed = {name: fault for name, fault in present.items() if believed.get(name, False) == bool(fault)}
        return [_note(at, name, fault) for name, fault in sorted(changed.items())]

    return EventLog(directory).append_all(decide)


def believed_up(events: list[Event]) -> dict[str, bool] | None:
    """Whether each watcher is up according to a journal's events, by name; None when they record no watchers."""
    believed: dict[str, bool] | None = None
    for event in events:
        if event.type is not EventType.NOTE:
            continue
        if event.name == WATCHERS_NOTE:
            believed = dict.fromkeys(event.detail.get("without", {}), False)
            believed |= dict.fromkeys(event.detail.get("there", ()), True)
        elif event.name in (DOWN_NOTE, BACK_NOTE) and believed is not None:
            believed[str(event.detail.get("watcher"))] = event.name == BACK_NOTE
    return believed


def _note(at: float, name: str, fault: str) -> Event:
    if fault:
        return Event(at, EventType.NOTE, DOWN_NOTE, {"watcher": name, "reason": fault})
    return Event(at, EventType.NOTE, BACK_NOTE, {"watcher": name})
