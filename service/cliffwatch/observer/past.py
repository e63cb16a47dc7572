"""Windows of the past of an observed system, from what a Prometheus kept of it.

Prometheus is asked for the newest sample of each series at the end of each window, so that a window costs it one sample
a series, however often it scrapes. Windows are those that a run would have had which observed it live, but for one in
which a counter is reset, which lacks what it had counted before, and one in which an instance is back, which lacks what
that counted.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cliffwatch.model.window import EngineWindow
from cliffwatch.observer.bounded import BoundedQueries
from cliffwatch.observer.increases import OLDEST_WINDOWS, Increases, Labels, Target, target_of
from cliffwatch.observer.system import ObservedSystem, is_quantile, of_source
from cliffwatch.telemetry.native_histograms import BOUND_LABEL
from cliffwatch.telemetry.prometheus import PrometheusAnswer

Array = NDArray[np.float64]
#: Windows that are asked for before the first: what it counts from lies in them.
WINDOWS_BEFORE = 3


@dataclass(frozen=True, slots=True)
class Samples:
    """Newest samples of one series, each of another scrape: `times` in milliseconds, rising, and `values`."""

    labels: dict[str, str]
    times: NDArray[np.int64]
    values: Array


def windows_of_the_past(
    system: ObservedSystem,
    prometheus: BoundedQueries,
    scraped: str,
    bounds: tuple[float, float],
    window_seconds: float,
    chunk: int,
) -> Iterator[EngineWindow | None]:
    """The windows between two moments on the grid, `chunk` of them with each query; None for one without a sample.

    `scraped`: selector of the `up` of the system's targets, whose times are those of the scrapes. Raises QueryFailed.
    """
    step = round(window_seconds * 1000)
    start, stop = (round(each * 1000) for each in bounds)
    for begin in range(start, stop, chunk * step):
        end = min(begin + chunk * step, stop)
        ends = np.arange(begin + step, end + 1, step)
        asked = (begin - (WINDOWS_BEFORE - 1) * step, end, step)
        scrapes = {target_of(each): each for each in prometheus.query_range(f"timestamp({scraped})", *asked)}
        found = {
            name: [fresh(each, scrapes) for each in of_source(name, prometheus.query_range(selector, *asked))]
            for name, selector in system.selectors.items()
        }
        increases = {
            name: _increases_by_window(series, found, ends, step)
            for name, series in found.items()
            if not is_quantile(name)
        }
        levels = {name: _highest(series, ends, step) for name, series in found.items() if is_quantile(name)}
        for index, at in enumerate(ends.tolist()):
            yield system.assembled(
                {name: each[index] for name, each in increases.items()},
                {name: float(each[index]) for name, each in levels.items() if not np.isnan(each[index])},
                (at - step) / 1000,
                at / 1000,
            )


def fresh(answer: PrometheusAnswer, scrapes: Mapping[Target, PrometheusAnswer]) -> Samples:
    """Samples of a series at the times of their scrapes; where those are not known, at those that were asked for.

    Prometheus repeats the newest sample for five minutes where it was away itself.
    """
    times, values = np.asarray(answer.times), np.asarray(answer.values, dtype=np.float64)
    scrape = scrapes.get(target_of(answer))
    if scrape is not None:
        place = np.searchsorted(scrape.times, times)
        is_known = (place < len(scrape.times)) & (np.take(scrape.times, place, mode="clip") == times)
        known = np.rint(np.take(scrape.values, place, mode="clip") * 1000).astype(np.int64)
        times = np.where(is_known, known, times)
    times, first = np.unique(times, return_index=True)
    return Samples(answer.labels, times, values[first])


def _increases_by_window(
    series: Sequence[Samples], found: Mapping[str, Sequence[Samples]], ends: NDArray[np.int64], step: int
) -> list[Increases]:
    """Increases of the counters of one source, by window. Counters of one bucket, of series with the same buckets,
    are one."""
    scraped: dict[tuple[str, str], list[NDArray[np.int64]]] = defaultdict(list)
    for each in (one for many in found.values() for one in many):
        scraped[_target(each)].append(each.times)
    known = {target: np.unique(np.concatenate(times)) for target, times in scraped.items()}
    rows = [_increase(each, known[_target(each)], ends, step) for each in series]
    if not rows:
        return [Increases({}, 0) for _ in ends]
    counts = np.stack([row.counts for row in rows])
    is_there = ~np.isnan(counts)
    ages = np.where(is_there, ends - np.stack([row.times for row in rows]), 0).max(axis=0) / 1000
    spans = np.where(is_there, np.stack([row.spans for row in rows]), 0).max(axis=0) / 1000
    together = _together([each.labels for each in series], counts)
    return [
        Increases(
            {labels: float(total[index]) for labels, total in together.items() if not np.isnan(total[index])},
            int(is_there[:, index].sum()),
            float(ages[index]),
            float(spans[index]),
        )
        for index in range(len(ends))
    ]


@dataclass(frozen=True, slots=True)
class _Counted:
    """Increase of one counter in each window (NaN: none), time of its last sample and time since the one before."""

    counts: Array
    times: NDArray[np.int64]
    spans: NDArray[np.int64]


def _increase(series: Samples, scraped: NDArray[np.int64], ends: NDArray[np.int64], step: int) -> _Counted:
    """As CounterIncreases, for all windows at once. `scraped`: times of all samples of the series' target."""
    times, values = series.times, series.values
    counts = np.full(len(ends), np.nan)
    last, span = np.zeros(len(ends), dtype=np.int64), np.zeros(len(ends), dtype=np.int64)
    window = np.searchsorted(ends, times, "left")
    inside = (times > ends[0] - step) & (window < len(ends))
    oldest = np.take(ends, window, mode="clip") - step - round(OLDEST_WINDOWS * step)
    before = np.concatenate([[times[0]], times[:-1]]) if len(times) else times
    rise = values - np.concatenate([values[:1], values[:-1]])
    rise = np.where(rise >= 0, rise, values)
    counted = inside & (before >= oldest)
    if len(times):
        # A series that appears where its target was scraped before has counted from 0.
        since = np.searchsorted(scraped, oldest[0], "left")
        is_new = inside[0] and since < len(scraped) and scraped[since] < times[0]
        rise[0], counted[0] = values[0], is_new
    at = window[counted]
    counts[at], last[at] = rise[counted], times[counted]
    span[at] = (times - before)[counted]
    return _Counted(counts, last, span)


