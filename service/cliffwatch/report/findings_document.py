"""Build the findings and the limits of report.json. Fields that do not apply are absent."""

from collections.abc import Sequence
from typing import cast

from cliffwatch.analysis.causes import Suspect
from cliffwatch.analysis.finding import Finding, Role, Size
from cliffwatch.analysis.layers import LayerComparison, LayerTimes
from cliffwatch.analysis.wording import details_of
from cliffwatch.base.units import six_digits
from cliffwatch.report.findings import ReportedFinding
from cliffwatch.report.limits.judged import BrokenSpan, Judged
from cliffwatch.report.limits.results import SPAN_LIMIT
from cliffwatch.report.onset_spans import RunDrive
from cliffwatch.report.schema.findings import (
    Affected,
    BrokenSpanDocument,
    Drive,
    FindingDocument,
    Layer,
    LayerTimesDocument,
    LimitDocument,
    SuspectDocument,
    Unit,
)
from cliffwatch.report.timestamps import timestamp

UNITS: dict[Role, Unit] = {
    Role.LATENCY: "seconds",
    Role.DEVICE_LATENCY: "seconds",
    Role.QUEUE_DEPTH: "requests",
    Role.RATE: "operations_per_second",
}


def findings_document(found: Sequence[ReportedFinding], zero: float) -> list[FindingDocument]:
    """Findings in order of onset; `zero` is the load's start."""
    return [_finding(each, zero) for each in found]


def limits_document(judged: Sequence[Judged], zero: float) -> list[LimitDocument]:
    """Limits in the workload's order; `zero` is the load's start."""
    rows = []
    for each in judged:
        row: LimitDocument = {
            "limit": each.text,
            "held": each.held,
            "windows": each.windows,
            "operations": each.operations,
            "broken": [_broken(span, zero) for span in each.broken[:SPAN_LIMIT]],
        }
        if each.unjudged:
            row["unjudged"] = each.unjudged
        if each.margin:
            row["margin"] = each.margin
        if len(each.broken) > SPAN_LIMIT:
            row["broken_omitted"] = len(each.broken) - SPAN_LIMIT
        rows.append(row)
    return rows


def _broken(span: BrokenSpan, zero: float) -> BrokenSpanDocument:
    body: BrokenSpanDocument = {
        "start": timestamp(span.start),
        "start_seconds": _since(zero, span.start),
        "end": timestamp(span.end),
        "end_seconds": _since(zero, span.end),
        "worst": span.worst,
    }
    if span.window_end is not None:
        body["window_end"] = timestamp(span.window_end)
        body["window_end_seconds"] = _since(zero, span.window_end)
    return body


def _since(zero: float, moment: float) -> float:
    return round(moment - zero, 3)


def _drive(drive: RunDrive) -> Drive:
    body: Drive = {"name": drive.name, "major_minor": drive.id.number, "serial": drive.serial}
    return {**body, "part": drive.id.part} if drive.id.part else body


def _add_comparisons(body: FindingDocument, found: ReportedFinding) -> None:
    if found.among_parts is not None:
        body["among_parts"] = {
            "ratio_to_others": round(found.among_parts.ratio_to_others, 4),
            "others_risen": list(found.among_parts.others_risen),
        }
    if found.judged_by is not None:
        before, since = found.judged_by
        body["judged_by"] = {"before": before, "since": since}


def _finding(found: ReportedFinding, zero: float) -> FindingDocument:
    finding, series = found.finding, found.series
    body: FindingDocument = {
        "kind": finding.kind.value,
        "sentence": found.sentence,
        "degrades": found.degrades,
        "onset": timestamp(finding.onset),
        "onset_seconds": _since(zero, finding.onset),
        "series": series.name,
        "baseline": six_digits(finding.baseline),
        "level": six_digits(finding.level),
        "unit": UNITS[series.role],
        "ratio": round(finding.ratio, 4),
        "confidence": round(finding.confidence, 3),
        "corroborated_by": list(finding.corroborated_by),
    }
    if finding.until is not None:
        body["until"] = timestamp(finding.until)
        body["until_seconds"] = _since(zero, finding.until)
    if finding.detected is not None:
        body["detected"] = timestamp(finding.detected)
        body["detected_seconds"] = _since(zero, finding.detected)
    if series.operation is not None:
        body["operation"] = series.operation
    if series.quantile is not None:
        body["quantile"] = series.quantile
    body.update(cast(FindingDocument, details_of(finding)))
    _add_next_expected(body, finding, zero)
    if finding.size is not None:
        _add_sizes(body, finding.size, zero)
    if finding.affected:
        body["affected"] = [_affected(size) for size in finding.affected]
    if found.drive is not None:
        body["drive"] = _drive(found.drive)
    if found.layers is not None and (layer := _layer(found.layers)) is not None:
        body["layer"] = layer
    if found.diagnosis is not None:
        body["cause"] = _suspect(found.diagnosis.first)
        if found.diagnosis.runner_up is not None:
            body["runner_up"] = _suspect(found.diagnosis.runner_up)
        body["tell_apart"] = found.diagnosis.distinguish_by
    _add_comparisons(body, found)
    return body


def _affected(size: Size) -> Affected:
    return {
        "series": size.series,
        "baseline": six_digits(size.baseline.level),
        "level": six_digits(size.level),
        "worst": six_digits(size.worst),
        "ratio": round(size.ratio, 4),
        "worst_ratio": round(size.worst_ratio, 4),
    }


def _add_next_expected(body: FindingDocument, finding: Finding, zero: float) -> None:
    """When the next of what recurs is expected, while the finding is not over."""
    if finding.recurrence is None:
        return
    body["recurrence"].pop("next_expected", None)
    due = finding.recurrence.next_expected
    if finding.until is None and due is not None:
        body["recurrence"] |= {"next_expected": timestamp(due), "next_expected_seconds": _since(zero, due)}


def _add_sizes(body: FindingDocument, size: Size, zero: float) -> None:
    """Add to `body` the worst level since the onset, and the band and the time span of the baseline's windows."""
    body["worst"], body["worst_ratio"] = six_digits(size.worst), round(size.worst_ratio, 4)
    body["baseline_low"], body["baseline_high"] = six_digits(size.baseline.low), six_digits(size.baseline.high)
    body["baseline_start_seconds"] = _since(zero, size.baseline.start)
    body["baseline_end_seconds"] = _since(zero, size.baseline.end)


def _suspect(suspect: Suspect) -> SuspectDocument:
    return {
        "name": suspect.cause.value,
        "title": suspect.title,
        "confidence": suspect.confidence,
        "evidence_for": list(suspect.evidence_for),
        "evidence_against": list(suspect.evidence_against),
    }


def _layer(layers: LayerComparison) -> Layer | None:
    if layers.grew is None and not layers.gap:
        return None
    body: Layer = {"before": _times(layers.before), "after": _times(layers.after)}
    if layers.grew is not None:
        body["name"], body["title"], body["sentence"] = layers.grew.value, layers.title, layers.sentence
    if layers.share is not None:
        body["share"] = layers.share
    if layers.gap:
        body["gap"] = layers.gap
    return body


def _times(times: LayerTimes) -> LayerTimesDocument:
    values = {
        "client_seconds": times.client_seconds,
        "service_seconds": times.service_seconds,
        "block_queue_seconds": times.queue_seconds,
        "device_seconds": times.device_seconds,
        "requests_per_operation": times.requests_per_operation,
    }
    known = {name: six_digits(value) for name, value in values.items() if value is not None}
    return cast(LayerTimesDocument, known)
