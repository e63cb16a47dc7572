"""Queries of a system's metrics: windows of its load, and a check of what Prometheus has of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cliffwatch.base.clock import LAST_MOMENT, Clock
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_duration, four_digits
from cliffwatch.engines.observe import BUCKET, ObserveLoad
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.window import OBSERVED_AGE, OBSERVED_SERIES, OBSERVED_SPAN, EngineWindow
from cliffwatch.observer.buckets import histogram_of, one_spelling
from cliffwatch.observer.increases import OLDEST_WINDOWS, CounterIncreases, Increases, scraped_since
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.connection import PrometheusConnection
from cliffwatch.telemetry.drives import clock_trouble
from cliffwatch.telemetry.native_histograms import BOUND_LABEL
from cliffwatch.telemetry.prometheus import PrometheusAnswer, QueryFailed

_PATIENCE_SECONDS = 5.0
#: Counter of latencies above a histogram's highest finite bound, which are counted at that bound.
BEYOND = "latencies_beyond_buckets"
#: With fewer scrapes a window, one now and then has the counts of none or of two.
_SCRAPES_PER_WINDOW = 2
#: Scrapes come now and then late.
_SCRAPE_TOLERANCE = 1.05
#: Over which it is seen how often a source is scraped, in seconds.
_RECENT_SECONDS = 300
_NAMED_AT_MOST = 5
#: Part of the name of a source that is a quantile: `latency.OPERATION.quantiles.p99`.
_QUANTILES = ".quantiles."


@dataclass(slots=True)
class Check:
    """What a check found, as sentences: notes, why Prometheus cannot be queried, and what would not work."""

    notes: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class ObservedSystem:
    """Metrics of one system in one Prometheus. Windows must be requested in their order."""

    def __init__(self, load: ObserveLoad, server: PrometheusAddress) -> None:
        self._load = load
        self._connection = PrometheusConnection(server, _PATIENCE_SECONDS)
        self._increases: dict[str, CounterIncreases] = {}

    def window(self, start_seconds: float, end_seconds: float) -> EngineWindow | None:
        """The window between two moments (epoch); None where Prometheus has no samples of it.

        Raises QueryFailed; the window can be requested again.
        """
        # Nothing older counts.
        span = (1 + OLDEST_WINDOWS) * (end_seconds - start_seconds) + 1
        with self._connection.connected() as prometheus:
            answers = {
                name: of_source(name, prometheus.query_samples(f"{selector}[{math.ceil(span)}s]", end_seconds))
                for name, selector in self.selectors.items()
            }
        try:
            return self._window_of(answers, start_seconds, end_seconds)
        except (ValueError, OverflowError) as error:
            raise QueryFailed(f"what Prometheus has of the system makes no sense: {error}") from error

    def check(self, window_seconds: float, clock: Clock) -> Check:
        """Whether the system can be observed in windows of this length."""
        found = Check()
        try:
            with self._connection.connected() as prometheus:
                asked_at = clock.wall()
                ahead = prometheus.now() - (asked_at + clock.wall()) / 2
                for name, selector in self.selectors.items():
                    answers = of_source(name, prometheus.query_samples(f"{selector}[{_RECENT_SECONDS}s]", clock.wall()))
                    _check_source(found, f"load.{name}", self._as_written(name, selector), answers, window_seconds)
        except QueryFailed as error:
            found.unreachable.append(str(error))
            return found
        if trouble := clock_trouble(ahead, window_seconds, "the Prometheus that knows the system"):
            found.notes.append(trouble)
        return found

    def close(self) -> None:
        self._connection.close()

    @property
    def selectors(self) -> dict[str, str]:
        """Selector of each source, by its field of the load."""
        selectors: dict[str, str] = {}
        for operation, source in self._load.latency.items():
            if source.histogram is None:
                named = source.quantiles.items()
                selectors |= {f"latency.{operation}.quantiles.{name}": selector for name, selector in named}
            else:
                selectors[f"latency.{operation}"] = source.buckets
        counters = {"operations": self._load.operations, "bytes": self._load.bytes, "errors": self._load.errors}
        return selectors | {name: selector for name, selector in counters.items() if selector is not None}

    def _as_written(self, name: str, selector: str) -> str:
        """A source's selector as the workload has it."""
        histograms = {f"latency.{operation}": source.histogram for operation, source in self._load.latency.items()}
        return histograms.get(name) or selector

    def _window_of(
        self, answers: Mapping[str, Sequence[PrometheusAnswer]], start_seconds: float, end_seconds: float
    ) -> EngineWindow | None:
        since = scraped_since(answer for found in answers.values() for answer in found)
        increases = {
            name: self._increases.setdefault(name, CounterIncreases()).in_window(
                found, start_seconds, end_seconds, since
            )
            for name, found in answers.items()
            if not is_quantile(name)
        }
        levels = {
            name: max(within)
            for name, found in answers.items()
            if is_quantile(name)
            and (
                within := [
                    each for answer in found if (each := last_within(answer, start_seconds, end_seconds)) is not None
                ]
            )
        }
        return self.assembled(increases, levels, start_seconds, end_seconds)

    def assembled(
        self,
        increases: Mapping[str, Increases],
        levels: Mapping[str, float],
        start_seconds: float,
        end_seconds: float,
    ) -> EngineWindow | None:
        """The window of what each counter of the load counted in it, and of the levels of ready-made quantiles, by
        source; None where no counter was sampled. Raises ValueError for buckets whose bounds are no numbers."""
        measured = [each for each in increases.values() if each.by_labels]
        if not measured:
            return None
        latency, beyond = self._latency_of(increases)
        counters = {"operations": self._operations_of(increases, latency)}
        counters |= {name: round(increases[name].total) for name in ("bytes", "errors") if name in increases}
        if beyond:
            counters[BEYOND] = beyond
        gauges = {
            OBSERVED_SERIES: float(sum(each.series for each in measured)),
            OBSERVED_AGE: four_digits(max(each.age_seconds for each in measured)),
            OBSERVED_SPAN: four_digits(max(each.span_seconds for each in measured)),
        }
        present = {name: histogram for name, histogram in latency.items() if histogram.count}
        # Beside a count that did not move, a quantile is the last one of before, or none.
        known = self._quantiles_of(levels) if counters["operations"] > 0 else {}
        return EngineWindow(start_seconds, end_seconds, counters, gauges, present, known)

    def _quantiles_of(self, levels: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """Quantiles of each latency without a histogram, in seconds."""
        found: dict[str, dict[str, float]] = {}
        for operation, source in self._load.latency.items():
            for name in source.quantiles:
                level = levels.get(f"latency.{operation}{_QUANTILES}{name}", -1.0)
                if level >= 0:
                    seconds = min(level * source.unit_seconds, LAST_MOMENT)
                    found.setdefault(operation.value, {})[name.replace(".", "")] = seconds
        return found

    def _latency_of(self, increases: Mapping[str, Increases]) -> tuple[dict[str, Histogram], int]:
        """Histogram of each operation, and how many latencies lie above the bounds of all."""
        latency: dict[str, Histogram] = {}
        beyond = 0
        for operation, source in self._load.latency.items():
            if source.histogram is None:
                continue
            found = increases[f"latency.{operation}"].by_labels
            latency[operation.value], above = histogram_of(found, source.unit_seconds)
            beyond += above
        return latency, beyond

    def _operations_of(self, increases: Mapping[str, Increases], latency: Mapping[str, Histogram]) -> int:
        if "operations" in increases:
            return round(increases["operations"].total)
        first = primary_latency(list(latency))
        assert first is not None, "a load has a latency"
        return latency[first].count


def of_source(name: str, answers: Sequence[PrometheusAnswer]) -> Sequence[PrometheusAnswer]:
    """Series that a source's selector is for: of a histogram that a Prometheus keeps both as a native and as a classic
    one, the native, which has narrower buckets."""
    if not _is_histogram(name):
        return answers
    native = [answer for answer in answers if BOUND_LABEL in answer.labels and not answer.name.endswith(BUCKET)]
    return native or one_spelling([answer for answer in answers if answer.name.endswith(BUCKET)] or answers)


def is_quantile(name: str) -> bool:
    """Whether a source is a ready-made quantile, and no counter."""
    return _QUANTILES in name


def _is_histogram(name: str) -> bool:
    return name.startswith("latency.") and not is_quantile(name)


def last_within(answer: PrometheusAnswer, start_seconds: float, end_seconds: float) -> float | None:
    """The last sample of a series after `start_seconds` and up to `end_seconds`; None without a finite one."""
    times = np.asarray(answer.times) / 1000
    inside = np.flatnonzero((times > start_seconds + 1e-6) & (times <= end_seconds + 1e-6))
    values = np.asarray(answer.values, dtype=np.float64)[inside]
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if len(finite) else None


def _check_source(
    found: Check, where: str, selector: str, answers: Sequence[PrometheusAnswer], window_seconds: float
) -> None:
    """Add to `found` what Prometheus has of one source."""
    if not answers and where == "load.errors":
        found.notes.append(
            f"{where}: Prometheus has no samples of {selector} yet; a counter may begin with its first error"
        )
        return
    if not answers:
        found.refused.append(f"{where}: Prometheus has no samples of {selector} in the last five minutes")
        return
    if _is_histogram(where.removeprefix("load.")) and not all(BOUND_LABEL in answer.labels for answer in answers):
        found.refused.append(f"{where}: {selector} is no histogram: a series of it has no label {BOUND_LABEL!r}")
        return
    apart = [float(np.median(np.diff(each.times))) / 1000 for each in answers if len(each.times) > 2]
    names = sorted({each.labels.get("instance", "?") for each in answers})
    shown = ", ".join(names[:_NAMED_AT_MOST]) + (", …" if len(names) > _NAMED_AT_MOST else "")
    often = f", scraped every {format_duration(round(max(apart), 1))}" if apart else ""
    count = "1 series" if len(answers) == 1 else f"{len(answers)} series"
    found.notes.append(f"{where}: {count} of {shown}{often}")
    if not apart or max(apart) * _SCRAPES_PER_WINDOW <= window_seconds * _SCRAPE_TOLERANCE:
        return
    lengths = f"it is scraped every {format_duration(round(max(apart), 1))}, and a window lasts"
    lengths = f"{where}: {lengths} {format_duration(window_seconds)}"
    if max(apart) > window_seconds * _SCRAPE_TOLERANCE:
        least = format_duration(math.ceil(max(apart)))
        found.refused.append(f"{lengths}; make the window {least} or longer, or scrape more often")
    else:
        found.notes.append(f"{lengths}: now and then one has the counts of none or of two scrapes")
