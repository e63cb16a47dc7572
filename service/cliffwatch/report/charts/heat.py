"""Latency heat map: how request or operation latencies are distributed over time; a percentile is one line in it.

It is drawn here and not by the page's script, so that it prints and needs no script.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from cliffwatch.report import format as formats
from cliffwatch.telemetry.increases import sum_of_increases
from cliffwatch.telemetry.reader import Floats, Samples

#: More columns than this are narrower than an eye can see.
COLUMN_LIMIT = 144
#: Minimum share of a column's requests for each shade, the palest first.
SHADES = (0.0, 0.001, 0.01, 0.1, 0.4)
_WIDTH, _ROW = 880.0, 12.0
#: Most times that label the axis, of which a narrow page shows every third; seconds between two of them.
_TIME_LABELS, _NARROW_EVERY = 10, 3
_TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400)
#: Latencies that label the other axis, as multiples of a power of ten: all of them where there are few powers.
_LATENCY_MULTIPLES, _FEW_POWERS = (1, 2, 5), 2.5


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Heat map: `edges` of the columns, in seconds since the load began, and upper `bounds` of the rows, in seconds.

    `shares` has a row for each bound and a column for each time span: share of the span's latencies, NaN where unknown.
    """

    edges: Floats
    bounds: list[float]
    shares: Floats


def heat_map(buckets: Sequence[Samples], zero: float, seconds: float) -> HeatMap | None:
    """Heat map from telemetry's histogram buckets, for `seconds` from time `zero` on; None if they hold too little."""
    by_bound: dict[float, list[Samples]] = {}
    for samples in buckets:
        by_bound.setdefault(float(samples.labels["le"]), []).append(samples)
    apart = [float(np.median(np.diff(samples.times))) for samples in buckets if len(samples.times) > 1]
    if len(by_bound) < 2 or seconds <= 0 or not apart:
        return None
    # Columns narrower than the sampling interval would have no samples of their own.
    step_seconds = max(apart)
    edges = np.linspace(0.0, seconds, max(1, min(COLUMN_LIMIT, int(seconds / step_seconds))) + 1)
    longest = float(edges[1]) + 2 * step_seconds
    bounds = sorted(by_bound)
    cumulative = np.array(
        [sum_of_increases(by_bound[bound], zero + edges[:-1], zero + edges[1:], longest)[0] for bound in bounds]
    )
    # Scraped one after the other, a higher bucket may have counted less than a lower one.
    counts = np.maximum(np.diff(cumulative, axis=0, prepend=0.0), 0.0)
    return shares_of(edges, bounds, counts)


def shares_of(edges: Floats, bounds: list[float], counts: Floats) -> HeatMap | None:
    """Heat map from counts by bound (rows) and span (columns), without empty rows at either end; None when nothing was
    counted."""
    used = np.flatnonzero(np.nansum(counts, axis=1) > 0)
    if not len(used):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = counts / counts.sum(axis=0)
    first, last = int(used[0]), int(used[-1]) + 1
    return HeatMap(edges, bounds[first:last], shares[first:last])


def _column_titles(heat: HeatMap, width: float, height: float, what: str) -> list[str]:
    """SVG tooltip of each column: its time span, and the bounds up to which half and 99 % of its latencies lie."""
    below = np.cumsum(np.nan_to_num(heat.shares), axis=0)
    parts = []
    for column in np.flatnonzero(np.nansum(heat.shares, axis=0) > 0):
        # A sum of shares may fall short of 1 by a rounding.
        half, most = (_up_to(heat.bounds[int(np.argmax(below[:, column] >= share - 1e-9))]) for share in (0.5, 0.99))
        span = f"{formats.elapsed(float(heat.edges[column]))} to {formats.elapsed(float(heat.edges[column + 1]))}"
        parts.append(
            f'<rect x="{column * width:.1f}" y="0" width="{width:.2f}" height="{height:g}" '
            f'fill-opacity="0"><title>{span}: half of the {what} took {half}, 99 % {most}</title></rect>'
        )
    return parts


