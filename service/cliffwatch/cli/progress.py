"""Progress display of a run: a bar on a terminal, a plain line every 10 s elsewhere."""

import sys
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cliffwatch.analysis.journal_series import UPDATED_NOTE, FindingKey, key_in
from cliffwatch.analysis.stalls import silence_words, stall_seconds, stall_words
from cliffwatch.analysis.thresholds import UPDATE_FACTOR
from cliffwatch.base.clock import Clock
from cliffwatch.base.units import format_byte_rate, format_rate, format_share
from cliffwatch.cli.live import EventSeen, RunNotice, RunSeen, Update, WindowSeen
from cliffwatch.cli.output import ABSENT, say, show_latency, show_seconds, visible
from cliffwatch.journal.event_text import EXPLAINING_TYPES, ROUTINE_EVENTS, event_text
from cliffwatch.model.latency_scale import at_least
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import Phase, phase_words
from cliffwatch.model.run_state import RunState

#: How often progress is printed as a line, and what is decided so far.
PLAIN_LINE_SECONDS, STANDING_SECONDS = 10.0, 600.0
#: Words for a note about an earlier finding, by the name of the note.
_FINDING_WORDS = {"finding_updated": "finding, updated", "finding_ended": "finding, over"}
#: Phases in the order in which a run goes through them; updates may arrive in another order.
_PHASES = [phase.value for phase in Phase]


class Notices:
    """Select the updates of a run that get a line of their own.

    While a finding grows, the journal has an update every few windows. Such an update gets a line only if the finding's
    ratio or worst ratio has changed by UPDATE_FACTOR since its last line, or if its series has changed.
    """

    def __init__(self) -> None:
        #: Series, ratio and worst ratio that were last printed for each finding.
        self._said: dict[FindingKey, tuple[str, float, float]] = {}

    def text(self, update: Update) -> str | None:
        if isinstance(update, EventSeen) and not self._is_news(update.event):
            return None
        return update_text(update)

    def _is_news(self, event: dict[str, Any]) -> bool:
        is_update = event["type"] == "note" and event["name"] == UPDATED_NOTE
        if not is_update and event["type"] != "finding":
            return True
        try:
            detail = {"kind": event["name"], **(event.get("detail") or {})}
            key, series = key_in(detail), str(detail["series"])
            size = float(detail["ratio"]), float(detail["worst_ratio"])
        except (KeyError, TypeError, ValueError):
            return True
        if key is None:
            return True
        last = self._said.get(key)
        if is_update and last is not None and last[0] == series and not _has_changed(last[1:], size):
            return False
        self._said[key] = (series, *size)
        return True


def _has_changed(last: tuple[float, float], present: tuple[float, float]) -> bool:
    return any(
        not before / UPDATE_FACTOR < now < before * UPDATE_FACTOR for before, now in zip(last, present, strict=True)
    )


@dataclass(slots=True)
class Picture:
    """Present state of a run, from the updates so far."""

    clock: Clock
    run: dict[str, Any] = field(default_factory=dict)
    window: dict[str, Any] | None = None
    errors: int = 0
    _seen_at: float = 0.0
    _window_at: float = 0.0
    _phase: str | None = None

    def take(self, update: Update) -> None:
        if isinstance(update, RunSeen):
            self.run = update.run
            self._seen_at = self.clock.monotonic()
            self._reach(update.run.get("phase"))
            if self.window is None:
                self.window, self._window_at = update.run.get("last_window"), self._seen_at
        elif isinstance(update, WindowSeen):
            self.window, self._window_at = update.window, self.clock.monotonic()
            self._reach(update.window["phase"])
            self.errors += int(update.window["counters"].get("errors", 0))
        elif isinstance(update, EventSeen) and update.event["type"] == "phase":
            self._reach(update.event["name"])

    def _reach(self, phase: str | None) -> None:
        if phase in _PHASES and (self._phase is None or _PHASES.index(phase) > _PHASES.index(self._phase)):
            self._phase = phase

    @property
    def phase(self) -> str:
        """Phase of the run while its load runs, such as soak; else the state of the run, such as queued."""
        state = str(self.run.get("state", ""))
        return phase_words(self._phase or state) if state == RunState.RUNNING else state

    @property
    def elapsed_seconds(self) -> float:
        """Elapsed time of the load: the API's last figure plus the time since then, at most the planned time."""
        elapsed = float(self.run.get("elapsed_seconds") or 0.0)
        if self.run.get("state") == RunState.RUNNING:
            elapsed += self.clock.monotonic() - self._seen_at
        planned = self.planned_seconds
        return elapsed if planned is None else min(elapsed, planned)

    @property
    def planned_seconds(self) -> float | None:
        planned = self.run.get("planned_seconds")
        return None if planned is None else float(planned)

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds until the end of load; None after it, or if no length is known."""
        planned = self.planned_seconds
        if planned is None or self.run.get("state") in (RunState.REPORTING, RunState.FINISHED):
            return None
        return max(0, round(planned) - round(self.elapsed_seconds))

    @property
    def ratio(self) -> float:
        planned = self.planned_seconds
        return min(1.0, self.elapsed_seconds / planned) if planned else 0.0

    def figures(self) -> str:
        """Text of latency, throughput and errors of the last window; for a finished run, figures from its report."""
        if self.run.get("state") == RunState.FINISHED and (of_run := self.run.get("figures")):
            return f"whole run: {run_figures(of_run, self.run.get('engine', ''))}"
        if self.window is None:
            return "no window yet"
        figures = window_figures(self.window, self.run.get("engine", ""))
        if self.run.get("state") == RunState.RUNNING:
            silence = silence_words(self.clock.monotonic() - self._window_at, span_seconds(self.window))
            figures = f"{silence}, before: {figures}" if silence else figures
        return f"{figures}  errors {self.errors}"

    def times(self) -> str:
        """Text of the elapsed time, and of the remaining time until the load ends."""
        left = self.remaining_seconds
        elapsed = f"elapsed {show_seconds(self.elapsed_seconds)}"
        return elapsed if left is None else f"{elapsed}  remaining {show_seconds(left)}"

    @property
    def standing(self) -> str:
        """Standing verdict of the run; empty where there is none."""
        return str(self.run.get("standing") or "")

    def line(self) -> str:
        return f"{self.phase}  {format_share(round(self.ratio, 2))}  {self.times()}  {self.figures()}"


def run_figures(figures: dict[str, Any], engine: str) -> str:
    """Text of the figures of a whole run, from its report."""
    p50, p99 = (_percentile(figures[name], engine) for name in ("p50_seconds", "p99_seconds"))
    bytes_per_second, operations_per_second = figures["bytes_per_second"], figures["operations_per_second"]
    throughput = ABSENT if bytes_per_second is None else format_byte_rate(bytes_per_second)
    operations = ABSENT if operations_per_second is None else format_rate(operations_per_second)
    return (
        f"{figures['latency'] or 'latency'} p50 {p50}  p99 {p99}  max {show_latency(figures['max_seconds'])}  "
        f"{throughput}  operations {operations}"
    )


def window_figures(window: dict[str, Any], engine: str) -> str:
    """Text of the latency and throughput of a window as the API shows it."""
    counters, latency = window["counters"], window["latency"]
    seconds = span_seconds(window)
    name = primary_latency(latency)
    summary = latency.get(name) or {}
    stall = stall_seconds(counters, window.get("gauges") or {}, seconds)
    throughput = format_byte_rate(counters["bytes"] / seconds) if seconds and "bytes" in counters else ABSENT
    operations = format_rate(counters.get("operations", 0) / seconds) if seconds else ABSENT
    p50, p99 = (_percentile(summary.get(each), engine) for each in ("p50", "p99"))
    measured = f"{name or 'latency'} p50 {p50}  p99 {p99}"
    return f"{measured if stall is None else stall_words(stall)}  {throughput}  operations {operations}"


def _percentile(seconds: float | None, engine: str) -> str:
    return f"{at_least(engine, seconds)}{show_latency(seconds)}"


def span_seconds(window: dict[str, Any]) -> float:
    """Length of a window of the API, in seconds: its bounds are RFC 3339 times or seconds since the epoch."""
    start, end = window["start"], window["end"]
    if isinstance(start, str):
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return float(end) - float(start)


class Display(Protocol):
    """Progress display: a context manager that shows updates."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, update: Update) -> None: ...


