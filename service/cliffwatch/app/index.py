"""Index over journals: their contents as database tables that can be queried. The journals are authoritative.

`index_run` reads only what was appended to a journal since the last call, so that it costs the same at hour 36 as at
hour 1. `rebuild` recreates a lost database by the same reading; schedules and tokens are in no journal and stay as they
are.
"""

import logging
from collections import deque
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import delete, not_, or_, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from cliffwatch.analysis.journal_series import ENDED_NOTE, UPDATED_NOTE, FindingKey, key_in
from cliffwatch.app.orders import read_order
from cliffwatch.app.restored_workloads import restore_workloads
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.regular_files import reading
from cliffwatch.journal import Event, EventType, JournalFault, JournalReader, StoredEvent, files
from cliffwatch.journal.annotated import annotations_of
from cliffwatch.journal.state import MENDED_NOTE, RunStatus, advance, status_of
from cliffwatch.model.request import Submission
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import targets_text
from cliffwatch.report.charts.curve import curve_in, curve_of
from cliffwatch.report.figures import figures_of
from cliffwatch.store.database import take_turns
from cliffwatch.store.models import FindingRow, RunRow
from cliffwatch.store.queries import has_known_words, is_readable, is_target

_LOG = logging.getLogger(__name__)
#: Name prefix of directories that are no journals yet: of runs that are being created or imported.
UNFINISHED_PREFIX = "."
#: Maximum number of findings of the same kind, series and onset that are updated, newest first; no worker records more.
_ALIKE_LIMIT = 8
#: How many bytes before the indexed offset are read to find the last indexed event.
_LONGEST_LINE_BYTES = 1 << 16
#: Events that hold the findings of a run's report: the end of the run, and a verdict that was determined later.
_FINAL_EVENTS = ((EventType.STATE, RunState.FINISHED.value), (EventType.NOTE, MENDED_NOTE))


@dataclass(slots=True)
class IndexReport:
    """Result of indexing a directory of journals: how many were indexed, and messages on unreadable parts by run.

    `refused` has the runs that could not be indexed at all.
    """

    indexed: int = 0
    refused: set[str] = field(default_factory=set)
    faults: dict[str, list[str]] = field(default_factory=dict)


def index_run(session: Session, directory: Path, faults: list[JournalFault] | None = None) -> RunRow:
    """Update a run's row and its findings from its journal, and return the row; the caller's transaction commits it.

    Damaged events are skipped and added to `faults`. Raises Problem(journal_unreadable) when order.json or the state
    cannot be read at all.
    """
    reader = JournalReader(directory)
    take_turns(session, f"run {directory.name}")
    row = session.get(RunRow, directory.name)
    if row is not None and (not has_known_words(row) or _differs(directory, row.events_offset_bytes)):
        session.delete(row)
        session.flush()
        row = None
    if row is None:
        row = _insert(session, reader)
    else:
        _fold(
            session, row, _status_in(row), list(reader.events(row.events_offset_bytes, row.last_event_id + 1)), reader
        )
    try:
        last = reader.last_window()
    except OSError as error:
        reader.faults.append(JournalFault(files.WINDOWS, 0, f"cannot be read: {error.strerror}"))
        last = None
    if last is not None:
        row.windows, row.last_window_end = last.seq + 1, last.end
    row.directory = str(directory)
    if row.state == RunState.FINISHED.value and row.figures is None:
        _read_figures(row, reader)
    if faults is not None:
        faults.extend(reader.faults)
    session.flush()
    return row


def index_report(session: Session, directory: Path) -> RunRow:
    """Index a run whose report was made again, so that the row has the figures of the new report."""
    row = index_run(session, directory)
    if row.state == RunState.FINISHED.value:
        _read_figures(row, JournalReader(directory))
        session.flush()
    return row


def index_missing(session: Session, runs_directory: Path) -> IndexReport:
    """Index the journals of `unindexed`, in one transaction."""
    return index_all(session, *unindexed(session, runs_directory))


def unindexed(session: Session, runs_directory: Path) -> tuple[list[Path], set[str]]:
    """Journals that have no row yet, for example because the service was killed before it indexed them, or whose row is
    to be made anew; and the ids of these.

    Finished runs without figures are indexed again: their report may have been made later, or an earlier version did
    not store figures. A row is made anew if it cannot be read, was made from events that a power cut removed, or
    belongs to a journal in another place, as after the state directory was moved or copied.
    """
    has_all = or_(RunRow.state != RunState.FINISHED.value, RunRow.figures.is_not(None))
    columns = (RunRow.id, RunRow.target, RunRow.directory, RunRow.events_offset_bytes)
    others = {
        run_id
        for run_id, target, directory, offset_bytes in session.execute(select(*columns).where(is_readable()))
        if not is_target(target)
        or directory != str(runs_directory / run_id)
        or _are_others(runs_directory / run_id, offset_bytes)
    }
    known = set(session.scalars(select(RunRow.id).where(has_all, is_readable()))) - others
    damaged = set(session.scalars(select(RunRow.id).where(not_(is_readable()))))
    return [path for path in journals_in(runs_directory) if path.name not in known], damaged | others


