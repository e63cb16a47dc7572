"""Isolated slow windows: single rises far above the recent level that are part of no finding.

Every shared machine has some. They are stated with their times and sizes, and degrade nothing: what distinguishes them
from spikes that recur is in `chance.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cliffwatch.analysis.finding import Finding, FindingKind, Notice, Role, Sample, Series
from cliffwatch.analysis.online.levels import RollingLevel
from cliffwatch.analysis.preprocessing import judged
from cliffwatch.analysis.primary_series import primary_series, rank_of
from cliffwatch.analysis.span_lengths import HOUR, log_ratio
from cliffwatch.analysis.thresholds import EXCURSION_WINDOWS, ISOLATED_RATIO, LOAD_ROSE, ONE_EVENT_WINDOWS
from cliffwatch.base.units import format_latency, format_length, format_ratio
from cliffwatch.model.series_name import series_words

#: Windows whose median is the recent level, and the usual load; the fewest for either.
_LEVEL_WINDOWS, _LOAD_WINDOWS, _LEAST = HOUR // 2, 2 * HOUR, 30
#: The most rises that a sentence describes.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Isolated:
    """Isolated rise of one series: start and end in seconds, the highest level and its ratio to the recent level."""

    start: float
    end: float
    series: str
    level: float
    ratio: float


def isolated_rises(
    series: Sequence[Series],
    samples: Sequence[Sample],
    notices: Sequence[Notice],
    findings: Sequence[Finding],
    window_seconds: float,
) -> list[Isolated]:
    """Isolated rises of a run in order of time; of several operations at once, that which a client waits for first."""
    known = {one.name: one for one in series}
    names = sorted(
        (name for name in primary_series(series) if known[name].role is Role.LATENCY),
        key=lambda name: rank_of(known[name]),
    )
    counted = _with_usual_load(list(judged(samples, notices)), series)
    worse = [one for one in findings if one.kind is not FindingKind.RECOVERY]
    spans = [(one.onset, math.inf if one.until is None else one.until) for one in worse]
    reach = ONE_EVENT_WINDOWS * window_seconds
    kept: list[Isolated] = []
    for rise in (rise for name in names for rise in _rises_of(name, counted, reach)):
        is_brief = rise.end - rise.start <= EXCURSION_WINDOWS * window_seconds
        is_explained = any(begin - reach < rise.end and rise.start < end + reach for begin, end in spans)
        is_stated = any(one.start - reach < rise.end and rise.start < one.end + reach for one in kept)
        if is_brief and not is_explained and not is_stated:
            kept.append(rise)
    return sorted(kept, key=lambda rise: rise.start)


def isolated_sentence(rises: Sequence[Isolated], zero: float) -> str:
    """Sentence of the verdict on isolated rises, the highest first; empty without any. `zero`: the load's start."""
    if not rises:
        return ""
    highest = sorted(rises, key=lambda rise: -rise.ratio)[:_NAMED]
    said = [
        f"{series_words(rise.series)} {format_ratio(rise.ratio)} ({format_latency(rise.level)}) for "
        f"{format_length(rise.end - rise.start)} at {format_length(max(0.0, rise.start - zero))}"
        for rise in highest
    ]
    more = f" and {len(rises) - len(highest)} more" if len(rises) > len(highest) else ""
    count = "1 isolated rise is" if len(rises) == 1 else f"{len(rises)} isolated rises are"
    return f"{count} no finding, since chance may explain so few: {'; '.join(said)}{more}."


def _with_usual_load(samples: list[Sample], series: Sequence[Series]) -> list[Sample]:
    """Samples without those that came with more load than the hours before."""
    name = next((one.name for one in series if one.role is Role.RATE), None)
    if name is None:
        return samples
    usual, counted = RollingLevel(_LOAD_WINDOWS, _LEAST), []
    for sample in samples:
        rate, before = sample.values.get(name), usual.quantile(0.5)
        if rate:
            usual.add(rate)
        if rate is None or before is None or rate <= LOAD_ROSE * before:
            counted.append(sample)
    return counted


def _rises_of(name: str, samples: Sequence[Sample], reach: float) -> list[Isolated]:
    recent, rises = RollingLevel(_LEVEL_WINDOWS, _LEAST), list[Isolated]()
    for sample in samples:
        value = sample.values.get(name, 0.0)
        if not 0 < value < math.inf:
            continue
        level, before = math.log(value), recent.quantile(0.5)
        recent.add(level)
        if before is None or level - before < log_ratio(ISOLATED_RATIO):
            continue
        ratio = math.exp(level - before)
        if rises and sample.start - rises[-1].end <= reach:
            last = rises[-1]
            rises[-1] = replace(last, end=sample.end, level=max(last.level, value), ratio=max(last.ratio, ratio))
        else:
            rises.append(Isolated(sample.start, sample.end, name, value, ratio))
    return rises
