"""The drives' latency as a heat map: how the requests of each moment were spread, where a percentile is one line.

Drawn here and not by the page's script, so that it prints and needs no script.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from cliffwatch.report import format as formats
from cliffwatch.telemetry.increases import sum_of_increases
from cliffwatch.telemetry.reader import Floats, Samples

#: More columns than this are narrower than an eye can see.
COLUMN_LIMIT = 144
#: The least share of a moment's requests that each shade stands for, the palest first.
SHADES = (0.0, 0.001, 0.01, 0.1, 0.4)
_LEFT, _TOP, _WIDTH, _ROW, _FOOT = 66.0, 4.0, 880.0, 12.0, 20.0
#: So many bounds and times are written beside the axes.
_ROW_LABELS, _TIME_LABELS = 8, 8


@dataclass(frozen=True, slots=True)
class HeatMap:
    """`edges` of the columns, in seconds since the load began; `bounds`, in seconds, are the upper ones of the rows.

    `shares` has a row for each bound and a column for each span: of the requests of the span, NaN where none is known.
    """

    edges: Floats
    bounds: list[float]
    shares: Floats


def heat_map(buckets: Sequence[Samples], zero: float, seconds: float) -> HeatMap | None:
    """Of the cumulative buckets of histograms, over `seconds` from `zero` on; None when they counted nothing."""
    by_bound: dict[float, list[Samples]] = {}
    for samples in buckets:
        by_bound.setdefault(float(samples.labels["le"]), []).append(samples)
    apart = [float(np.median(np.diff(samples.times))) for samples in buckets if len(samples.times) > 1]
    if len(by_bound) < 2 or seconds <= 0 or not apart:
        return None
    # What is sampled every 5 s says nothing of each second.
    step_seconds = max(apart)
    edges = np.linspace(0.0, seconds, max(1, min(COLUMN_LIMIT, int(seconds / step_seconds))) + 1)
    longest = float(edges[1]) + 2 * step_seconds
    bounds = sorted(by_bound)
    cumulative = np.array(
        [sum_of_increases(by_bound[bound], zero + edges[:-1], zero + edges[1:], longest)[0] for bound in bounds]
    )
    # Scraped one after the other, a higher bucket may have counted less than a lower one.
    counts = np.maximum(np.diff(cumulative, axis=0, prepend=0.0), 0.0)
    totals = counts.sum(axis=0)
    used = np.flatnonzero(np.nansum(counts, axis=1) > 0)
    if not len(used):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = counts / totals
    first, last = int(used[0]), int(used[-1]) + 1
    return HeatMap(edges, bounds[first:last], shares[first:last])


def _column_titles(heat: HeatMap, width: float, height: float) -> list[str]:
    """Over each column what it says in words, for whoever points at it."""
    below = np.cumsum(np.nan_to_num(heat.shares), axis=0)
    parts = []
    for column in np.flatnonzero(np.nansum(heat.shares, axis=0) > 0):
        # A sum of shares may fall short of 1 by a rounding.
        half, most = (_up_to(heat.bounds[int(np.argmax(below[:, column] >= share - 1e-9))]) for share in (0.5, 0.99))
        span = f"{formats.elapsed(float(heat.edges[column]))} to {formats.elapsed(float(heat.edges[column + 1]))}"
        parts.append(
            f'<rect x="{_LEFT + column * width:.1f}" y="{_TOP:g}" width="{width:.2f}" height="{height:g}" '
            f'fill-opacity="0"><title>{span}: half of the requests took {half}, 99 % {most}</title></rect>'
        )
    return parts


def _up_to(bound: float) -> str:
    return f"up to {formats.latency(bound)}" if np.isfinite(bound) else "longer than the largest bucket"


def drawn(heat: HeatMap, onsets: Sequence[float]) -> Markup:
    """The map as SVG, with a line at each of the `onsets`, in seconds since the load began."""
    rows, columns = heat.shares.shape
    bottom = _TOP + rows * _ROW
    width = _WIDTH / columns
    parts = [
        f'<svg class="heat" viewBox="0 0 960 {bottom + _FOOT:g}" role="img" '
        'aria-label="How the latency of the drives&#39; requests was spread over time">',
        f'<rect class="heat-ground" x="{_LEFT:g}" y="{_TOP:g}" width="{_WIDTH:g}" height="{bottom - _TOP:g}"/>',
    ]
    shades: list[list[str]] = [[] for _ in SHADES]
    for row, column in np.argwhere(np.nan_to_num(heat.shares) > 0):
        shade = sum(bool(heat.shares[row, column] >= least) for least in SHADES) - 1
        place = f"M{_LEFT + column * width:.1f} {bottom - (row + 1) * _ROW:g}"
        shades[shade].append(f"{place}h{width:.2f}v{_ROW:g}h-{width:.2f}z")
    parts += [f'<path class="heat-{number}" d="{"".join(cells)}"/>' for number, cells in enumerate(shades) if cells]
    every = -(-rows // _ROW_LABELS)
    for row in range(0, rows, every):
        words = formats.latency(heat.bounds[row]) if np.isfinite(heat.bounds[row]) else "more"
        parts.append(f'<text x="{_LEFT - 6:g}" y="{bottom - (row + 1) * _ROW + 9:g}" text-anchor="end">{words}</text>')
    end = float(heat.edges[-1])
    for number in range(_TIME_LABELS + 1):
        share = number / _TIME_LABELS
        words = formats.elapsed(end * share)
        anchor = "end" if number == _TIME_LABELS else "middle"
        parts.append(
            f'<text x="{_LEFT + _WIDTH * share:.1f}" y="{bottom + 15:g}" text-anchor="{anchor}">{words}</text>'
        )
    parts += _column_titles(heat, width, bottom - _TOP)
    for onset in onsets:
        if 0 <= onset <= end:
            at = _LEFT + _WIDTH * onset / end
            parts.append(f'<path class="heat-onset" d="M{at:.1f} {_TOP:g}V{bottom:g}"/>')
    # Numbers, and words of our own making.
    return Markup("".join([*parts, "</svg>"]))  # noqa: S704
