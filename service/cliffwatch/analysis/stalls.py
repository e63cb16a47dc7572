"""Stalls: windows in which no operation completed although one was due. They were measured, and are not gaps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cliffwatch.analysis.coverage import GAP_TOLERANCE, Gap
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_latency, format_length
from cliffwatch.journal.windows import JournalWindow
from cliffwatch.model.limits import Limit
from cliffwatch.model.phase import UNJUDGED_PHASES
from cliffwatch.model.window import OLDEST_OUTSTANDING

#: An operation that takes this long is a stall, however rare it is: a third of the time after which Linux resets a
#: drive that does not complete an NVMe command, and of the time that Kafka's clients and replicas wait for an answer.
LONGEST_SECONDS = 10.0
#: Window lengths without a window after which their absence is reported, as in the alert CliffwatchRunStalled.
SILENT_WINDOWS = 3


@dataclass(frozen=True, slots=True)
class Stall:
    """Consecutive windows in which no operation completed, from `start` to `end`, in seconds since the epoch.

    `oldest_seconds` is the highest age of the oldest operation that was due and not completed; None where the engine
    cannot know it, and then possibly no operation was due.
    """

    start: float
    end: float
    windows: int
    oldest_seconds: float | None

    @property
    def seconds(self) -> float:
        return self.end - self.start


def stall_seconds(counters: Mapping[str, int], gauges: Mapping[str, float], seconds: float) -> float | None:
    """Age of the oldest outstanding operation in a window that is a stall; `seconds` of the window were measured.

    0 where the age is not known; None for a window that is no stall.
    """
    age = gauges.get(OLDEST_OUTSTANDING)
    if counters.get("operations", 0) != 0 or (age is not None and age < seconds / 2):
        return None
    return age or 0.0


def stall_of(window: JournalWindow) -> float | None:
    """Age of the oldest outstanding operation in a journal window that is a stall, 0 if not known; else None."""
    return stall_seconds(window.counters, window.gauges, window.seconds)


def stall_words(oldest_seconds: float) -> str:
    """Text for a stall in place of a latency."""
    return (
        f"stalled, oldest operation due for {format_latency(oldest_seconds)}" if oldest_seconds else "nothing completed"
    )


def silence_words(seconds: float, window_seconds: float) -> str:
    """Text for `seconds` without a window; empty where the next window may still be on its way.

    An engine that reports through another program, such as fio, reports nothing while its target hangs.
    """
    return f"no window for {format_length(round(seconds))}" if seconds > SILENT_WINDOWS * window_seconds else ""


def outstanding(window: JournalWindow, limit: Limit) -> Histogram | None:
    """Histogram of a stalled window, for limits on latency: one operation, whose latency is its age so far.

    None for a window in which an operation completed, and for a limit on one kind of operation: the engine does not
    report which kind is waiting.
    """
    age = window.oldest_outstanding_seconds
    if limit.operation is not None or not window.stalled or age is None:
        return None
    return Histogram.from_values({round(age * 1e9): 1})


@dataclass(frozen=True, slots=True)
class Slowest:
    """Slowest operation: its latency in seconds, when its window ended, and whether it may have taken longer.

    `at`: in seconds since the epoch; in the evidence for a verdict, since the load's start or as in the table's rows.
    """

    seconds: float
    at: float
    at_least: bool = False


def slowest_in(windows: Iterable[JournalWindow], gaps: Sequence[Gap]) -> Slowest | None:
    """The slowest operation of the judged windows; a wait that may overlap a gap, which is not measured, is skipped."""
    slowest: Slowest | None = None
    for window in windows:
        seconds = max((summary["max"] or 0.0 for summary in window.latency.values()), default=0.0)
        if seconds <= (slowest.seconds if slowest else 0.0) or window.phase in UNJUDGED_PHASES:
            continue
        if not any(gap.start < window.end and window.start - seconds < gap.end for gap in gaps):
            slowest = Slowest(seconds, window.end)
    return slowest


def slow_sentence(slowest: Slowest | None) -> str | None:
    """Sentence of the verdict on the slowest operation; None if it is not known or was shorter than a stall."""
    if slowest is None or slowest.seconds < LONGEST_SECONDS:
        return None
    latency = f"{'at least ' if slowest.at_least else ''}{format_latency(slowest.seconds)}"
    return (
        f"An operation took {latency}, {format_length(slowest.at)} into the load: from "
        f"{format_length(LONGEST_SECONDS)} on that is a stall of the target, however rare it is."
    )


def unfinished_sentence(seconds: float) -> str:
    """Sentence of the verdict on a load that ended in a stall, with the age of its oldest operation."""
    return (
        f"The load ended in a stall: the oldest operation had been due for {format_length(seconds)} and was not "
        "completed, so it is in no percentile."
    )


def stalls_in(windows: Iterable[JournalWindow]) -> list[Stall]:
    """The stalls of a run, in order of time."""
    stalls: list[Stall] = []
    for window in windows:
        age = window.oldest_outstanding_seconds
        if window.operations != 0 or window.stalled is False:
            continue
        last = stalls[-1] if stalls else None
        if last is not None and window.start - last.end <= (window.end - window.start) * GAP_TOLERANCE:
            known = [each for each in (last.oldest_seconds, age) if each is not None]
            stalls[-1] = Stall(last.start, window.end, last.windows + 1, max(known, default=None))
        else:
            stalls.append(Stall(window.start, window.end, 1, age))
    return stalls
