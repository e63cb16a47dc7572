"""windows.jsonl and latency.hlog: the measurements, committed window by window."""

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.finite_json import json_text, lenient_json
from cliffwatch.base.histogram import QUANTILES, Histogram
from cliffwatch.journal import files
from cliffwatch.journal.checksum import checksum, is_sealed, opened, sealed
from cliffwatch.journal.recovery import read_from, tail_of_latency, tail_of_windows
from cliffwatch.model.window import OLDEST_OUTSTANDING, EngineWindow, is_count, is_level

#: Keys of a latency summary, in the order of `QUANTILES`.
QUANTILE_NAMES = ("p50", "p90", "p99", "p999", "p9999")
#: Largest offset in a file: 64 bits, of which one is the sign.
_LARGEST = 2**63 - 1
_LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'


@dataclass(frozen=True, slots=True)
class JournalWindow:
    """One committed window.

    `latency` maps a latency name to `count`, `max` and the percentiles p50…p9999 in seconds (null: nothing counted),
    read off the exact histogram; of one without a histogram, to the quantiles that are known, with a `count` of 0.
    `latency_range` is the range of bytes in latency.hlog that holds the histograms themselves, `latency_crc32` their
    checksum; None in older journals.
    """

    seq: int
    start: float
    end: float
    phase: str
    counters: dict[str, int]
    gauges: dict[str, float]
    latency: dict[str, dict[str, float | None]]
    latency_range: tuple[int, int]
    latency_crc32: str | None = None

    def to_line(self) -> str:
        return sealed(json_text(asdict(self)))

    @classmethod
    def from_line(cls, line: str | bytes) -> "JournalWindow":
        """Parse a window. Raises ValueError when the line is no window.

        A gauge that is null or not finite counts as not measured.
        """
        body, _ = lenient_json(opened(line))
        try:
            gauges = {name: value for name, value in body["gauges"].items() if value is not None}
            window = cls(**body | {"gauges": gauges, "latency_range": tuple(body["latency_range"])})
            fits = isinstance(window.seq, int) and 0 <= window.start < window.end <= files.LAST_MOMENT
            first, behind = window.latency_range
            counted = all(is_count(value) for value in window.counters.values())
            levelled = all(is_level(name, value) for name, value in gauges.items())
            measured = all(_is_summary(summary) for summary in window.latency.values())
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a window: {error!r}") from error
        if not fits or not 0 <= window.seq < _LARGEST:
            raise ValueError("not a window: seq, start and end do not make an interval")
        if not isinstance(first, int) or not isinstance(behind, int) or not 0 <= first <= behind <= _LARGEST:
            raise ValueError("not a window: latency_range is no range of bytes")
        if not counted or not levelled:
            raise ValueError("not a window: a counter or a gauge is no number, or one that nothing can have")
        if not measured:
            raise ValueError("not a window: a latency lacks its count or its maximum, or is of no length that time has")
        if not isinstance(window.phase, str) or not isinstance(window.latency_crc32, str | None):
            raise ValueError("not a window: phase or latency_crc32 is no text")
        if window.latency_crc32 is not None and not is_sealed(line):
            raise ValueError("not a window: it has lost its checksum, which is as old as that of its histograms")
        return window

    @property
    def seconds(self) -> float:
        """Measured time in seconds: less than the window's length if the engine reports so."""
        return min(self.gauges.get("measured_seconds", self.end - self.start), self.end - self.start)

    @property
    def operations(self) -> int | None:
        """Number of completed operations; None where the engine does not count them."""
        return self.counters.get("operations")

    @property
    def oldest_outstanding_seconds(self) -> float | None:
        """Age of the oldest outstanding operation at the window's end; None where the engine cannot know it."""
        return self.gauges.get(OLDEST_OUTSTANDING)

    @property
    def stalled(self) -> bool | None:
        """Whether no operation was completed although one was outstanding for at least half of the window.

        None where no operation was completed and the engine cannot know whether one was outstanding.
        """
        if self.operations != 0:
            return False
        age = self.oldest_outstanding_seconds
        return None if age is None else age >= self.seconds / 2


def _is_summary(summary: dict[str, float | None]) -> bool:
    """Whether a latency summary is valid: a count, a maximum, and seconds that are within the range of dates."""
    seconds = [value for name, value in summary.items() if name != "count" and value is not None]
    return (
        "max" in summary
        and _is_within(summary.get("count"), 0, _LARGEST)
        and all(_is_within(value, 0, files.LAST_MOMENT) for value in seconds)
    )


