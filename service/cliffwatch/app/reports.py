"""Report service: make a run's report, read it, and draw it as a picture."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cliffwatch.app.index import index_report
from cliffwatch.base import durable
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.regular_files import read_regular
from cliffwatch.journal import EventLog, files
from cliffwatch.journal.state import mend_verdict
from cliffwatch.model.run_state import RunState, Verdict
from cliffwatch.report.picture.process import one_at_a_time, picture_of
from cliffwatch.report.process import make_report
from cliffwatch.report.provisional import place_of_report, provisional_directory
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import require_run

#: Maximum number of requests that wait for a report to be made, and for a picture: each occupies a request thread.
WAITING_LIMIT = 4


class _Turns:
    """Limits how many callers may execute one operation, or wait for it, at the same time."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._free = threading.BoundedSemaphore(WAITING_LIMIT)

    @contextmanager
    def take(self) -> Iterator[None]:
        """Count as a caller while the block lasts. Raises Problem(not_ready) at WAITING_LIMIT callers."""
        if not self._free.acquire(blocking=False):
            raise Problem(Code.NOT_READY, f"{WAITING_LIMIT} {self._what} are asked for at the moment; try again")
        try:
            yield
        finally:
            self._free.release()


@dataclass(frozen=True, slots=True)
class MadeReport:
    """Result of making a report. `is_provisional`: the run is not over, and its final report comes at its end."""

    verdict: Verdict
    is_provisional: bool


@dataclass(frozen=True, slots=True)
class ReportService:
    """Reports in the journals' directories. `cache` is a directory for files that need not be kept."""

    cache: Path
    database: Database
    clock: Clock
    _making: _Turns = field(default_factory=lambda: _Turns("reports"), init=False)
    _drawing: _Turns = field(default_factory=lambda: _Turns("pictures"), init=False)

    def make(self, run_id: str) -> MadeReport:
        """Make a run's report again from its journal, and set the verdict if it was not determined at the run's end.

        Raises Problem: not_found, not_ready, journal_unreadable, journal_unwritable, internal.
        """
        row = self._row(run_id)
        directory, is_over = Path(row.directory), _is_over(row)
        place = directory if is_over else provisional_directory(directory)
        _require_windows(directory, place)
        # A report takes a processor and more memory than anything else: only one at a time.
        with self._making.take(), one_at_a_time(self.cache / "reports"):
            # The run may be deleted while other reports are made, and while its own is.
            if directory.is_dir():
                place.mkdir(mode=durable.PRIVATE_DIRECTORY, exist_ok=True)
                made = make_report(directory, place)
        if not directory.is_dir():
            raise Problem(Code.NOT_FOUND, f"run {run_id} was deleted while its report was to be made")
        if made.conclusion is None or made.failure:
            code = Code.JOURNAL_UNWRITABLE if made.unwritable else Code.INTERNAL
            raise Problem(code, f"the report of run {run_id} could not be made: {made.failure}")
        if is_over:
            mend_verdict(EventLog(directory), made.conclusion, self.clock.wall())
            with self.database.session() as session:
                index_report(session, directory)
        return MadeReport(made.conclusion.verdict, is_provisional=not is_over)

    def read(self, run_id: str, name: str) -> bytes:
        """Content of a file of the report, by its name.

        Raises Problem: not_found, report_not_ready, journal_unreadable.
        """
        path = _place_of_report(self._row(run_id)) / name
        try:
            return read_regular(path)
        except FileNotFoundError as error:
            remedy = f"it is made when the load ends, and by `cliffwatch run report {run_id}`"
            raise Problem(Code.REPORT_NOT_READY, f"run {run_id} has no {name} yet; {remedy}") from error
        except OSError as error:
            remedy = f"remove it, then `cliffwatch run report {run_id}` makes it anew"
            raise Problem(Code.JOURNAL_UNREADABLE, f"{path} cannot be read ({error.strerror}); {remedy}") from error

    def picture(self, run_id: str) -> bytes:
        """The report as PNG, drawn when it is first asked for.

        Raises Problem: not_found, not_ready, report_not_ready.
        """
        row = self._row(run_id)
        directory = Path(row.directory)
        try:
            return picture_of(directory, self.cache / "matplotlib", _place_of_report(row), self._drawing.take)
        except Problem as problem:
            if directory.is_dir():
                raise
            raise Problem(Code.NOT_FOUND, f"run {run_id} was deleted while its picture was drawn") from problem

    def _row(self, run_id: str) -> RunRow:
        with self.database.snapshot() as session:
            return require_run(session, run_id)


def _is_over(row: RunRow) -> bool:
    return row.state == RunState.FINISHED.value


def _require_windows(directory: Path, place: Path) -> None:
    """Refuse to replace a report if windows.jsonl, which it was made from, is gone from the journal. Raises
    Problem(journal_unreadable)."""
    windows, report = directory / files.WINDOWS, place / files.REPORT_JSON
    if windows.is_file() or not report.is_file() or not _has_windows(report):
        return
    is_there = os.path.lexists(windows)
    why = f"{windows} is no file" if is_there else f"{windows} is gone"
    remedy = f"put it back, or move {report.name} away to have one made without it"
    raise Problem(Code.JOURNAL_UNREADABLE, f"{why}, and the report that is there was made from it; {remedy}")


def _has_windows(report: Path) -> bool:
    """Whether anything was measured by the time of a report; also of one that cannot be read, which may have been."""
    try:
        return bool(json.loads(read_regular(report)).get("coverage", {}).get("measured_seconds", 0) > 0)
    except (OSError, ValueError, AttributeError, TypeError):
        return True


def _place_of_report(row: RunRow) -> Path:
    return place_of_report(Path(row.directory), is_over=_is_over(row))
