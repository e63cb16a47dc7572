"""Prometheus metrics of detection: baselines, degradation ratios, active findings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, Metric

from cliffwatch.analysis.finding import Finding, FindingKind, LimitedBy, Role, Series, Size
from cliffwatch.analysis.forecast import Forecast
from cliffwatch.analysis.online.run_detector import RunDetector

#: Kinds of latency findings that last for a while; a recovery is a moment.
LASTING_KINDS = (FindingKind.CLIFF, FindingKind.STEP, FindingKind.DRIFT, FindingKind.SPIKES, FindingKind.RECURRING)
#: Value of the label `device` for a series over several drives together.
ALL_DRIVES = "all"


@dataclass(frozen=True, slots=True)
class DetectionFigures:
    """Detection's figures after a window. Immutable: a scrape reads them while the next ones are made.

    `baselines`: level of each series, in its unit. `ratios`: degradation by series name and span. `active`: series name
    and kind of each active finding; `sizes` and `sentences`: their sizes, and what the journal states of them.
    `forecasts`: of drifts, by series name. `undone`: seconds so far in which nothing, or too little, was
    completed, by finding kind and by what limited the work.
    """

    series: tuple[Series, ...]
    baselines: Mapping[str, float]
    ratios: Mapping[tuple[str, str], float]
    active: frozenset[tuple[str, FindingKind]]
    sizes: Mapping[tuple[str, FindingKind], Size]
    sentences: Mapping[tuple[str, FindingKind], str]
    forecasts: Mapping[str, Forecast]
    undone: Mapping[tuple[FindingKind, LimitedBy | None], float]


def figures_of(
    detector: RunDetector,
    series: Mapping[str, Series],
    active: Sequence[Finding],
    sentences: Mapping[tuple[str, FindingKind], str],
    forecasts: Mapping[str, Forecast],
) -> DetectionFigures:
    """Figures of every series that has a baseline or an active finding."""
    baselines = {finding.series: finding.baseline for finding in active}
    ratios = {(finding.series, "fast"): finding.ratio for finding in active}
    baselines |= {name: baseline.level for name, baseline in detector.baselines.items()}
    return DetectionFigures(
        tuple(each for name, each in series.items() if name in baselines),
        baselines,
        ratios | dict(detector.ratios),
        frozenset((finding.series, finding.kind) for finding in active),
        {(finding.series, finding.kind): finding.size for finding in active if finding.size is not None},
        sentences,
        forecasts,
        {
            (each.kind, each.undone.limited_by): detector.stalled_seconds
            if each.kind is FindingKind.STALL
            else each.undone.seconds
            for each in active
            if each.undone is not None
        },
    )


def detection_metrics(
    run_id: str, figures: DetectionFigures | None, drives: Mapping[str, Mapping[str, str]]
) -> Iterator[Metric]:
    """All metric families of detection; a family without figures has no samples.

    `drives`: labels of each drive, such as its kernel name as `device`, by major:minor.
    """
    yield from _of_clients(run_id, figures)
    yield from _of_findings(run_id, figures)
    yield _of_work(run_id, figures)
    yield from _of_drifts(run_id, figures)
    yield from _of_devices(run_id, figures, drives)


def _of_clients(run_id: str, figures: DetectionFigures | None) -> Iterator[Metric]:
    # Prometheus reserves the label `quantile` for summaries; a metric about a quantile that is no summary is untyped.
    baseline = Metric("cliffwatch_baseline_latency_seconds", "What healthy latency is in this run.", "summary")
    ratio = Metric("cliffwatch_degradation_ratio", "Latency of the newest windows, by the baseline.", "unknown")
    active = Metric(
        "cliffwatch_finding_active", "1 while a finding of this kind lasts for this latency, else 0.", "unknown"
    )
    for series in _with_role(figures, Role.LATENCY):
        assert figures is not None, "it has series"
        about = {"run_id": run_id, "operation": str(series.operation), "quantile": str(series.quantile)}
        baseline.add_sample(baseline.name, about, figures.baselines[series.name])
        for span, value in _spans(figures, series):
            ratio.add_sample(ratio.name, about | {"span": span}, value)
        for kind in LASTING_KINDS:
            active.add_sample(active.name, about | {"kind": kind.value}, float((series.name, kind) in figures.active))
    yield from (baseline, ratio, active)


def _of_findings(run_id: str, figures: DetectionFigures | None) -> Iterator[Metric]:
    """Metrics of active findings, with the figures that their alerts quote."""
    families: dict[str, tuple[Callable[[Size], float], str]] = {
        "baseline_seconds": (
            lambda size: size.baseline.level,
            "The healthy latency that a finding is measured against.",
        ),
        "level_seconds": (lambda size: size.level, "The latency that a finding rose to."),
        "ratio": (lambda size: size.ratio, "That latency, by the healthy one."),
        "worst_ratio": (
            lambda size: size.worst_ratio,
            "The worst latency since a finding's onset, by the healthy one.",
        ),
    }
    roles = {series.name: series for series in _with_role(figures, Role.LATENCY)}
    for name, (figure, text) in families.items():
        metric = Metric(f"cliffwatch_finding_{name}", text, "unknown")
        for (series, kind), size in sorted(figures.sizes.items()) if figures is not None else ():
            if series in roles:
                about = {"run_id": run_id, "operation": str(roles[series].operation)}
                about |= {"quantile": str(roles[series].quantile), "kind": kind.value}
                metric.add_sample(metric.name, about, figure(size))
        yield metric
    info = Metric("cliffwatch_finding_info", "Sentence of a finding as the journal has it; always 1.", "unknown")
    for (series, kind), sentence in sorted(figures.sentences.items()) if figures is not None else ():
        if series in roles:
            about = {"run_id": run_id, "operation": str(roles[series].operation), "kind": kind.value}
            info.add_sample(info.name, about | {"quantile": str(roles[series].quantile), "sentence": sentence}, 1)
    yield info


def _of_work(run_id: str, figures: DetectionFigures | None) -> Metric:
    metric = Metric(
        "cliffwatch_undone_seconds",
        "For how long nothing, or too little, has been completed, while that lasts.",
        "unknown",
    )
    for (kind, limited_by), seconds in figures.undone.items() if figures is not None else ():
        about = {"run_id": run_id, "kind": kind.value, "limited_by": limited_by.value if limited_by else "unknown"}
        metric.add_sample(metric.name, about, seconds)
    return metric


def _of_drifts(run_id: str, figures: DetectionFigures | None) -> Iterator[Metric]:
    limit = Metric("cliffwatch_drift_limit_seconds", "The latency up to which a drifting one is forecast.", "unknown")
    left = Metric(
        "cliffwatch_drift_to_limit_seconds",
        "Seconds until a drifting latency passes that limit, if it goes on as it does.",
        "unknown",
    )
    for series in figures.series if figures is not None else ():
        assert figures is not None, "it has series"
        if (forecast := figures.forecasts.get(series.name)) is None:
            continue
        about = {"run_id": run_id, "operation": str(series.operation), "quantile": str(series.quantile)}
        limit.add_sample(limit.name, about, forecast.limit)
        for estimate in ("early", "likely", "late"):
            left.add_sample(left.name, about | {"estimate": estimate}, getattr(forecast, estimate))
    yield from (limit, left)


def _of_devices(
    run_id: str, figures: DetectionFigures | None, drives: Mapping[str, Mapping[str, str]]
) -> Iterator[Metric]:
    baseline = GaugeMetricFamily(
        "cliffwatch_device_baseline_write_latency_seconds",
        "What a drive's healthy mean write latency is in this run.",
        labels=["run_id", "device"],
    )
    ratio = GaugeMetricFamily(
        "cliffwatch_device_degradation_ratio",
        "A drive's mean write latency of the newest windows, by the baseline.",
        labels=["run_id", "device", "span"],
    )
    for series in _with_role(figures, Role.DEVICE_LATENCY):
        assert figures is not None, "it has series"
        about = {"run_id": run_id} | _device_labels(series, drives)
        baseline.add_sample(baseline.name, about, figures.baselines[series.name])
        for span, value in _spans(figures, series):
            ratio.add_sample(ratio.name, about | {"span": span}, value)
    yield from (baseline, ratio)


def _with_role(figures: DetectionFigures | None, role: Role) -> list[Series]:
    return [] if figures is None else [series for series in figures.series if series.role is role]


def _spans(figures: DetectionFigures, series: Series) -> list[tuple[str, float]]:
    return sorted((span, value) for (name, span), value in figures.ratios.items() if name == series.name)


def _device_labels(series: Series, drives: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    if series.device is not None:
        return dict(drives.get(series.device, {"device": series.device}))
    return dict(next(iter(drives.values()))) if len(drives) == 1 else {"device": ALL_DRIVES}