def rebuild(session: Session, runs_directory: Path) -> IndexReport:
    """Recreate runs, findings and the workload versions that runs used from the journals, in one transaction.

    A journal that cannot be read keeps its row, if it has one: it may be readable again later.

    Workload versions that no run used are in no journal and are kept. If a journal has a different document under the
    same version number, the stored document moves to a new, higher version.
    """
    paths = journals_in(runs_directory)
    names = [path.name for path in paths]
    # A run that was accepted meanwhile has a journal already: the journal is made before the row.
    others = session.scalars(select(RunRow.id).where(RunRow.id.not_in(names)))
    gone = [run_id for run_id in others if not (runs_directory / run_id).is_dir()]
    session.execute(delete(FindingRow).where(FindingRow.run_id.in_(gone)))
    session.execute(delete(RunRow).where(RunRow.id.in_(gone)))
    session.expire_all()
    report = index_all(session, paths, anew=names)
    restored = restore_workloads(session, [path for path in paths if path.name not in report.refused])
    for name, message in restored.items():
        report.faults.setdefault(name, []).append(message)
    return report


def journals_in(runs_directory: Path) -> list[Path]:
    """The journals below a directory, without those that are still being created."""
    if not runs_directory.is_dir():
        return []
    return sorted(
        path for path in runs_directory.iterdir() if path.is_dir() and not path.name.startswith(UNFINISHED_PREFIX)
    )


def index_all(session: Session, paths: list[Path], anew: Collection[str]) -> IndexReport:
    """Index journals. `anew`: ids of runs whose rows are deleted and made again, unless the journal is unreadable."""
    report = IndexReport()
    for path in paths:
        faults: list[JournalFault] = []
        try:
            with session.begin_nested():
                row = session.get(RunRow, path.name) if path.name in anew else None
                if row is not None:
                    session.delete(row)
                    session.flush()
                index_run(session, path, faults)
            report.indexed += 1
        except (Problem, OSError) as error:
            report.refused.add(path.name)
            report.faults.setdefault(path.name, []).append(str(error))
        except OperationalError:
            raise  # It is the database that fails, not this journal.
        except Exception as error:
            # An unreadable journal, whatever is in it, must not prevent the indexing of others, nor a start.
            _LOG.debug("the journal of run %s cannot be indexed", path.name, exc_info=True)
            report.refused.add(path.name)
            report.faults.setdefault(path.name, []).append(f"it cannot be indexed: {error!r:.500}")
        for fault in faults:
            message = f"{fault.file}, line {fault.line}: {fault.message}"
            report.faults.setdefault(path.name, []).append(message)
    return report


def _insert(session: Session, reader: JournalReader) -> RunRow:
    directory = reader.directory
    order = read_order(reader)
    events = list(reader.events())
    first = next((stored.event for stored in events if stored.event.type is EventType.STATE), None)
    if first is None:
        raise Problem(Code.JOURNAL_UNREADABLE, f"{directory / files.EVENTS} holds no state that can be read")
    submission = Submission.from_detail(first.detail, str(order.target))
    imported_at = _imported_at(reader)
    row = RunRow(
        id=order.run_id,
        directory=str(directory),
        workload_name=order.workload.name,
        # Each service numbers its versions by itself.
        workload_version=submission.workload_version if imported_at is None else None,
        engine=order.workload.engine,
        target=targets_text(order.parts.values()),
        target_key=submission.target_key,
        request_digest=submission.request_digest,
        state=RunState.QUEUED.value,
        since=first.at,
        phase=None,
        verdict=None,
        reasons=[],
        stop_requested=False,
        created_at=order.created_at,
        started_at=None,
        finished_at=None,
        load_start=None,
        load_stop=None,
        planned_seconds=order.workload.phases.load_seconds,
        schedule_id=order.schedule_id,
        created_by=order.created_by,
        imported_at=imported_at,
        windows=0,
        last_window_end=None,
        figures=None,
        curve=None,
        labels={},
        note=None,
        pinned=False,
        events_offset_bytes=0,
        last_event_id=0,
    )
    session.add(row)
    session.flush()
    _fold(session, row, None, events, reader)
    return row


def _read_figures(row: RunRow, reader: JournalReader) -> None:
    """Set a run's figures from its report; without a readable report they are not changed."""
    if not (reader.directory / files.REPORT_JSON).exists():
        return
    try:
        report = reader.document(files.REPORT_JSON)
        figures, curve = figures_of(report), curve_in(report)
    except (Problem, KeyError, TypeError, AttributeError) as error:
        reader.faults.append(JournalFault(files.REPORT_JSON, 1, f"not a report: {error!r}"))
        return
    row.figures, row.curve = asdict(figures), curve or curve_of(reader.directory)


def _imported_at(reader: JournalReader) -> float | None:
    """Time at which a run was imported; None for a run of this service's own."""
    if not (reader.directory / files.IMPORTED).exists():
        return None
    try:
        return datetime.fromisoformat(str(reader.document(files.IMPORTED).get("at"))).timestamp()
    except (Problem, ValueError):
        # Whatever the file holds: its presence marks the run as not this service's own.
        return (reader.directory / files.IMPORTED).stat().st_mtime


