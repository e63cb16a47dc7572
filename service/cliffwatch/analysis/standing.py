"""Standing verdict of a run that goes on: what is decided, what is open, and when the verdict is due."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cliffwatch.analysis.verdict import COVERAGE_MINIMUM
from cliffwatch.base.units import format_length, format_share

#: Within this time of its onset a cliff is raised: all of the 94 of `bench.detection --seeds 100` within 22 minutes.
SETTLED_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """A run that goes on. Times are seconds since the epoch.

    `now`: end of the last window. `judged_from` and `load_stop`: planned begin and end of the soak. `measured_ratio`:
    share of the load so far that was measured. `found`: sentences of the findings that degrade it, the first first.
    `has_limits`: whether its workload has limits. `written_over`: when as much will have been written as its drives are
    large, at the rate so far; None where that is not known.
    """

    now: float
    judged_from: float
    load_stop: float
    measured_ratio: float = 1.0
    found: Sequence[str] = ()
    has_limits: bool = False
    written_over: float | None = None


def standing_sentences(run: RunSoFar) -> str:
    """Standing verdict of the run, in sentences that no later window contradicts: what may still change is named as
    open."""
    due = f"The verdict is due about {_moment(run.load_stop)}."
    if run.found:
        more = f" {len(run.found) - 1} more." if len(run.found) > 1 else ""
        return f"Found so far: {run.found[0]}{more} The report says what the whole run confirms. {due}"
    if run.now <= run.judged_from:
        return f"Nothing is judged before the soak, which begins about {_moment(run.judged_from)}. {due}"
    points = ", ".join(_open_points(run))
    return f"{_without_finding(run)} Open: {points}. {due}" if points else f"{_without_finding(run)} {due}"


def _without_finding(run: RunSoFar) -> str:
    soak, settling = run.now - run.judged_from, format_length(SETTLED_SECONDS)
    if soak <= SETTLED_SECONDS:
        known = f"No finding in {format_length(soak)} of soak"
        return f"{known}; even a cliff may take {settling} to be distinguished from noise."
    return f"No cliff in the first {format_length(soak - SETTLED_SECONDS)} of soak."


def _open_points(run: RunSoFar) -> list[str]:
    points = []
    if run.now - run.judged_from > SETTLED_SECONDS:
        points = [f"what came in the last {format_length(SETTLED_SECONDS)}", "what is small or slow"]
    if run.measured_ratio < COVERAGE_MINIMUM:
        points.append(f"whether the run is valid, since {format_share(1 - run.measured_ratio)} of it was not measured")
    if run.has_limits:
        points.append("its limits")
    if run.written_over is not None and run.written_over > run.now:
        is_reached = run.written_over <= run.load_stop
        when = f"about {_moment(run.written_over)}" if is_reached else "which this run does not reach"
        points.append(f"a cliff once the drive was written over, {when}")
    return points


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%MZ}"
