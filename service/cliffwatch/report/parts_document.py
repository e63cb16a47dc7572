"""Parts of a run with several targets: how each did beside the others, the one that is furthest from them first."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from cliffwatch.journal import JournalWindow
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.order import RunOrder
from cliffwatch.model.part_names import of_part, split_part
from cliffwatch.model.phase import Phase
from cliffwatch.report.charts.curve import CurvePoint, worst_curve_of_part
from cliffwatch.report.schema.latency import CurvePointDocument, LatencyOfOperation, PartDocument, Percentiles

#: Parts that have a curve of their own, those furthest from the others.
CURVES_LIMIT = 16


def parts_document(
    order: RunOrder | None,
    windows: Sequence[JournalWindow],
    latency: Mapping[str, LatencyOfOperation],
    drives: Mapping[str, str] | None = None,
) -> list[PartDocument]:
    """Parts of a run; none for a run with one target. `latency` is that of the report, which has `PART/NAME` too;
    `drives`: names of the drives of parts."""
    if order is None or not order.more_targets:
        return []
    name = primary_latency([key for key in latency if not split_part(key)[0]])
    parts = [
        _part(part, str(target), latency.get(of_part(part, name or "")), windows)
        for part, target in order.parts.items()
    ]
    for part in parts:
        if drives and part["name"] in drives:
            part["drives"] = drives[part["name"]]
    levels = {part["name"]: part.get("p99_seconds") for part in parts}
    if all("rise_ratio" in part for part in parts):
        # Drives that differ from the start are compared by how far each rose.
        levels = {part["name"]: part["rise_ratio"] for part in parts}
    for part in parts:
        own, others = (
            levels[part["name"]],
            [level for other, level in levels.items() if other != part["name"] and level],
        )
        if own and others:
            part["ratio_to_others"] = round(own / median(others), 4)
    parts.sort(key=lambda part: -part.get("ratio_to_others", 0.0))
    for part in parts[:CURVES_LIMIT]:
        if curve := worst_curve_of_part(windows, part["name"], name or ""):
            part["curve"] = curve_document(curve)
    return parts


def curve_document(curve: Iterable[CurvePoint]) -> list[CurvePointDocument]:
    """Points of a small curve; figures that are not known are absent."""
    rows: list[CurvePointDocument] = []
    for point in curve:
        row: CurvePointDocument = {"at": point.at}
        if point.p99 is not None:
            row["p99_seconds"] = point.p99
        if point.stall is not None:
            row["stall_seconds"] = point.stall
        rows.append(row)
    return rows


def _part(name: str, target: str, latency: LatencyOfOperation | None, windows: Sequence[JournalWindow]) -> PartDocument:
    part: PartDocument = {
        "name": name,
        "target": target,
        "operations": sum(window.counters.get(of_part(name, "operations"), 0) for window in windows),
    }
    if latency is None:
        return part
    spans: dict[str, Percentiles] = {row["phase"]: row for row in latency["phases"]}
    p99 = spans.get(Phase.SOAK, latency["load"]).get("p99_seconds")
    baseline = spans.get(Phase.BASELINE, {"count": 0}).get("p99_seconds")
    if p99 is not None:
        part["p99_seconds"] = p99
    if p99 is not None and baseline:
        part["baseline_p99_seconds"] = baseline
        part["rise_ratio"] = round(p99 / baseline, 4)
    return part
