"""Small curve of a p99 over the load: of a run in a list, of a part, and at the top of a report."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from markupsafe import Markup

from cliffwatch.analysis.stalls import stall_words
from cliffwatch.report.charts.curve import Curve, curve_in
from cliffwatch.report.format import latency
from cliffwatch.report.schema.latency import PartDocument
from cliffwatch.report.schema.report import ReportDocument

CURVE_WIDTH, CURVE_HEIGHT = 120, 24
#: Points of a curve that are more than this many median distances apart have a gap between them.
_GAP_STEPS = 3


@dataclass(frozen=True, slots=True)
class Scale:
    """Common scale of several curves: whole decades of latency, in seconds."""

    low: float
    high: float

    @property
    def words(self) -> str:
        return f"{latency(self.low)} to {latency(self.high)}"

    def height(self, seconds: float) -> float:
        part = math.log(seconds / self.low) / math.log(self.high / self.low)
        return CURVE_HEIGHT - 1 - part * (CURVE_HEIGHT - 2)


@dataclass(frozen=True, slots=True)
class Band:
    """Part of a small curve in which nothing was completed: from the end of its first stalled window to that of its
    last, and wide enough to be seen."""

    left: float
    right: float


@dataclass(frozen=True, slots=True)
class SmallCurve:
    """Polylines in a box of CURVE_WIDTH × CURVE_HEIGHT over `seconds`, interrupted where nothing was measured; `words`
    sums them up.

    `stalls` are the bands in which the run was measured and nothing was completed; `onsets` the places of findings.
    """

    lines: tuple[str, ...]
    stalls: tuple[Band, ...]
    words: str
    seconds: float
    onsets: tuple[float, ...] = ()

    @property
    def svg(self) -> Markup:
        bands = (
            f'<rect x="{band.left}" width="{band.right - band.left:.1f}" height="{CURVE_HEIGHT}"/>'
            for band in self.stalls
        )
        lines = (f'<polyline points="{line}"/>' for line in self.lines)
        onsets = (f'<path d="M{at} 0V{CURVE_HEIGHT}"/>' for at in self.onsets)
        # Numbers and constant text: nothing to escape.
        return Markup(  # noqa: S704
            f'<svg class="small-curve" role="img" aria-label="{self.words}" viewBox="0 0 {CURVE_WIDTH} {CURVE_HEIGHT}" '
            f'preserveAspectRatio="none"><title>{self.words}</title>{"".join((*bands, *lines, *onsets))}</svg>'
        )


def scale_of(values: Iterable[float | None]) -> Scale | None:
    """Whole decades around all values; None where there is no value."""
    present = [value for value in values if value]
    if not present:
        return None
    low, high = math.floor(math.log10(min(present))), math.ceil(math.log10(max(present)))
    return Scale(10.0**low, 10.0 ** max(high, low + 1))


def small_curve(
    curve: Curve,
    scale: Scale | None,
    load_start: float | None = None,
    load_stop: float | None = None,
    onsets: Iterable[float] = (),
) -> SmallCurve | None:
    """A p99 over the planned load, where nothing was completed, and `onsets`; None where there is too little to draw.

    Times are seconds since the epoch.
    """
    values = [point.p99 for point in curve if point.p99]
    stalls = [point.stall for point in curve if point.stall is not None]
    if len(curve) < 2 or len(values) + len(stalls) < 2:
        return None
    start = load_start if load_start is not None else curve[0].at
    stop = max(load_stop or 0.0, curve[-1].at)
    step = median(after.at - before.at for before, after in pairwise(curve))

    def place(at: float) -> float:
        return max(0.0, (at - start) / (stop - start)) * (CURVE_WIDTH - 2) + 1

    lines: list[list[str]] = [[]]
    stalled: list[list[float]] = [[]]
    previous = curve[0].at - step
    for point in curve:
        follows = point.at - previous <= _GAP_STEPS * step
        if not point.p99 or not follows:
            lines.append([])
        if point.stall is None or not follows:
            stalled.append([])
        if point.p99 and scale is not None:
            lines[-1].append(f"{place(point.at):.1f},{scale.height(point.p99):.1f}")
        if point.stall is not None:
            stalled[-1].append(place(point.at))
        previous = point.at
    said = [f"p99 from {latency(values[0])} to {latency(values[-1])}, at most {latency(max(values))}"] if values else []
    said += [stall_words(max(stalls))] if stalls else []
    return SmallCurve(
        tuple(" ".join(line) for line in lines if len(line) > 1),
        tuple(Band(round(each[0], 1), round(max(each[-1], each[0] + 1), 1)) for each in stalled if each),
        "; ".join(said),
        stop - start,
        tuple(round(place(at), 1) for at in onsets),
    )


def curve_of_load(document: ReportDocument) -> tuple[SmallCurve | None, Scale | None]:
    """Curve of a report's whole load with the onsets of what degraded it, and its scale."""
    curve = curve_in(document)
    scale = scale_of(point.p99 for point in curve)
    start = document["run"].get("load_start")
    onsets = [datetime.fromisoformat(each["onset"]).timestamp() for each in document["findings"] if each["degrades"]]
    return small_curve(curve, scale, datetime.fromisoformat(start).timestamp() if start else None, None, onsets), scale


def curves_of_parts(parts: Sequence[PartDocument]) -> tuple[dict[str, SmallCurve], Scale | None]:
    """Small curves of a report's parts, by name, on one scale and over the same time; and that scale."""
    curves = {part["name"]: curve_in(part) for part in parts}
    points = [point for curve in curves.values() for point in curve]
    scale = scale_of(point.p99 for point in points)
    start, stop = min((point.at for point in points), default=0.0), max((point.at for point in points), default=0.0)
    drawn = {name: small_curve(curve, scale, start, stop) for name, curve in curves.items()}
    return {name: curve for name, curve in drawn.items() if curve is not None}, scale
