"""A worker and a service that write to a disk until it fails, and a check that all they acknowledged is still there."""

import os
from collections.abc import Callable
from contextlib import closing
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

from sqlalchemy import event, select, text
from testkit import journals
from testkit.power_cuts import CutDisk

from cliffwatch.app.runs import RunService
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, WindowLog
from cliffwatch.journal.state import status_of
from cliffwatch.labs.bundle.pack import order_of
from cliffwatch.model.request import RunRequest
from cliffwatch.model.scope import Scope
from cliffwatch.model.settings import Settings, read_settings
from cliffwatch.model.window import EngineWindow
from cliffwatch.store.database import Database, open_database, upgrade
from cliffwatch.store.models import TokenRow
from cliffwatch.store.tokens import create_token

#: Something that was acknowledged (a window, event, token or run): its kind and its name.
Promise = tuple[str, str]
#: Windows that a worker writes before it ends and another one continues.
WINDOWS_OF_A_WORKER = 7
RUN = "measured"


def prepare(disk: Path) -> None:
    journals.queue(disk / "runs", RUN)
    upgrade(_settings(disk).database_url)


def write(disk: Path, promised: Connection, *, is_forgetful: bool = False) -> None:
    """Write until a call fails; whatever is acknowledged is sent to `promised` at once. `is_forgetful`: never sync."""
    if is_forgetful:
        for name in ("fsync", "fdatasync"):
            mock.patch.object(os, name, return_value=None).start()
    settings = _settings(disk)
    with closing(open_database(settings.database_url)) as database:
        if is_forgetful:
            event.listen(database.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
        for worker in count():
            _work(disk, lambda kind, name: promised.send((kind, name)), database)
            with database.session() as session:
                created, _ = create_token(session, f"token-{worker}", Scope.READ, 0.0)
            promised.send(("token", created.id))
            order = {
                "workload": journals.synthetic_workload().model_dump(mode="json"),
                "target": {"kind": "synthetic", "name": "nowhere"},
            }
            run_id, _ = RunService(settings, database, SystemClock()).submit(RunRequest.model_validate(order), "tester")
            promised.send(("run", run_id))


def cut_again_and_again(disk: CutDisk, seeds: range, *, is_forgetful: bool = False) -> tuple[list[Promise], str | None]:
    """Cut the power of a new disk once for each seed while it is written to, until a promise is broken.

    Returns what was promised, and what the cut broke of that, or None.
    """
    with disk.mounted() as directory:
        prepare(directory)
    promises: list[Promise] = []
    for seed in seeds:
        promises += disk.write_until_cut(write, seed, is_forgetful=is_forgetful)
        with disk.mounted() as directory:
            if (why := broken(directory, promises)) is not None:
                return promises, f"after cut {seed}: {why}"
    return promises, None


def broken(disk: Path, promises: list[Promise]) -> str | None:
    """Description of the promises that the disk breaks, or None. A later `write` continues with what the disk holds."""
    try:
        return _lost_windows(disk, promises) or _lost_runs(disk, promises) or _lost_tokens(disk, promises)
    except (Problem, OSError, ValueError) as error:
        return repr(error)


def _settings(disk: Path) -> Settings:
    return read_settings(state_directory=disk)


def _work(disk: Path, promise: Callable[[str, str], None], database: Database) -> None:
    directory = disk / "runs" / RUN
    log = WindowLog(directory, journals.START)
    with closing(log):
        first = 0 if log.last is None else log.last.seq + 1
        for number in range(first, first + WINDOWS_OF_A_WORKER):
            histogram = Histogram()
            histogram.record(2_000_000, 1000 + number)
            window = EngineWindow(
                start=journals.START + number,
                end=journals.START + number + 1,
                counters={"operations": 1000 + number},
                gauges={},
                latency={"write": histogram},
            )
            log.append(window, "soak")
            promise("window", str(number))
            EventLog(directory).append(Event(journals.START + number, EventType.NOTE, f"note-{number}-{os.getpid()}"))
            promise("event", f"note-{number}-{os.getpid()}")


def _lost_windows(disk: Path, promises: list[Promise]) -> str | None:
    reader = JournalReader(disk / "runs" / RUN)
    windows = list(reader.windows())
    if [window.seq for window in windows] != list(range(len(windows))):
        return f"windows {[window.seq for window in windows]}"
    for window in windows:
        counts = {name: histogram.count for name, histogram in reader.histograms(window).items()}
        if counts != {"write": 1000 + window.seq} or window.counters["operations"] != 1000 + window.seq:
            return f"window {window.seq} counts {counts}"
    events = {stored.event.name for stored in reader.events()}
    promised = {name for kind, name in promises if kind == "window"} - {str(window.seq) for window in windows}
    lost = promised | {name for kind, name in promises if kind == "event"} - events
    return f"{sorted(lost)} are gone" if lost else None


def _lost_runs(disk: Path, promises: list[Promise]) -> str | None:
    runs = disk / "runs"
    seen = {path.name for path in runs.iterdir() if not path.name.startswith(".")}
    for run_id in sorted(seen | {name for kind, name in promises if kind == "run"}):
        reader = JournalReader(runs / run_id)
        if order_of(reader).run_id != run_id or status_of(stored.event for stored in reader.events()) is None:
            return f"run {run_id} is not whole"
    return None


def _lost_tokens(disk: Path, promises: list[Promise]) -> str | None:
    with closing(open_database(_settings(disk).database_url)) as database, database.session() as session:
        checked = session.scalar(text("PRAGMA integrity_check"))
        known = set(session.scalars(select(TokenRow.id)))
    lost = {name for kind, name in promises if kind == "token"} - known
    if checked != "ok" or lost:
        return f"the database is {checked}, and tokens {sorted(lost)} are gone"
    return None