def _fold(
    session: Session, row: RunRow, status: RunStatus | None, events: list[StoredEvent], reader: JournalReader
) -> None:
    findings: _Findings | None = None
    for stored in events:
        event = stored.event
        skipped: list[str] = []
        status = advance(status, event, skipped)
        reader.faults += [JournalFault(files.EVENTS, stored.id, message) for message in skipped]
        if event.type is EventType.FINDING:
            finding = FindingRow(run_id=row.id, event_id=stored.id, at=event.at, name=event.name, detail=event.detail)
            session.add(finding)
            if findings is not None:
                findings.add(finding)
        if (annotations := annotations_of(event)) is not None:
            row.labels, row.note, row.pinned = annotations.labels, annotations.note or None, annotations.pinned
        for detail in _restated(event):
            # Read once: a journal may update any number of findings, and the transaction blocks others meanwhile.
            findings = findings or _Findings.of(session, row.id)
            findings.update(detail)
        row.events_offset_bytes, row.last_event_id = stored.offset_bytes, stored.id
    if status is not None:
        write_status(row, status)


def _restated(event: Event) -> list[dict[str, Any]]:
    """Details in an event that update findings recorded by earlier events; empty for most events."""
    if event.type is EventType.NOTE and event.name in (UPDATED_NOTE, ENDED_NOTE):
        return [event.detail]
    if (event.type, event.name) not in _FINAL_EVENTS:
        return []
    lists = (event.detail.get(name) for name in ("findings", "unconfirmed"))
    return [each for found in lists if isinstance(found, list) for each in found if isinstance(each, dict)]


class _Findings:
    """Rows of a run's findings, by kind, series and onset."""

    def __init__(self) -> None:
        self._rows: dict[FindingKey, deque[FindingRow]] = {}

    @classmethod
    def of(cls, session: Session, run_id: str) -> "_Findings":
        found = cls()
        rows = select(FindingRow).where(FindingRow.run_id == run_id).order_by(FindingRow.event_id)
        for row in session.scalars(rows):
            found.add(row)
        return found

    def add(self, row: FindingRow) -> None:
        key = key_in(row.detail)
        if key is not None:
            self._rows.setdefault(key, deque(maxlen=_ALIKE_LIMIT)).append(row)

    def update(self, detail: dict[str, Any]) -> None:
        """Update the rows of the finding that `detail` names, if any: an imported journal may name an unknown one."""
        key = key_in(detail)
        if key is None:
            return
        for row in self._rows.get(key, ()):
            raised = dict(zip(("kind", "series", "onset"), key, strict=True))
            row.detail = row.detail | detail | {"raised": raised}


def status_in(directory: Path) -> RunStatus:
    """Status of a run from its journal. Raises Problem(journal_unreadable) when it records none."""
    status = status_of(stored.event for stored in JournalReader(directory).events())
    if status is None:
        raise Problem(Code.JOURNAL_UNREADABLE, f"{directory / files.EVENTS} holds no state that can be read")
    return status


def write_status(row: RunRow, status: RunStatus) -> None:
    row.state = status.state.value
    row.since = status.since
    row.started_at = status.started_at
    row.finished_at = status.finished_at
    row.load_start = status.load_start
    row.load_stop = status.load_stop
    row.verdict = status.verdict.value if status.verdict else None
    row.reasons = list(status.reasons)
    row.phase = status.phase
    row.stop_requested = status.stop_requested


def _status_in(row: RunRow) -> RunStatus:
    return RunStatus(
        state=RunState(row.state),
        since=row.since,
        created_at=row.created_at,
        started_at=row.started_at,
        load_start=row.load_start,
        load_stop=row.load_stop,
        finished_at=row.finished_at,
        verdict=VerdictName(row.verdict) if row.verdict else None,
        reasons=tuple(row.reasons),
        phase=row.phase,
        stop_requested=row.stop_requested,
    )


def _differs(directory: Path, offset_bytes: int) -> bool:
    """Whether a row is to be made anew of events.jsonl: that is shorter than what was indexed, so that the indexed
    events are not in it any more; or nothing of it is in the row (app/lost_journals.py)."""
    path = directory / files.EVENTS
    return path.exists() and (path.stat().st_size < offset_bytes or offset_bytes == 0)


def _are_others(directory: Path, offset_bytes: int) -> bool:
    """Whether events.jsonl differs from what was indexed up to `offset_bytes`: no readable event ends there.

    Events that were read before they were synced may be lost or different after a power cut.
    """
    begin = max(0, offset_bytes - _LONGEST_LINE_BYTES)
    try:
        with reading(directory / files.EVENTS) as file:
            file.seek(begin)
            content = file.read(offset_bytes - begin)
    except OSError:
        return False  # nothing is concluded from what cannot be read
    if len(content) < offset_bytes - begin:
        return True
    line = content.removesuffix(b"\n").rpartition(b"\n")[2]
    try:
        return not line or not Event.from_line(line)
    except ValueError:
        return len(line) < _LONGEST_LINE_BYTES
