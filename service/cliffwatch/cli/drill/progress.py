"""Progress of a drill: a line every few seconds with the figures of drive and client, and alerts as they arrive."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import httpx

from cliffwatch.analysis.stalls import stall_seconds, stall_words
from cliffwatch.base.clock import Clock
from cliffwatch.base.http_client import http_client
from cliffwatch.base.units import format_amplification, format_byte_rate, format_share
from cliffwatch.cli.live import RunSeen, Update, WindowSeen
from cliffwatch.cli.output import ABSENT, say, show_latency
from cliffwatch.cli.progress import Notices, Picture, span_seconds
from cliffwatch.labs.aging.lifecycle import AgingDrive
from cliffwatch.model.operation import primary_latency

LINE_SECONDS = 5.0
#: Length of the sliding window over which write amplification is computed.
AMPLIFICATION_SECONDS = 10.0
AMPLIFICATION_SPAN = f"last {AMPLIFICATION_SECONDS:g} s"
_TIMEOUT_SECONDS = 2.0
_PREFIX = "cliffwatch_drive_"


@dataclass(frozen=True, slots=True)
class DriveFigures:
    """Bytes written by the host and to flash since the drive was created, and the share of its blocks that are free."""

    host_bytes: float
    media_bytes: float
    clean_ratio: float


class DriveMeter:
    """Reads the drive's own metrics."""

    def __init__(self, drive: AgingDrive) -> None:
        self._url = f"{drive.url}/metrics"

    def read(self) -> DriveFigures | None:
        """Read the drive's counters; None when it does not answer in time, and the drill continues without them."""
        try:
            with http_client(_TIMEOUT_SECONDS) as client:
                text = client.get(self._url).text
        except httpx.HTTPError:
            return None
        values = {
            line.partition("{")[0].removeprefix(_PREFIX): float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith(_PREFIX) and "_bucket" not in line
        }
        return DriveFigures(
            values["host_written_bytes_total"], values["media_written_bytes_total"], values["free_blocks_ratio"]
        )


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """Phase of a window, and p99 in seconds of its primary latency: the one that matters most to a client."""

    phase: str
    p99_seconds: float | None


@dataclass(slots=True)
class DrillProgress:
    """Process updates of the run: print progress and notices, and collect the data that the drill is judged by."""

    meter: DriveMeter
    clock: Clock
    windows: list[WindowFigures] = field(default_factory=list)
    #: Pairs of phase and write amplification, in the order in which they were read.
    amplifications: list[tuple[str, float]] = field(default_factory=list)
    _picture: Picture = field(init=False)
    _notices: Notices = field(default_factory=Notices)
    _readings: deque[tuple[float, DriveFigures]] = field(default_factory=deque)
    _said_at: float | None = None

    def __post_init__(self) -> None:
        self._picture = Picture(self.clock)

    def take(self, update: Update) -> None:
        if reported := self._notices.text(update):
            say(f"  {reported}")
        self._picture.take(update)
        if isinstance(update, WindowSeen):
            self.windows.append(WindowFigures(self._picture.phase, _p99(update.window)))
            amplification = self._amplification()
            if amplification is not None:
                self.amplifications.append((self._picture.phase, amplification))
        now = self.clock.monotonic()
        is_due = self._said_at is None or now - self._said_at >= LINE_SECONDS
        if is_due and isinstance(update, WindowSeen | RunSeen):
            self._said_at = now
            say(self._line())

    def _amplification(self) -> float | None:
        """Write amplification: media bytes / host bytes over the last AMPLIFICATION_SECONDS.

        None if the host wrote nothing in that time, or if the drive does not answer.
        """
        figures = self.meter.read()
        if figures is None:
            return None
        now = self.clock.monotonic()
        self._readings.append((now, figures))
        while now - self._readings[0][0] > AMPLIFICATION_SECONDS:
            self._readings.popleft()
        first = self._readings[0][1]
        host_bytes = figures.host_bytes - first.host_bytes
        return (figures.media_bytes - first.media_bytes) / host_bytes if host_bytes > 0 else None

    def _line(self) -> str:
        picture = self._picture
        reported = [f"{picture.elapsed_seconds:4.0f} s  {picture.phase:<9}"]
        if picture.window is not None:
            seconds = span_seconds(picture.window)
            rate = picture.window["counters"].get("bytes", 0) / seconds if seconds else 0.0
            stall = _stall(picture.window)
            latency = f"p99 {show_latency(_p99(picture.window)):<8}" if stall is None else stall_words(stall)
            reported.append(f"{latency}  {format_byte_rate(rate)}")
        if self._readings:
            amplification = format_amplification(self.amplifications[-1][1]) if self.amplifications else ABSENT
            clean = self._readings[-1][1].clean_ratio
            written = f"write amplification {amplification} ({AMPLIFICATION_SPAN})"
            reported.append(f"{written}  free blocks {format_share(clean)}")
        return "  ".join(reported)


def _stall(window: dict[str, Any]) -> float | None:
    return stall_seconds(window["counters"], window.get("gauges") or {}, span_seconds(window))


def _p99(window: dict[str, Any]) -> float | None:
    """p99 of a window's primary latency, in seconds; None if it was not measured.

    None also for a stall: no whole operation completed, so that any latency is of a part of one, such as a write.
    """
    if _stall(window) is not None:
        return None
    latency = window["latency"]
    name = primary_latency(latency)
    value = (latency.get(name) or {}).get("p99")
    return None if value is None else float(value)
