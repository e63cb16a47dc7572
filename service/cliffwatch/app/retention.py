"""Retention: delete runs that have been finished for as long as CLIFFWATCH_RETENTION says, and are not pinned.

The wall clock decides nothing here, since it can be set: a run's age is the time for which services have observed it
finished (`base/observed_time.py`), kept in retention.json of the state directory. Without that file all ages begin
anew. Each deletion is announced an hour before, waits for an hour after the wall clock was set, and is a move to the
trash, from which the run can be moved back for a day.
"""

import json
import logging
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from cliffwatch.app.index import journals_in
from cliffwatch.app.library import RunLibrary
from cliffwatch.base import durable
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Problem
from cliffwatch.base.finite_json import lenient_json
from cliffwatch.base.observed_time import ObservedTime
from cliffwatch.base.processes import boot_id
from cliffwatch.base.regular_files import NotAFile, read_regular
from cliffwatch.base.rounds import Rounds
from cliffwatch.base.units import format_duration, format_share
from cliffwatch.model.run_state import RunState
from cliffwatch.model.settings import Settings
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow

_LOG = logging.getLogger(__name__)
FILE = "retention.json"
#: How long before its deletion a run is announced; how long none is deleted after the wall clock was set.
ANNOUNCED_SECONDS = 3600.0
SET_CLOCK_SECONDS = 3600.0
TRASH_SECONDS = 86_400.0
_PERIOD_SECONDS = 60.0
#: Observed time is saved this often, and with each change. In one boot nothing of it is lost either way.
_SAVE_SECONDS = 600.0
_NAMED_AT_MOST = 20


@dataclass(frozen=True, slots=True)
class _Seen:
    """When a run was first seen finished, in observed time. `since` is the wall time of its end, or of its import: with
    another one, as of a run that was deleted and imported again, it is another run."""

    at: float
    since: float


@dataclass(slots=True)
class _Known:
    """Moments in observed time: when each run was first seen finished, when its deletion was announced, when something
    was first seen in the trash, and when the wall clock was last seen to be set."""

    finished: dict[str, _Seen] = field(default_factory=dict)
    announced: dict[str, float] = field(default_factory=dict)
    trashed: dict[str, float] = field(default_factory=dict)
    clock_set: float | None = None


