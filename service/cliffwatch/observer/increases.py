"""Increase of each counter in each window, from its samples.

Scrapes do not fall on the edges of windows. So the increase of a window is that between two samples: the newest one
before the window began and the newest one before it ended. Between windows nothing is counted twice or left out, and
nothing is extrapolated. An increase since a sample that is more than a window older than the window's start belongs to
no window: Prometheus or the exporter was away, and the time until then is a gap. A series that appears where its target
was scraped before, such as a counter of errors with the first error, has counted from 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cliffwatch.telemetry.prometheus import PrometheusAnswer

#: How old the sample that a window counts from may be at its start, in windows. It is one with a scrape a window.
OLDEST_WINDOWS = 1.25

Labels = frozenset[tuple[str, str]]
#: Labels `job` and `instance`, which name what is scraped.
Target = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Increases:
    """Increase of each counter in one window, by its labels, or of several together: `series` is their number.

    `age_seconds`: from the oldest counter's last sample to the end of the window; `span_seconds`: the longest time
    between the two samples of a counter. Both are 0 where there are none.
    """

    by_labels: Mapping[Labels, float]
    series: int
    age_seconds: float = 0.0
    span_seconds: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.by_labels.values())


class CounterIncreases:
    """Increases of the counters that one query returns. Windows must be requested in their order."""

    def __init__(self) -> None:
        #: Time in milliseconds of the sample at which each counter's previous window ended.
        self._reached: dict[Labels, int] = {}

    def in_window(
        self,
        answers: Iterable[PrometheusAnswer],
        start_seconds: float,
        end_seconds: float,
        scraped_since: Mapping[Target, int],
    ) -> Increases:
        """Increases from `start_seconds` to `end_seconds` (epoch), from samples that are no newer than that.

        `scraped_since`: time in milliseconds of each target's first sample of any series in the answers' range.
        """
        start, end = round(start_seconds * 1000), round(end_seconds * 1000)
        oldest = start - round(OLDEST_WINDOWS * (end - start))
        by_labels: dict[Labels, float] = {}
        ages: list[float] = []
        spans: list[float] = []
        reached: dict[Labels, int] = {}
        for answer in answers:
            if not len(answer.times):
                continue
            labels = frozenset(answer.labels.items())
            last = int(answer.times[-1])
            reached[labels] = last
            begin = int(answer.times[0])
            is_new = labels not in self._reached and begin > max(start, scraped_since.get(target_of(answer), begin))
            first = _first(answer, self._reached.get(labels, start), oldest)
            if last <= answer.times[first] and not is_new:
                continue
            by_labels[labels] = _increase([0.0, *answer.values.tolist()] if is_new else answer.values[first:].tolist())
            ages.append(end_seconds - last / 1000)
            spans.append((last - int(answer.times[first])) / 1000)
        # A series without an answer has no sample that is recent enough to count from.
        self._reached = reached
        return Increases(by_labels, len(by_labels), max(ages, default=0.0), max(spans, default=0.0))


def target_of(answer: PrometheusAnswer) -> Target:
    return answer.labels.get("job", ""), answer.labels.get("instance", "")


def scraped_since(answers: Iterable[PrometheusAnswer]) -> dict[Target, int]:
    """Time in milliseconds of the first sample of each target."""
    since: dict[Target, int] = {}
    for answer in answers:
        if len(answer.times):
            target, begin = target_of(answer), int(answer.times[0])
            since[target] = min(since.get(target, begin), begin)
    return since


def _first(answer: PrometheusAnswer, reached: int, oldest: int) -> int:
    """Index of the sample that a window counts from: the newest one up to `reached`, or the one after it where that is
    before `oldest` or there is none. Times in milliseconds."""
    place = int(np.searchsorted(answer.times, reached, "right")) - 1
    if place >= 0 and answer.times[place] >= oldest:
        return place
    return min(place + 1, len(answer.times) - 1)


def _increase(values: list[float]) -> float:
    """Increase over samples of a counter; one that is lower than the sample before was reset to 0 between them."""
    return sum(after - before if after >= before else after for before, after in pairwise(values))