def _together(labels: Sequence[Mapping[str, str]], counts: Array) -> dict[Labels, Array]:
    """Sums over series by bucket, for series with the same buckets: of each the cumulative count by its bound. NaN
    where no series was counted. All counters without buckets are one."""
    groups: dict[frozenset[tuple[str, str]], dict[str, int]] = defaultdict(dict)
    for index, each in enumerate(labels):
        rest = frozenset(pair for pair in each.items() if pair[0] != BOUND_LABEL)
        groups[rest][each.get(BOUND_LABEL, "")] = index
    sums: dict[Labels, Array] = {}
    for buckets in groups.values():
        bounds = sorted(buckets, key=lambda bound: float(bound or 0))
        own = counts[[buckets[bound] for bound in bounds]]
        # A bucket without a sample has nothing of its own; buckets of one scrape are not always of one moment.
        filled = np.where(np.isnan(own), np.maximum.accumulate(np.nan_to_num(own), axis=0), own)
        rising = np.maximum(0.0, np.diff(filled, axis=0, prepend=0.0)).cumsum(axis=0)
        rising[:, np.isnan(own).all(axis=0)] = np.nan
        for bound, row in zip(bounds, rising, strict=True):
            key = frozenset({(BOUND_LABEL, bound), ("buckets", " ".join(bounds))} if bound else ())
            total = sums.get(key)
            sums[key] = row if total is None else np.where(np.isnan(row), total, np.nan_to_num(total) + row)
    return sums


def _highest(series: Sequence[Samples], ends: NDArray[np.int64], step: int) -> Array:
    """The highest of the last values of all series in each window; NaN where there is none."""
    highest = np.full(len(ends), np.nan)
    for each in series:
        window = np.searchsorted(ends, each.times, "left")
        inside = (each.times > ends[0] - step) & (window < len(ends)) & np.isfinite(each.values)
        highest[window[inside]] = np.fmax(highest[window[inside]], each.values[inside])
    return highest


def _target(series: Samples) -> Target:
    return series.labels.get("job", ""), series.labels.get("instance", "")
