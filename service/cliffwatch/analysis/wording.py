"""Sentences of findings, for the journal and its alerts, the report and tables alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cliffwatch.analysis.causes import Cause, Diagnosis
from cliffwatch.analysis.finding import (
    OF_RETURN,
    OF_WORK,
    Finding,
    FindingKind,
    LimitedBy,
    Recurrence,
    Role,
    Series,
    Undone,
)
from cliffwatch.analysis.layers import LayerComparison
from cliffwatch.base.units import format_latency, format_length, format_number, format_ratio, format_share, six_digits
from cliffwatch.model.series_name import series_words

#: The worst level is stated where it is at least this many times the level.
WORST_REPORTED_FROM = 1.2


def correlated_series(finding: Finding, known: Mapping[str, Series]) -> str:
    """Clause on the other operations that changed with a finding's, to end its sentence; empty where there are none.

    `known`: series by name, the finding's own among them.
    """
    if finding.kind is FindingKind.RECOVERY or finding.series not in known:
        return ""
    named = {known[finding.series].operation: ""}
    sizes = {size.series: size for size in finding.affected}
    for name in finding.corroborated_by:
        if name in known and known[name].role is Role.LATENCY:
            size = f" ({format_ratio(sizes[name].ratio)})" if name in sizes else ""
            named.setdefault(known[name].operation, f"the {series_words(name)}{size}")
    subjects = list(named.values())[1:]
    if not subjects:
        return ""
    return "; so did " + " and ".join([", ".join(subjects[:-1]), subjects[-1]] if len(subjects) > 1 else subjects)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Further facts on a finding, known once the run is over: when it began in the load, the name of the drive that
    slowed down (empty where none did), the cause, and where that is unknown the layer; and a clause on the run's other
    parts, empty where it has none."""

    elapsed: str
    drive: str = ""
    diagnosis: Diagnosis | None = None
    layers: LayerComparison | None = None
    among_parts: str = ""


def sentence_of(
    finding: Finding,
    series: Series,
    device_names: Mapping[str, str] | None = None,
    known: Mapping[str, Series] | None = None,
    circumstances: Circumstances | None = None,
) -> str:
    """One sentence that states the finding: with its levels, or once `circumstances` are known, with when, where and
    why in their place. `known`: series by name, so that others which changed with it are named."""
    statement = _statement(finding, series, device_names)
    if circumstances is None:
        also = correlated_series(finding, known) if known is not None else ""
        return f"{statement[0].upper()}{statement[1:]}{_levels(finding, series)}{also}."
    begun = f"{finding.kind.value.capitalize()} at {circumstances.elapsed}"
    # A part that is named by its drive says already where it was.
    where = f" on {circumstances.drive}" if circumstances.drive and f"{circumstances.drive}/" not in statement else ""
    return f"{begun}: {statement.removeprefix('the ')}{where}{circumstances.among_parts}{_why(circumstances)}."


def _levels(finding: Finding, series: Series) -> str:
    """Levels before and after a change, and the worst one where that is far above the first, in parentheses."""
    if finding.kind in OF_WORK:
        return ""
    before, after, size = _quantity(finding.baseline, series), _quantity(finding.level, series), finding.size
    if finding.kind is FindingKind.RECOVERY:
        return f" ({before} is healthy)"
    is_far = size is not None and finding.kind not in OF_RETURN and size.worst >= WORST_REPORTED_FROM * size.level
    if size is None or not is_far:
        return f" ({before} to {after})"
    return f" ({before} to {after}; at worst {_quantity(size.worst, series)}, {format_ratio(size.worst_ratio)})"


