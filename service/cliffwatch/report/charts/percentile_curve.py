"""Latency by percentile, as HdrHistogram draws it: each further nine (p90, p99, p99.9) has the same width.

The curve of the soak beside that of the baseline shows how far the tail rose, and from which percentile on.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil, floor, log10

import numpy as np
from markupsafe import Markup

from cliffwatch.base.histogram import Histogram
from cliffwatch.model.phase import Phase, phase_words
from cliffwatch.report import format as formats
from cliffwatch.report.latency import LatencyGroup

#: Phases of a run that are drawn; the whole load where it has neither.
_PHASES = (Phase.BASELINE.value, Phase.SOAK.value)
WHOLE_LOAD = "whole load"
_POINTS = 120
_WIDTH, _HEIGHT = 1000.0, 180.0
_PERCENTILES = ("p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "p99.9999", "p99.99999")


def curves_of(groups: Iterable[LatencyGroup]) -> dict[str, dict[str, Histogram]]:
    """Merged histograms to draw, by latency name, then by phase: baseline and soak, or WHOLE_LOAD without either."""
    whole: dict[str, Histogram] = {}
    phases: dict[str, dict[str, Histogram]] = {}
    for group in groups:
        for name, histogram in group.histograms.items():
            whole.setdefault(name, Histogram()).merge(histogram)
            if group.phase in _PHASES:
                phases.setdefault(name, {}).setdefault(phase_words(group.phase), Histogram()).merge(histogram)
    return {name: phases.get(name) or {WHOLE_LOAD: histogram} for name, histogram in whole.items() if histogram.count}


def drawn(curves: Mapping[str, Histogram]) -> Markup | None:
    """HTML of the curves, with an SVG that stretches to the width of the page; None where there is nothing to draw."""
    points = {name: list(_points(histogram)) for name, histogram in curves.items() if histogram.count > 1}
    if not points:
        return None
    values = [value for line in points.values() for _, value in line]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    high += high == low
    right = max(line[-1][0] for line in points.values())
    parts = [
        '<div class="percentile-curve"><div class="heat-bounds">',
        *_bound_labels(low, high),
        f'</div><svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none" style="height: {_HEIGHT:g}px" '
        'role="img" aria-label="Latency by percentile; the table below has the values">',
        f'<rect class="heat-ground" width="{_WIDTH:g}" height="{_HEIGHT:g}"/>',
        *(_rule(f"M0 {_y(10.0**power, low, high):.1f}H{_WIDTH:g}") for power in range(low, high + 1)),
        *(_rule(f"M{_WIDTH * nines / right:.1f} 0V{_HEIGHT:g}") for _, nines in _ticks(right)),
    ]
    for name, line in points.items():
        path = "L".join(f"{_WIDTH * nines / right:.1f} {_y(value, low, high):.1f}" for nines, value in line)
        parts.append(f'<path class="curve curve-{name.partition(" ")[0]}" d="M{path}"/>')
    parts += ['</svg><div class="heat-times curve-times">']
    for number, (name, nines) in enumerate(_ticks(right)):
        narrow = ' class="between"' if number % 2 else ""
        parts.append(f'<span{narrow} style="left: {nines / right:.1%}">{name}</span>')
    parts += ["</div></div>"]
    # Only numbers and constant text: nothing to escape.
    return Markup("".join(parts))  # noqa: S704


def _points(histogram: Histogram) -> Iterator[tuple[float, float]]:
    """Points of a curve: nines (`log10(1 / (1 - quantile))`) and seconds; the last has the highest counted latency."""
    last = log10(histogram.count)
    nines = np.linspace(0.0, last, _POINTS)
    values = histogram.percentiles_seconds((1.0 - 10.0 ** -nines[:-1]).tolist())
    for place, value in zip(nines[:-1], values, strict=True):
        if value is not None:
            yield float(place), max(value, 1e-9)
    yield last, max(histogram.max_seconds or 0.0, 1e-9)


def _ticks(right: float) -> Iterator[tuple[str, float]]:
    """Axis ticks: names of percentiles and their nines, up to shortly before the end of the curves."""
    for place, name in enumerate(_PERCENTILES):
        nines = float(place) if place else log10(2.0)
        if nines <= 0.97 * right:
            yield name, nines


def _y(seconds: float, low: int, high: int) -> float:
    return _HEIGHT * (high - log10(seconds)) / (high - low)


def _bound_labels(low: int, high: int) -> Iterator[str]:
    step = ceil((high - low + 1) / 8)
    for power in range(low, high + 1, step):
        top = _y(10.0**power, low, high)
        yield f'<span style="top: {top - 8:.0f}px">{formats.latency(10.0**power)}</span>'


def _rule(path: str) -> str:
    return f'<path class="curve-rule" d="{path}"/>'
