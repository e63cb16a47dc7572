"""windows.jsonl and latency.hlog: the measurements, committed window by window."""

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from cliffwatch.base import durable
from cliffwatch.base.errors import Problem
from cliffwatch.base.finite_json import json_text, lenient_json
from cliffwatch.base.histogram import QUANTILES, Histogram
from cliffwatch.journal import files
from cliffwatch.journal.recovery import read_from, tail_of_latency, tail_of_windows
from cliffwatch.model.window import OLDEST_OUTSTANDING, EngineWindow

#: Keys of a latency summary, in the order of `QUANTILES`.
QUANTILE_NAMES = ("p50", "p90", "p99", "p999", "p9999")
_LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'


@dataclass(frozen=True, slots=True)
class JournalWindow:
    """One committed window.

    `latency` maps a latency name to `count`, `max` and the percentiles p50…p9999 in seconds (null: nothing counted),
    read off the exact histogram. `latency_range` is the bytes of latency.hlog that hold the histograms themselves.
    """

    seq: int
    start: float
    end: float
    phase: str
    counters: dict[str, int]
    gauges: dict[str, float]
    latency: dict[str, dict[str, float | None]]
    latency_range: tuple[int, int]

    def to_line(self) -> str:
        return json_text(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str | bytes) -> "JournalWindow":
        """Raises ValueError when the line is not a window. A gauge that is no number counts as not measured."""
        body, _ = lenient_json(line)
        try:
            gauges = {name: value for name, value in body["gauges"].items() if value is not None}
            window = cls(**body | {"gauges": gauges, "latency_range": tuple(body["latency_range"])})
            fits = isinstance(window.seq, int) and 0 <= window.start < window.end <= files.LAST_MOMENT
            first, behind = window.latency_range
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a window: {error!r}") from error
        if not fits:
            raise ValueError("not a window: seq, start and end do not make an interval")
        numbers = [first, behind, *window.counters.values(), *gauges.values()]
        if not all(isinstance(value, int | float) for value in numbers) or not 0 <= first <= behind:
            raise ValueError("not a window: a counter, a gauge or latency_range is no number")
        return window

    @property
    def seconds(self) -> float:
        """The seconds that were measured: less than the window's length where the engine says so."""
        return min(self.gauges.get("measured_seconds", self.end - self.start), self.end - self.start)

    @property
    def operations(self) -> int | None:
        """How many were completed; None where the engine does not count them."""
        return self.counters.get("operations")

    @property
    def oldest_outstanding_seconds(self) -> float | None:
        """How old the oldest operation was at the window's end; None where the engine cannot know."""
        return self.gauges.get(OLDEST_OUTSTANDING)

    @property
    def stalled(self) -> bool | None:
        """Whether nothing was completed although something was due for at least half of the window.

        None where nothing was completed and the engine cannot know whether anything was due.
        """
        if self.operations != 0:
            return False
        age = self.oldest_outstanding_seconds
        return None if age is None else age >= self.seconds / 2


def summarise(histogram: Histogram) -> dict[str, float | None]:
    summary: dict[str, float | None] = {"count": histogram.count, "max": histogram.max_seconds}
    return summary | dict(zip(QUANTILE_NAMES, histogram.percentiles_seconds(QUANTILES), strict=True))


class OverlapError(ValueError):
    """A window starts before the last committed one ended; committing it would count time twice."""


class WindowLog:
    """The one writer of a run's windows. Opening it removes the window that was in progress when a writer died."""

    def __init__(self, directory: Path, run_start: float) -> None:
        """`run_start`: seconds since the epoch, for the interval log's header when the log is new.

        Raises Problem(journal_unreadable) and changes nothing when what is there cannot be read. `recovered_bytes` were
        cut off as the window in progress; `orphaned_bytes` belong to no window that can be read, and were kept.
        """
        self.recovered_bytes = 0
        self.orphaned_bytes = 0
        self.last: JournalWindow | None = None
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._windows = os.open(directory / files.WINDOWS, flags, durable.PRIVATE_FILE)
        self._latency = os.open(directory / files.LATENCY, flags, durable.PRIVATE_FILE)
        try:
            self._recover(directory)
        except Problem:
            self.close()
            raise
        if os.fstat(self._latency).st_size == 0:
            durable.append_durably(self._latency, _hlog_header(run_start).encode())
        durable.sync_directory(directory)

    def append(self, window: EngineWindow, phase: str) -> JournalWindow:
        """Commit a window: on disk when this returns.

        Raises OverlapError, and OSError when the disk is full; then nothing of the window is left in the files.
        """
        if self.last is not None and window.start < self.last.end - 1e-6:
            raise OverlapError(f"window from {window.start} starts before the last one ended, at {self.last.end}")
        histograms = sorted(window.latency.items())
        start_bytes = os.fstat(self._latency).st_size
        lines = "".join(_hlog_line(window, name, histogram) for name, histogram in histograms).encode()
        durable.append_durably(self._latency, lines)
        committed = JournalWindow(
            seq=0 if self.last is None else self.last.seq + 1,
            start=round(window.start, 6),
            end=round(window.end, 6),
            phase=phase,
            counters=dict(window.counters),
            gauges=dict(window.gauges),
            latency={name: summarise(histogram) for name, histogram in histograms},
            latency_range=(start_bytes, start_bytes + len(lines)),
        )
        try:
            durable.append_durably(self._windows, committed.to_line().encode())
        except OSError:
            os.ftruncate(self._latency, start_bytes)
            raise
        self.last = committed
        return committed

    def close(self) -> None:
        os.close(self._windows)
        os.close(self._latency)

    def _recover(self, directory: Path) -> None:
        """Cut the window in progress off both files."""
        content = read_from(directory / files.WINDOWS)
        tail = tail_of_windows(content)
        damaged = False
        for line in reversed(content[: tail.keep_bytes].splitlines()):
            try:
                self.last = JournalWindow.from_line(line)
            except ValueError:
                damaged = True  # JournalReader reports it; the windows around it still count
                continue
            break
        committed_bytes = self.last.latency_range[1] if self.last else 0
        histograms = tail_of_latency(directory / files.LATENCY, committed_bytes, lines_damaged=damaged)
        tail.settle(self._windows)
        histograms.settle(self._latency)
        self.recovered_bytes = tail.discarded_bytes + (histograms.discarded_bytes if self.last else 0)
        self.orphaned_bytes = tail.kept_bytes + histograms.kept_bytes


def _hlog_header(run_start: float) -> str:
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(run_start))
    return (
        f"#[Histogram log format version 1.3]\n#[StartTime: {run_start:.3f} (seconds since epoch), {date}]\n" + _LEGEND
    )


def _hlog_line(window: EngineWindow, name: str, histogram: Histogram) -> str:
    """Times in seconds since the epoch; the maximum in milliseconds, as HdrHistogram's own tools write it."""
    max_milliseconds = (histogram.max_seconds or 0.0) * 1000
    length = window.end - window.start
    return f"Tag={name},{window.start:.3f},{length:.3f},{max_milliseconds:.3f},{histogram.encode()}\n"