class Retention:
    """Periodic deletion of old runs. Moments and ages are in seconds of observed time."""

    def __init__(self, settings: Settings, database: Database, clock: Clock, library: RunLibrary) -> None:
        self._keep_seconds = settings.retention
        self._runs_directory = settings.runs_directory
        self._path = settings.state_directory / FILE
        self._database = database
        self._library = library
        saved = _read(self._path)
        self._time = ObservedTime(clock, boot_id(), saved.get("time"))
        self._known = _known_in(saved)
        self._saved = (self._known_json(), self._time.seconds())
        self._rounds = Rounds("retention", _PERIOD_SECONDS, self.expire, "old runs could not be deleted")

    def start(self) -> None:
        self._rounds.start()

    def stop(self) -> None:
        self._rounds.stop()

    @property
    def announced(self) -> Collection[str]:
        """Runs whose deletion is announced."""
        return self._known.announced

    def expire(self) -> None:
        """Observe which runs are finished, announce deletions, and move what is due to the trash; empty that."""
        now = self._time.seconds()
        if jumped := self._time.jump_seconds():
            self._known.clock_set = now
            wait = format_duration(SET_CLOCK_SECONDS)
            _LOG.warning("the wall clock was set by %.1f s: no run is deleted by retention for %s", jumped, wait)
        present = {path.name for path in journals_in(self._runs_directory)}
        may_delete = self._known.clock_set is None or now - self._known.clock_set >= SET_CLOCK_SECONDS
        # Without any journal their disk may be missing: what was observed of them stays.
        if present:
            self._announce(self._observe(present, now), now)
            if may_delete:
                self._delete_due(now)
        if may_delete:
            self._empty_trash(now)
        self._save(now)

    def _observe(self, present: set[str], now: float) -> set[str]:
        """Note which runs are finished, and return those that are pinned."""
        here_since = func.coalesce(RunRow.imported_at, RunRow.finished_at, 0.0)
        with self._database.snapshot() as session:
            rows = session.execute(select(RunRow.id, RunRow.state, RunRow.pinned, here_since)).all()
        before = self._known.finished
        # A journal that is not indexed yet, as after the database was lost, keeps its moment.
        indexed = {run_id for run_id, *_ in rows}
        found = {run_id: seen for run_id, seen in before.items() if run_id in present - indexed}
        for run_id, state, _, since in rows:
            if state == RunState.FINISHED.value and run_id in present:
                seen = before.get(run_id)
                found[run_id] = seen if seen is not None and seen.since == since else _Seen(now, since)
        self._known.finished = found
        return {run_id for run_id, _, is_pinned, _ in rows if is_pinned}

    def _announce(self, pinned: Collection[str], now: float) -> None:
        keep_seconds = math.inf if self._keep_seconds is None else self._keep_seconds
        finished = self._known.finished
        due = {
            run_id
            for run_id, seen in finished.items()
            if now - seen.at >= keep_seconds - ANNOUNCED_SECONDS and run_id not in pinned
        }
        new = sorted(due - self._known.announced.keys())
        self._known.announced = {run_id: self._known.announced.get(run_id, now) for run_id in due}
        if new:
            more = f" and {len(new) - _NAMED_AT_MOST} more" if len(new) > _NAMED_AT_MOST else ""
            _LOG.warning(
                "%d of %d finished runs (%s) are deleted in an hour, older than CLIFFWATCH_RETENTION; pin what is to "
                "stay: %s%s",
                len(new),
                len(finished),
                format_share(len(new) / len(finished)),
                ", ".join(new[:_NAMED_AT_MOST]),
                more,
            )

    def _delete_due(self, now: float) -> None:
        if self._keep_seconds is None:
            return
        for run_id, announced_at in list(self._known.announced.items()):
            if now - self._known.finished[run_id].at < self._keep_seconds or now - announced_at < ANNOUNCED_SECONDS:
                continue
            try:
                place = self._library.discard(run_id)
            except (Problem, OSError) as error:
                _LOG.warning("run %s is older than the retention and cannot be deleted: %s", run_id, error)
                continue
            del self._known.announced[run_id], self._known.finished[run_id]
            words = "run %s was moved to %s: it is older than CLIFFWATCH_RETENTION, %s, and not pinned"
            _LOG.info(words, run_id, place, format_duration(self._keep_seconds))

    def _empty_trash(self, now: float) -> None:
        names = self._library.trashed()
        self._known.trashed = {name: self._known.trashed.get(name, now) for name in names}
        for name, at in self._known.trashed.items():
            if now - at >= TRASH_SECONDS:
                self._library.empty(name)

    def _save(self, now: float) -> None:
        known = self._known_json()
        if known == self._saved[0] and now - self._saved[1] < _SAVE_SECONDS:
            return
        # Not synced: a power cut takes observed time, and makes no run older.
        with durable.replacement(self._path, is_durable=False) as file:
            file.write(json.dumps({"time": self._time.to_json(), **known}).encode() + b"\n")
        self._saved = known, now

    def _known_json(self) -> dict[str, Any]:
        return asdict(self._known)


def _read(path: Path) -> dict[str, Any]:
    """Content of the file; empty where there is none that can be read."""
    try:
        body, _ = lenient_json(read_regular(path))
    except FileNotFoundError:
        return {}
    except (OSError, NotAFile, ValueError) as error:
        _LOG.warning("%s cannot be read, so the ages of runs begin anew: %s", path, error)
        return {}
    return body if isinstance(body, dict) else {}


def _known_in(saved: dict[str, Any]) -> _Known:
    def moments(name: str) -> dict[str, float]:
        found = saved.get(name)
        return {str(key): float(at) for key, at in found.items() if _is_moment(at)} if isinstance(found, dict) else {}

    finished, clock_set = saved.get("finished"), saved.get("clock_set")
    seen = {
        str(run_id): _Seen(float(each["at"]), float(each["since"]))
        for run_id, each in (finished if isinstance(finished, dict) else {}).items()
        if isinstance(each, dict) and _is_moment(each.get("at")) and _is_moment(each.get("since"))
    }
    return _Known(
        seen,
        moments("announced"),
        moments("trashed"),
        float(str(clock_set)) if _is_moment(clock_set) else None,
    )


def _is_moment(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