def _statement(finding: Finding, series: Series, device_names: Mapping[str, str] | None) -> str:
    subject, ratio = series_words(series.name, device_names), format_ratio(finding.ratio)
    again = "" if finding.recurrence is None else f", {_recurrence_words(finding.recurrence)}"
    match finding.kind:
        case FindingKind.CLIFF:
            return f"the {subject} rose {ratio}"
        case FindingKind.STALL | FindingKind.SHORTFALL:
            return _undone(finding, finding.undone or Undone(0.0))
        case FindingKind.STEP:
            return f"the {subject} stepped up {ratio}"
        case FindingKind.DRIFT:
            return f"the {subject} drifts upwards, {ratio} so far"
        case FindingKind.SPIKES:
            return f"the {subject} spikes again and again, {ratio}{again}"
        case FindingKind.RECURRING:
            return f"the {subject} rises again and again, {ratio}{again}"
        case FindingKind.RECOVERY:
            return f"the {subject} came back to {_quantity(finding.level, series)}"


def _recurrence_words(recurrence: Recurrence) -> str:
    least, most = format_length(round(recurrence.least_seconds)), format_length(round(recurrence.most_seconds))
    apart = format_length(round(recurrence.spacing_seconds)) if recurrence.is_regular else f"{least} to {most}"
    start = ", from the start" if recurrence.is_from_start else ""
    return f"{recurrence.times} times, {format_length(recurrence.length_seconds)} each, {apart} apart{start}"


def _undone(finding: Finding, undone: Undone) -> str:
    lasted, before = format_length(undone.seconds), f"{format_number(finding.baseline)} operations per second"
    if finding.kind is FindingKind.SHORTFALL:
        verb = "were" if finding.until is not None else "have been"
        level = f"{format_number(finding.level)} operations per second {verb} completed for {lasted}"
        why = "; the latency stayed as it was, so that the client asked for less"
        return f"{level}, after {before}{why if undone.limited_by is LimitedBy.CLIENT else ''}"
    times = f" {undone.times} times, {lasted} in all" if undone.times > 1 else f" for {lasted}"
    verb = "was" if finding.until is not None else "has been"
    oldest = f"; the oldest operation waited {format_latency(undone.oldest_seconds)}" if undone.oldest_seconds else ""
    idle = "; nothing was outstanding, so that the client asked for nothing"
    when = "before" if undone.is_before_load else "after"
    return (
        f"nothing {verb} completed{times}, {when} {before}{idle if undone.limited_by is LimitedBy.CLIENT else oldest}"
    )


def details_of(finding: Finding) -> dict[str, Any]:
    """JSON fields of a stall, a shortfall, rare spikes or recurring excursions, besides level and size; unknown values
    are absent."""
    details: dict[str, Any] = {}
    if finding.undone is not None:
        details["undone"] = _undone_detail(finding.undone)
    if finding.recurrence is not None:
        details["recurrence"] = _recurrence_detail(finding.recurrence)
    return details


def _recurrence_detail(recurrence: Recurrence) -> dict[str, Any]:
    seconds = ("length_seconds", "spacing_seconds", "least_seconds", "most_seconds")
    figures = {name: round(getattr(recurrence, name), 3) for name in seconds}
    body = {"times": recurrence.times} | figures | {"is_from_start": recurrence.is_from_start}
    if recurrence.next_expected is not None:
        body["next_expected"] = round(recurrence.next_expected, 3)
    return body


def _undone_detail(undone: Undone) -> dict[str, Any]:
    body: dict[str, Any] = {"seconds": round(undone.seconds, 3), "times": undone.times}
    if undone.oldest_seconds is not None:
        body["oldest_outstanding_seconds"] = six_digits(undone.oldest_seconds)
    return body if undone.limited_by is None else body | {"limited_by": undone.limited_by.value}


def _why(circumstances: Circumstances) -> str:
    diagnosis = circumstances.diagnosis
    if diagnosis is None:
        return ""
    first = diagnosis.first
    if first.cause is Cause.UNKNOWN:
        layers = circumstances.layers
        return "; cause not known" + (f"; {layers.statement}" if layers is not None and layers.statement else "")
    return f"; likely cause: {first.title} ({format_share(round(first.confidence, 2))} sure)"


def _quantity(value: float, series: Series) -> str:
    return format_number(value) if series.role in (Role.QUEUE_DEPTH, Role.RATE) else format_latency(value)