def _is_within(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def summarise(histogram: Histogram) -> dict[str, float | None]:
    summary: dict[str, float | None] = {"count": histogram.count, "max": histogram.max_seconds}
    return summary | dict(zip(QUANTILE_NAMES, histogram.percentiles_seconds(QUANTILES), strict=True))


def _summary_of(quantiles: Mapping[str, float]) -> dict[str, float | None]:
    return {"count": 0} | {name: quantiles.get(name) for name in ("max", *QUANTILE_NAMES)}


def quantiles_in(summary: Mapping[str, float | None]) -> dict[str, float]:
    """Quantiles of a latency without a histogram; empty for one with a histogram, whose percentiles are read off it."""
    if summary.get("count"):
        return {}
    return {name: value for name in ("max", *QUANTILE_NAMES) if (value := summary.get(name)) is not None}


class OverlapError(ValueError):
    """A window starts before the last committed one ended; committing it would count time twice."""


class WindowLog:
    """The only writer of a run's windows. Opening it removes the window in progress of a writer that died."""

    def __init__(self, directory: Path, run_start: float, *, is_durable: bool = True) -> None:
        """`run_start`: seconds since the epoch, for the interval log's header when the log is new. If not `is_durable`,
        windows are on the disk only once the log is closed.

        Raises Problem(journal_unreadable), and changes nothing, when the present files cannot be read.
        `recovered_bytes` were removed as the window in progress; `orphaned_bytes` belong to no readable window, and
        were kept.
        """
        self.recovered_bytes = 0
        self.orphaned_bytes = 0
        self.last: JournalWindow | None = None
        self._place, self._run_start = directory, run_start
        self._append = durable.append_durably if is_durable else durable.write_all
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._windows = _opened(directory / files.WINDOWS, flags)
        except (Problem, OSError):
            os.close(self._directory)
            raise
        try:
            self._latency = _opened(directory / files.LATENCY, flags)
        except (Problem, OSError):
            os.close(self._windows)
            os.close(self._directory)
            raise
        try:
            self._recover(directory)
            # The last line counts from now on, and its writer may have been killed before it was synced.
            os.fsync(self._windows)
            if os.fstat(self._latency).st_size == 0:
                # Durable with the first window; without one it is written again.
                durable.write_all(self._latency, _hlog_header(run_start).encode())
            durable.sync_directory(directory)
        except (Problem, OSError):
            self.close()
            raise

    def append(self, window: EngineWindow, phase: str) -> JournalWindow:
        """Commit a window durably.

        Raises OverlapError, and OSError when the disk is full; then nothing of the window is left in the files.
        """
        if self.last is not None and window.start < self.last.end - 1e-6:
            raise OverlapError(f"window from {window.start} starts before the last one ended, at {self.last.end}")
        histograms = sorted(window.latency.items())
        start_bytes = os.fstat(self._latency).st_size
        lines = "".join(_hlog_line(window, name, histogram) for name, histogram in histograms).encode()
        self._append(self._latency, lines)
        committed = JournalWindow(
            seq=0 if self.last is None else self.last.seq + 1,
            start=round(window.start, 6),
            end=round(window.end, 6),
            phase=phase,
            counters=dict(window.counters),
            gauges=dict(window.gauges),
            latency={name: summarise(histogram) for name, histogram in histograms}
            | {name: _summary_of(quantiles) for name, quantiles in sorted(window.quantiles.items())},
            latency_range=(start_bytes, start_bytes + len(lines)),
            latency_crc32=checksum(lines),
        )
        try:
            self._append(self._windows, committed.to_line().encode())
        except OSError:
            os.ftruncate(self._latency, start_bytes)
            raise
        self.last = committed
        return committed

    def displaced(self) -> str | None:
        """Name of a file that was moved out of the journal or replaced in it; None where both files are in place.

        The files are looked up by the directory's descriptor: if the whole directory was moved, its files count as in
        place.
        """
        for name, descriptor in ((files.WINDOWS, self._windows), (files.LATENCY, self._latency)):
            try:
                present = os.stat(name, dir_fd=self._directory)
            except OSError:
                return name
            if not os.path.samestat(present, os.fstat(descriptor)):
                return name
        return None

    def begun_again(self) -> "WindowLog":
        """New log on the files that the journal has now, with continued window numbers; this log is closed.

        Raises Problem and OSError as the constructor does.
        """
        again = WindowLog(self._place, self._run_start)
        if self.last is not None and (again.last is None or again.last.seq < self.last.seq):
            again.last = self.last
        self.close()
        return again

    def close(self) -> None:
        if self._append is durable.write_all:
            os.fsync(self._latency)
            os.fsync(self._windows)
        os.close(self._windows)
        os.close(self._latency)
        os.close(self._directory)

    def _recover(self, directory: Path) -> None:
        """Cut the uncommitted window off both files, and find the last committed one."""
        content = read_from(directory / files.WINDOWS)
        tail = tail_of_windows(content)
        damaged = False
        for line in content[: tail.keep_bytes].splitlines():
            try:
                window = JournalWindow.from_line(line)
            except ValueError:
                damaged = True  # JournalReader reports it; the windows around it still count
                continue
            # A repeated or misplaced window is not where the log continues.
            damaged = self.last is not None and window.seq <= self.last.seq
            if not damaged:
                self.last = window
        committed_bytes = self.last.latency_range[1] if self.last else 0
        histograms = tail_of_latency(directory / files.LATENCY, committed_bytes, lines_damaged=damaged)
        tail.settle(self._windows)
        histograms.settle(self._latency)
        self.recovered_bytes = tail.discarded_bytes + (histograms.discarded_bytes if self.last else 0)
        self.orphaned_bytes = tail.kept_bytes + histograms.kept_bytes


def _opened(path: Path, flags: int) -> int:
    """Open a file of the log. Raises Problem(journal_unreadable) for a directory in its place, otherwise OSError."""
    try:
        return os.open(path, flags, durable.PRIVATE_FILE)
    except IsADirectoryError as error:
        raise Problem(Code.JOURNAL_UNREADABLE, f"{path} is a directory; move it away") from error


def _hlog_header(run_start: float) -> str:
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(run_start))
    return (
        f"#[Histogram log format version 1.3]\n#[StartTime: {run_start:.3f} (seconds since epoch), {date}]\n" + _LEGEND
    )


def _hlog_line(window: EngineWindow, name: str, histogram: Histogram) -> str:
    """Line of latency.hlog for one latency of a window.

    Times are in seconds since the epoch; the maximum is in milliseconds, as HdrHistogram's own tools write it.
    """
    max_milliseconds = (histogram.max_seconds or 0.0) * 1000
    length = window.end - window.start
    return f"Tag={name},{window.start:.3f},{length:.3f},{max_milliseconds:.3f},{histogram.encode()}\n"
