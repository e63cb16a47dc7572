"""Journals of the parts of a run with several targets: a part's window is on disk before it is merged.

`parts/NAME/` in the run's journal has windows.jsonl and latency.hlog with the part's own percentiles. A worker that
resumes the run merges the windows that an earlier worker had not merged.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from cliffwatch.base import durable
from cliffwatch.journal import JournalReader, WindowLog, files
from cliffwatch.journal.windows import OverlapError, quantiles_in
from cliffwatch.model.window import EngineWindow

_TOLERANCE_SECONDS = 1e-6


class PartJournals:
    """Writer of the windows of a run's parts."""

    def __init__(self, run_directory: Path, parts: Iterable[str], run_start: float) -> None:
        """`run_start` in seconds since the epoch. Raises Problem(journal_unreadable), OSError."""
        self._logs = {}
        for part in parts:
            directory = run_directory / files.PARTS / part
            directory.mkdir(parents=True, exist_ok=True)
            self._logs[part] = WindowLog(directory, run_start)

    def append(self, part: str, window: EngineWindow, phase: str) -> None:
        """Append a window durably. On a full disk it is dropped here: only the run's merged window waits in memory."""
        try:
            self._logs[part].append(window, phase)
        except OverlapError:
            # A restarted engine measured this time again; the run's own journal records the refusal.
            return
        except OSError as error:
            if not durable.is_full(error):
                raise

    def close(self) -> None:
        for log in self._logs.values():
            log.close()


def windows_since(run_directory: Path, part: str, moment: float) -> Iterator[EngineWindow]:
    """Windows of a part that begin at `moment` or later, in seconds since the epoch."""
    reader = JournalReader(run_directory / files.PARTS / part)
    for window in reader.windows():
        if window.start >= moment - _TOLERANCE_SECONDS:
            latency = reader.histograms(window)
            counters, gauges = dict(window.counters), dict(window.gauges)
            known = {name: found for name, each in window.latency.items() if (found := quantiles_in(each))}
            yield EngineWindow(window.start, window.end, counters, gauges, latency, known)
