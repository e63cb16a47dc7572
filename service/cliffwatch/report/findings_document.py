"""Findings and limits as report.json has them. What does not apply is absent."""

from collections.abc import Sequence
from typing import Any

from cliffwatch.analysis.causes import Suspect
from cliffwatch.analysis.finding import Role, Size
from cliffwatch.analysis.layers import LayerComparison, LayerTimes
from cliffwatch.analysis.wording import details_of
from cliffwatch.base.units import six_digits
from cliffwatch.report.findings import ReportedFinding
from cliffwatch.report.limit_results import SPAN_LIMIT, Judged
from cliffwatch.report.timestamps import timestamp

UNITS = {
    Role.LATENCY: "seconds",
    Role.DEVICE_LATENCY: "seconds",
    Role.QUEUE_DEPTH: "requests",
    Role.RATE: "operations_per_second",
}


def findings_document(found: Sequence[ReportedFinding], zero: float) -> list[dict[str, Any]]:
    """In order of onset; `zero` is the load's start."""
    return [_finding(each, zero) for each in found]


def limits_document(judged: Sequence[Judged], zero: float) -> list[dict[str, Any]]:
    """In the order in which the workload has them."""
    rows = []
    for each in judged:
        row: dict[str, Any] = {"limit": each.text, "held": each.held}
        row |= {"windows": each.windows, "operations": each.operations}
        if each.unjudged:
            row["unjudged"] = each.unjudged
        if each.margin:
            row["margin"] = each.margin
        row["broken"] = [
            _interval("start", span.start, zero)
            | _interval("end", span.end, zero)
            | ({} if span.window_end is None else _interval("window_end", span.window_end, zero))
            | {"worst": span.worst}
            for span in each.broken[:SPAN_LIMIT]
        ]
        if len(each.broken) > SPAN_LIMIT:
            row["broken_omitted"] = len(each.broken) - SPAN_LIMIT
        rows.append(row)
    return rows


def _interval(name: str, moment: float, zero: float) -> dict[str, Any]:
    return {name: timestamp(moment), f"{name}_seconds": round(moment - zero, 3)}


def _finding(found: ReportedFinding, zero: float) -> dict[str, Any]:
    finding, series = found.finding, found.series
    body: dict[str, Any] = {"kind": finding.kind.value, "sentence": found.sentence, "degrades": found.degrades}
    body |= _interval("onset", finding.onset, zero)
    for name, moment in (("until", finding.until), ("detected", finding.detected)):
        if moment is not None:
            body |= _interval(name, moment, zero)
    body["series"] = series.name
    if series.operation is not None:
        body["operation"] = series.operation
    if series.quantile is not None:
        body["quantile"] = series.quantile
    body |= {
        "baseline": six_digits(finding.baseline),
        "level": six_digits(finding.level),
        "unit": UNITS[series.role],
        "ratio": round(finding.ratio, 4),
        "confidence": round(finding.confidence, 3),
        "corroborated_by": list(finding.corroborated_by),
    }
    body |= details_of(finding)
    if finding.size is not None:
        body |= _sizes(finding.size, zero)
    if finding.affected:
        body["affected"] = [{"series": size.series} | _figures(size) for size in finding.affected]
    if found.drive is not None:
        drive = found.drive
        body["drive"] = {"name": drive.name, "major_minor": drive.major_minor, "serial": drive.serial}
    if found.layers is not None and (layer := _layer(found.layers)):
        body["layer"] = layer
    if found.diagnosis is not None:
        body["cause"] = _suspect(found.diagnosis.first)
        if found.diagnosis.runner_up is not None:
            body["runner_up"] = _suspect(found.diagnosis.runner_up)
        body["tell_apart"] = found.diagnosis.distinguish_by
    if found.judged_by is not None:
        body["judged_by"] = {
            name: basis.document() for name, basis in zip(("before", "since"), found.judged_by, strict=True)
        }
    return body


def _figures(size: Size) -> dict[str, float]:
    figures = {"baseline": size.baseline.level, "level": size.level, "worst": size.worst}
    return {name: six_digits(value) for name, value in figures.items()} | {
        "ratio": round(size.ratio, 4),
        "worst_ratio": round(size.worst_ratio, 4),
    }


def _sizes(size: Size, zero: float) -> dict[str, Any]:
    """What goes with baseline and level: the worst since the onset, and where and when the baseline's windows were."""
    figures = {name: value for name, value in _figures(size).items() if name.startswith("worst")}
    baseline = size.baseline
    return figures | {
        "baseline_low": six_digits(baseline.low),
        "baseline_high": six_digits(baseline.high),
        "baseline_start_seconds": round(baseline.start - zero, 3),
        "baseline_end_seconds": round(baseline.end - zero, 3),
    }


def _suspect(suspect: Suspect) -> dict[str, Any]:
    return {
        "name": suspect.cause.value,
        "title": suspect.title,
        "confidence": suspect.confidence,
        "evidence_for": list(suspect.evidence_for),
        "evidence_against": list(suspect.evidence_against),
    }


def _layer(layers: LayerComparison) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if layers.grew is not None:
        body |= {"name": layers.grew.value, "title": layers.title, "share": layers.share}
        body["sentence"] = layers.sentence
    if layers.gap:
        body["gap"] = layers.gap
    if body:
        body |= {"before": _times(layers.before), "after": _times(layers.after)}
    return body


def _times(times: LayerTimes) -> dict[str, float]:
    values = {
        "client_seconds": times.client_seconds,
        "service_seconds": times.service_seconds,
        "block_queue_seconds": times.queue_seconds,
        "device_seconds": times.device_seconds,
        "requests_per_operation": times.requests_per_operation,
    }
    return {name: six_digits(value) for name, value in values.items() if value is not None}