def display_for(clock: Clock) -> Display:
    """Display for stderr: a bar on a terminal that can move its cursor, else lines."""
    console = Console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        return BarDisplay(clock, console)
    return LineDisplay(clock)


class LineDisplay:
    """Progress as lines, for logs: one when the phase changes, and one every 10 s."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._picture = Picture(clock)
        self._notices = Notices()
        self._said: tuple[str, float] | None = None
        self._stood: tuple[str, float] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, update: Update) -> None:
        text = self._notices.text(update)
        if text:
            say(text)
        self._picture.take(update)
        now, phase = self._clock.monotonic(), self._picture.phase
        if self._said is None or phase != self._said[0] or now - self._said[1] >= PLAIN_LINE_SECONDS:
            self._said = (phase, now)
            say(self._picture.line())
        standing = self._picture.standing
        if standing and (self._stood is None or phase != self._stood[0] or now - self._stood[1] >= STANDING_SECONDS):
            self._stood = (phase, now)
            say(standing)


class BarDisplay:
    """Progress as a bar, for terminals: two lines that stay in place; notices scroll above them."""

    def __init__(self, clock: Clock, console: Console) -> None:
        self._picture = Picture(clock)
        self._notices = Notices()
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, update: Update) -> None:
        text = self._notices.text(update)
        if text:
            self._live.console.print(visible(text), markup=False, highlight=False)
        self._picture.take(update)

    def _render(self) -> RenderableType:
        picture = self._picture
        bar = Table.grid(padding=(0, 1), expand=True)
        for ratio in (None, 1, None, None):
            bar.add_column(ratio=ratio, no_wrap=True)
        bar.add_row(
            Text(f"{picture.phase:<12}", style="bold"),
            ProgressBar(total=1.0, completed=picture.ratio),
            f"{format_share(round(picture.ratio, 2)):>5}",
            picture.times(),
        )
        lines = [Text(picture.figures(), overflow="ellipsis", no_wrap=True), Text(visible(picture.standing))]
        return Group(bar, *lines[: 2 if picture.standing else 1])


def update_text(update: Update) -> str | None:
    """Line to print for an update; None if it gets no line."""
    if isinstance(update, RunNotice):
        return update.text
    if not isinstance(update, EventSeen) or update.event["name"] in ROUTINE_EVENTS:
        return None
    if update.event["type"] in EXPLAINING_TYPES:
        detail = update.event.get("detail") or {}
        if update.event["type"] == "alert":
            about = ", ".join(str(detail[name]) for name in ("status", "severity") if detail.get(name))
            return f"alert: {update.event['name']} ({about}): {detail.get('summary', '')}"
        kind = _FINDING_WORDS.get(update.event["name"], update.event["type"])
        return f"{kind}: {event_text(update.event['type'], update.event['name'], detail)}"
    return None


def interrupted(run_id: str) -> None:
    """Print how to watch or stop the run, when watching ends before the run does."""
    sys.stderr.write("\n")
    say(
        "Stopped watching; the run continues.",
        f"  watch again:  cliffwatch run watch {run_id}",
        f"  stop it:      cliffwatch run stop {run_id}",
    )
