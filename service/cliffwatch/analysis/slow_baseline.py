"""A declared baseline that was slower than the run after it, so that degradations are hidden below its level."""

from collections.abc import Sequence
from statistics import median

from cliffwatch.analysis.finding import Notice, Role, Sample, Series
from cliffwatch.analysis.preprocessing import judged
from cliffwatch.analysis.primary_series import primary_series, rank_of
from cliffwatch.analysis.span_lengths import HOUR
from cliffwatch.analysis.thresholds import SLOW_BASELINE
from cliffwatch.base.units import format_latency, format_length
from cliffwatch.model.phase import Phase
from cliffwatch.model.series_name import series_words

#: The fewest windows of the baseline, and after it, that are compared.
_LEAST = 24


def slow_baseline(series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice]) -> str:
    """Sentence on the latency whose baseline was slower by `SLOW_BASELINE` than the fastest hour after it, for the
    operation that a client waits for first; empty where there is none, or no baseline was declared."""
    known = {one.name: one for one in series}
    for name in sorted(primary_series(series), key=lambda name: rank_of(known[name])):
        if known[name].role is not Role.LATENCY:
            continue
        measured = [each for each in judged(samples, notices) if each.values.get(name, 0.0) > 0]
        phases = [[each for each in measured if (each.phase == Phase.BASELINE) == of] for of in (True, False)]
        baseline, after = (_fastest_hour(name, windows) for windows in phases)
        if baseline is not None and after is not None and baseline[0] >= SLOW_BASELINE * after[0]:
            return (
                f"The baseline was slow: the {series_words(name)} of its median window was "
                f"{format_latency(baseline[0])}, and later {format_latency(after[0])} for {format_length(after[1])}, "
                "so that a rise up to the former is no finding."
            )
    return ""


def _fastest_hour(name: str, windows: Sequence[Sample]) -> tuple[float, float] | None:
    """Lowest median of an hour of windows, or of all where they are fewer, and how many seconds it is of. None where
    too few were measured."""
    if len(windows) < _LEAST:
        return None
    hours = [windows[first : first + HOUR] for first in range(0, max(1, len(windows) - HOUR + 1), HOUR)]
    return min((median(each.values[name] for each in hour), round(hour[-1].end - hour[0].start)) for hour in hours)
