"""A declared baseline that was slower than the run after it, so that degradations are hidden below its level."""

from collections.abc import Sequence
from statistics import median

from cliffwatch.analysis.finding import Notice, Role, Sample, Series
from cliffwatch.analysis.preprocessing import judged
from cliffwatch.analysis.primary_series import primary_series, rank_of
from cliffwatch.analysis.span_lengths import HOUR
from cliffwatch.analysis.thresholds import SLOW_BASELINE
from cliffwatch.base.units import format_latency
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
        values = [(each.phase == Phase.BASELINE, each.values.get(name, 0.0)) for each in judged(samples, notices)]
        levels = [_fastest_hour([value for is_baseline, value in values if is_baseline == of]) for of in (True, False)]
        if None in levels:
            continue
        baseline, after = (level for level in levels if level is not None)
        if baseline >= SLOW_BASELINE * after:
            return (
                f"The baseline was slow: {series_words(name)} was {format_latency(baseline)} in it, and later "
                f"{format_latency(after)} for an hour, so that a rise up to the former is no finding."
            )
    return ""


def _fastest_hour(values: Sequence[float]) -> float | None:
    """Lowest median of an hour of windows; of all, where they are fewer. None where too few were measured."""
    found = [value for value in values if value > 0]
    if len(found) < _LEAST:
        return None
    hours = [found[first : first + HOUR] for first in range(0, max(1, len(found) - HOUR + 1), HOUR)]
    return min(median(hour) for hour in hours)
