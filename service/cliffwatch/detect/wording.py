"""Findings as sentences. Pure functions."""

from collections.abc import Mapping

from cliffwatch.detect.finding import Finding, Kind, Role, Series
from cliffwatch.units import format_latency, format_number

#: The worst is named where it is so many times the level.
WORST_TOLD_FROM = 1.2
_QUANTILES = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9", 0.9999: "p99.99"}


def subject_of(series: Series, device_names: Mapping[str, str] | None = None) -> str:
    """What a series measures: `publish p99`, `write latency of nvme0n1`. `device_names` are by major:minor."""
    if series.role is Role.LATENCY and series.operation is not None and series.quantile is not None:
        return f"{series.operation} {_QUANTILES.get(series.quantile, f'quantile {series.quantile:g}')}"
    drive = "all drives" if series.device is None else (device_names or {}).get(series.device, series.device)
    if series.device is None and device_names is not None and len(device_names) == 1:
        drive = next(iter(device_names.values()))
    if series.role is Role.DEVICE_LATENCY:
        return f"write latency of {drive}"
    if series.role is Role.QUEUE_DEPTH:
        return f"queue depth of {drive}"
    return series.name


def so_did(finding: Finding, known: Mapping[str, Series]) -> str:
    """The other operations that changed with the finding's, as the end of its sentence; empty where there are none.

    `known`: series by name, the finding's own among them.
    """
    if finding.kind is Kind.RECOVERY or finding.series not in known:
        return ""
    named = {known[finding.series].operation: ""}
    sizes = {size.series: size for size in finding.affected}
    for name in finding.corroborated_by:
        if name in known and known[name].role is Role.LATENCY:
            size = f" ({fold(sizes[name].ratio)} times)" if name in sizes else ""
            named.setdefault(known[name].operation, f"the {subject_of(known[name])}{size}")
    subjects = list(named.values())[1:]
    if not subjects:
        return ""
    return "; so did " + " and ".join([", ".join(subjects[:-1]), subjects[-1]] if len(subjects) > 1 else subjects)


def sentence_of(
    finding: Finding,
    series: Series,
    device_names: Mapping[str, str] | None = None,
    known: Mapping[str, Series] | None = None,
) -> str:
    """One sentence that states the finding. `known`: series by name, so that others which changed with it are named."""
    also = so_did(finding, known) if known is not None else ""
    return f"{_statement(finding, series, device_names)}{also}."


def fold(ratio: float) -> str:
    """A ratio, with no more digits than anybody would say aloud; the same wherever one is stated."""
    return f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"


def at_worst(finding: Finding, series: Series) -> str:
    """What follows the level in a sentence where a change was much worse for a while than at first; else empty."""
    size = finding.size
    if size is None or finding.kind is Kind.SPIKES or size.worst < WORST_TOLD_FROM * size.level:
        return ""
    return f" at first and {_quantity(size.worst, series)} at worst ({fold(size.worst_ratio)} times)"


def _statement(finding: Finding, series: Series, device_names: Mapping[str, str] | None) -> str:
    subject = subject_of(series, device_names)
    before, after = _quantity(finding.baseline, series), _quantity(finding.level, series)
    times, worst = f"{fold(finding.ratio)} times", at_worst(finding, series)
    match finding.kind:
        case Kind.CLIFF:
            return f"The {subject} fell off a cliff: from {before} to {after}, {times} as much{worst}"
        case Kind.STEP:
            return f"The {subject} stepped up from {before} to {after}, {times} as much{worst}"
        case Kind.DRIFT:
            return f"The {subject} drifts upwards: from {before} to {after} so far, {times} as much"
        case Kind.SPIKES:
            return f"The {subject} spikes again and again, up to {after} where {before} is healthy"
        case Kind.RECOVERY:
            return f"The {subject} came back to {after}; {before} is healthy"


def _quantity(value: float, series: Series) -> str:
    return format_number(value) if series.role in (Role.QUEUE_DEPTH, Role.RATE) else format_latency(value)
