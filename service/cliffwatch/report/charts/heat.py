"""Latency heat map: how request or operation latencies are distributed over time; a percentile is one line in it.

It is drawn here and not by the page's script, so that it prints and needs no script.
"""

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
#: Number of bounds and of times that label the axes; on a narrow page only every fourth time.
_ROW_LABELS, _TIME_LABELS, _NARROW_EVERY = 8, 8, 4


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
    parts += ['</svg><div class="heat-times">', *_time_labels(end), "</div></div>"]
    # Only numbers and constant text: nothing to escape.
    return Markup("".join(parts))  # noqa: S704


def _bound_labels(heat: HeatMap) -> Iterator[str]:
    rows = len(heat.bounds)
    for row in range(0, rows, -(-rows // _ROW_LABELS)):
        words = formats.latency(heat.bounds[row]) if np.isfinite(heat.bounds[row]) else "more"
        yield f'<span style="top: {(rows - row - 1) * _ROW:g}px">{words}</span>'


def _time_labels(end: float) -> Iterator[str]:
    for number in range(_TIME_LABELS + 1):
        share = number / _TIME_LABELS
        narrow = ' class="between"' if number % _NARROW_EVERY else ""
        place = "right: 0" if number == _TIME_LABELS else f"left: {share:.1%}"
        yield f'<span{narrow} style="{place}">{formats.elapsed(end * share)}</span>'
