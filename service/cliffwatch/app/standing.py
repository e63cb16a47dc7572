"""Standing verdict of a run that goes on, from its row, its findings and its journal."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from cliffwatch.analysis.standing import RunSoFar, standing_sentences
from cliffwatch.app.orders import read_order
from cliffwatch.base.errors import Problem
from cliffwatch.journal import JournalReader, JournalWindow, files
from cliffwatch.journal.spread import spread_lines
from cliffwatch.model.run_state import RunState
from cliffwatch.store.database import Database
from cliffwatch.store.models import FindingRow, RunRow
from cliffwatch.store.queries import findings_page

_FINDINGS_READ = 500
#: Windows by which the rate of writing and the measured time are estimated.
_SAMPLED = 60
_UNDER_LOAD = (RunState.RUNNING.value, RunState.INTERRUPTED.value)
_DEVICE_BYTES = "device_written_bytes"


def standing_of(database: Database, row: RunRow) -> str:
    """Standing verdict of a run, in sentences; empty before its first window, once its load is over, and for a journal
    that cannot be read."""
    if row.state not in _UNDER_LOAD or row.load_start is None or row.load_stop is None:
        return ""
    reader = JournalReader(Path(row.directory))
    last = reader.last_window()
    if last is None or last.end <= row.load_start:
        return ""
    try:
        workload = read_order(reader).workload
    except Problem:
        return ""
    with database.snapshot() as session:
        found = findings_page(session, _FINDINGS_READ, run_id=row.id)
    elapsed = last.end - row.load_start
    sampled = _sampled(reader, last)
    return standing_sentences(
        RunSoFar(
            now=last.end,
            judged_from=row.load_stop - workload.phases.soak,
            load_stop=row.load_stop,
            measured_ratio=min(1.0, (last.seq + 1) * fmean(each.seconds for each in sampled) / elapsed),
            found=[str(each.detail.get("summary") or each.name) for each in reversed(found) if _degrades(each, last)],
            has_limits=bool(workload.limits),
            written_over=_written_over(reader, sampled, row.load_start),
        )
    )


def _degrades(row: FindingRow, last: JournalWindow) -> bool:
    """Whether a finding is about the clients: one of a drive alone degrades only a run without any client."""
    is_of_client = row.detail.get("operation") is not None or "undone" in row.detail
    return row.name != "recovery" and (is_of_client or not last.latency)


def _sampled(reader: JournalReader, last: JournalWindow) -> list[JournalWindow]:
    """Windows from all over the load so far, the last one among them."""
    windows = [last]
    for line in spread_lines(reader.directory / files.WINDOWS, _SAMPLED):
        with suppress(ValueError):  # the report names damaged lines
            windows.append(JournalWindow.from_line(line))
    return windows


def _written_over(reader: JournalReader, sampled: Sequence[JournalWindow], load_start: float) -> float | None:
    """When as much will have been written to the run's drives as they are large, at the mean rate of windows from all
    over the load so far; None where no drive's size or no rate is known."""
    try:
        size = sum(int(drive["size_bytes"]) for drive in reader.facts().get("drives", []))
    except (Problem, KeyError, TypeError, ValueError):
        return None
    known = [window for window in sampled if _DEVICE_BYTES in window.counters]
    written = sum(window.counters[_DEVICE_BYTES] for window in known)
    seconds = sum(window.end - window.start for window in known)
    return load_start + size * seconds / written if size and written else None