def _up_to(bound: float) -> str:
    return f"up to {formats.latency(bound)}" if np.isfinite(bound) else "longer than the largest bucket"


def drawn(heat: HeatMap, onsets: Sequence[float], what: str = "requests") -> Markup:
    """HTML of a heat map of `what`, such as requests, with a line at each of `onsets`, in seconds since the load began.

    The cells are an SVG that stretches to the width of the page; the labels beside it keep their size.
    """
    rows, columns = heat.shares.shape
    height, width = rows * _ROW, _WIDTH / columns
    parts = [
        '<div class="heat"><div class="heat-bounds">',
        *_bound_labels(heat),
        f'</div><svg viewBox="0 0 {_WIDTH:g} {height:g}" preserveAspectRatio="none" style="height: {height:g}px" '
        f'role="img" aria-label="How the latency of {what} was spread over time">',
        f'<rect class="heat-ground" width="{_WIDTH:g}" height="{height:g}"/>',
    ]
    shades: list[list[str]] = [[] for _ in SHADES]
    for row, column in np.argwhere(np.nan_to_num(heat.shares) > 0):
        shade = sum(bool(heat.shares[row, column] >= least) for least in SHADES) - 1
        place = f"M{column * width:.1f} {height - (row + 1) * _ROW:g}"
        shades[shade].append(f"{place}h{width:.2f}v{_ROW:g}h-{width:.2f}z")
    parts += [f'<path class="heat-{number}" d="{"".join(cells)}"/>' for number, cells in enumerate(shades) if cells]
    parts += _column_titles(heat, width, height, what)
    end = float(heat.edges[-1])
    parts += [
        f'<path class="heat-onset" d="M{_WIDTH * onset / end:.1f} 0V{height:g}"/>'
        for onset in onsets
        if 0 <= onset <= end
    ]
    parts += ['</svg><div class="heat-times">', *_time_labels(end), "</div>", _key(), "</div>"]
    # Only numbers and constant text: nothing to escape.
    return Markup("".join(parts))  # noqa: S704


def _bound_labels(heat: HeatMap) -> Iterator[str]:
    """Labels at round latencies, each where it lies between the bounds of the rows (on a logarithmic axis)."""
    rows, known = len(heat.bounds), [bound for bound in heat.bounds if np.isfinite(bound)]
    if rows > len(known):
        yield '<span style="top: 0">more</span>'
    if len(known) < 2:
        return
    # A row reaches from the bound below it to its own; the lowest is taken to be as wide as the next.
    edges = np.log10([known[0] ** 2 / known[1], *known])
    for latency in _round_latencies(float(edges[0]), float(edges[-1])):
        place = float(np.interp(np.log10(latency), edges, np.arange(len(edges))))
        yield f'<span style="top: {(rows - place) * _ROW - _ROW / 2:.1f}px">{formats.latency(latency)}</span>'


def _round_latencies(low: float, high: float) -> list[float]:
    """Round latencies between two bounds, all as powers of ten (`low` and `high` are exponents)."""
    multiples = _LATENCY_MULTIPLES if high - low < _FEW_POWERS else (1,)
    powers = range(math.floor(low), math.ceil(high) + 1)
    found = [multiple * 10.0**power for power in powers for multiple in multiples]
    return [latency for latency in found if low <= math.log10(latency) <= high]


def _time_labels(end: float) -> Iterator[str]:
    step = next((step for step in _TIME_STEPS if end / step <= _TIME_LABELS), math.ceil(end / _TIME_LABELS))
    for number in range(math.floor(end / step) + 1):
        narrow = ' class="between"' if number % _NARROW_EVERY else ""
        yield f'<span{narrow} style="left: {number * step / end:.2%}">{formats.elapsed(number * step)}</span>'


def _key() -> str:
    """What the shades mean."""
    marks = (
        f'<span><i class="heat-swatch-{number}"></i>{f"from {100 * least:.4g}" if least else "above 0"} %</span>'
        for number, least in enumerate(SHADES)
    )
    return f'<div class="heat-key">share of a column: {" ".join(marks)}</div>'
