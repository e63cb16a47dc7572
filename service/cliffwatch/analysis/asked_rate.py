"""Achieved rate against a workload's target rate, which clients that wait for a slow target do not reach."""

from collections.abc import Iterable
from dataclasses import dataclass

from cliffwatch.base.units import format_number, format_share
from cliffwatch.journal.windows import JournalWindow
from cliffwatch.model.phase import UNJUDGED_PHASES
from cliffwatch.model.window import requested_rate

#: Achieved / target rate from which the target counts as reached: the rest is a window's edge, or a stall, which is
#: reported by itself.
REACHED_RATIO = 0.95


@dataclass(frozen=True, slots=True)
class AskedRate:
    """Target (`asked`) and achieved (`reached`) operations/s, over the measured time of windows with a target rate."""

    asked: float
    reached: float

    @property
    def ratio(self) -> float:
        return self.reached / self.asked


def asked_rate(windows: Iterable[JournalWindow]) -> AskedRate | None:
    """Target rate and achieved rate; None where there is no target rate, as for a load that runs as fast as it can."""
    seconds = asked = reached = 0.0
    for window in windows:
        rate = requested_rate(window.gauges)
        if rate and window.phase not in UNJUDGED_PHASES:
            seconds += window.seconds
            asked += rate * window.seconds
            reached += window.counters.get("operations", 0)
    return AskedRate(asked / seconds, reached / seconds) if asked > 0 else None


def not_reached(rate: AskedRate | None) -> str | None:
    """Sentence of the verdict on a target rate that was not reached; None if it was reached, or none was set."""
    if rate is None or rate.ratio >= REACHED_RATIO:
        return None
    return (
        f"The rate that was asked for was not reached: {format_number(rate.reached)} of {format_number(rate.asked)} "
        f"operations a second ({format_share(rate.ratio)})."
    )
