"""Findings as sentences: the one place that makes them, for the journal and its alerts, the report and tables alike."""

from collections.abc import Mapping
from dataclasses import dataclass

from cliffwatch.analysis.causes import Cause, Diagnosis
from cliffwatch.analysis.finding import Finding, FindingKind, Role, Series
from cliffwatch.analysis.layers import TITLES, LayerComparison
from cliffwatch.base.units import format_latency, format_number, format_ratio

#: The worst is named where it is so many times the level.
WORST_REPORTED_FROM = 1.2
_QUANTILES = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9", 0.9999: "p99.99"}


def subject_of(series: Series, device_names: Mapping[str, str] | None = None) -> str:
    """What a series measures: `publish p99`, `write latency of nvme0n1`. `device_names` are by major:minor."""
    if series.role is Role.LATENCY and series.operation is not None and series.quantile is not None:
        return (
            f"{series.operation.replace('_', ' ')} {_QUANTILES.get(series.quantile, f'quantile {series.quantile:g}')}"
        )
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
    if finding.kind is FindingKind.RECOVERY or finding.series not in known:
        return ""
    named = {known[finding.series].operation: ""}
    sizes = {size.series: size for size in finding.affected}
    for name in finding.corroborated_by:
        if name in known and known[name].role is Role.LATENCY:
            size = f" ({format_ratio(sizes[name].ratio)})" if name in sizes else ""
            named.setdefault(known[name].operation, f"the {subject_of(known[name])}{size}")
    subjects = list(named.values())[1:]
    if not subjects:
        return ""
    return "; so did " + " and ".join([", ".join(subjects[:-1]), subjects[-1]] if len(subjects) > 1 else subjects)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of a finding besides, once the run is over.

    `elapsed` is when it was in the load, as it is to be read; `drive` the one that slowed down with its serial, empty
    where none did.
    """

    elapsed: str
    drive: str = ""
    diagnosis: Diagnosis | None = None
    layers: LayerComparison | None = None


def sentence_of(
    finding: Finding,
    series: Series,
    device_names: Mapping[str, str] | None = None,
    known: Mapping[str, Series] | None = None,
    circumstances: Circumstances | None = None,
) -> str:
    """One sentence that states the finding. `known`: series by name, so that others which changed with it are named."""
    statement = _statement(finding, series, device_names)
    also = so_did(finding, known) if known is not None else ""
    if circumstances is None:
        return f"{statement[0].upper()}{statement[1:]}{also}."
    begun = f"{finding.kind.value.capitalize()} at {circumstances.elapsed}"
    where = f" on drive {circumstances.drive}" if circumstances.drive else ""
    return f"{begun}: {statement}{where}{also}{_why(circumstances)}."


def _at_worst(finding: Finding, series: Series) -> str:
    """What follows the level in a sentence where a change was much worse for a while than at first; else empty."""
    size = finding.size
    if size is None or finding.kind is FindingKind.SPIKES or size.worst < WORST_REPORTED_FROM * size.level:
        return ""
    return f" at first and {_quantity(size.worst, series)} at worst ({format_ratio(size.worst_ratio)})"


def _statement(finding: Finding, series: Series, device_names: Mapping[str, str] | None) -> str:
    subject = subject_of(series, device_names)
    before, after = _quantity(finding.baseline, series), _quantity(finding.level, series)
    ratio, worst = format_ratio(finding.ratio), _at_worst(finding, series)
    match finding.kind:
        case FindingKind.CLIFF:
            return f"the {subject} rose {ratio}, from {before} to {after}{worst}"
        case FindingKind.STEP:
            return f"the {subject} stepped up {ratio}, from {before} to {after}{worst}"
        case FindingKind.DRIFT:
            return f"the {subject} drifts upwards: {ratio} so far, from {before} to {after}"
        case FindingKind.SPIKES:
            return f"the {subject} spikes again and again, up to {after} where {before} is healthy"
        case FindingKind.RECOVERY:
            return f"the {subject} came back to {after}; {before} is healthy"


def _why(circumstances: Circumstances) -> str:
    diagnosis, layers = circumstances.diagnosis, circumstances.layers
    if diagnosis is None:
        return ""
    if diagnosis.first.cause is not Cause.UNKNOWN:
        first = diagnosis.first.evidence_for[0].rstrip(".")
        return f"; likely cause: {diagnosis.first.title} ({first[0].lower()}{first[1:]})"
    where = f"; the rise is in {TITLES[layers.grew]}" if layers is not None and layers.grew is not None else ""
    return f"; its cause is not known{where}"


def _quantity(value: float, series: Series) -> str:
    return format_number(value) if series.role in (Role.QUEUE_DEPTH, Role.RATE) else format_latency(value)
