"""Judge limits by the value of each span: a quotient of sums over the span's windows."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.limit_spans import joined, sliding, span_of
from cliffwatch.journal import JournalWindow
from cliffwatch.model.limits import Limit
from cliffwatch.report.limits.judged import Judged, broken_span
from cliffwatch.report.limits.margin import is_beyond, margin

FloatArray = NDArray[np.float64]


def judged_by_quotient(
    limit: Limit,
    windows: Sequence[JournalWindow],
    over: Sequence[float],
    under: Sequence[float],
    show: Callable[[float | None], str],
) -> Judged:
    """Judge a limit whose value over a span is the sum of `over` by the sum of `under`, one of each for a window."""
    slides = sliding(windows, limit.over_seconds)
    if not slides:
        return Judged(limit.text, unjudged="no span of that length was measured to nine tenths")
    values = _over_spans(over, under, slides)
    if np.isnan(values).all():
        return Judged(limit.text, unjudged="nothing was due in any span")
    sign = -1.0 if limit.is_least else 1.0
    broken = [
        span_of(windows[first:behind], sign * float(value), limit.over_seconds)
        for (first, behind), value in zip(slides, values, strict=True)
        if not np.isnan(value) and is_beyond(limit, float(value))
    ]
    spans = tuple(broken_span(b, show(sign * b.badness), limit.over_seconds is not None) for b in joined(broken))
    worst = np.nanmin(values) if limit.is_least else np.nanmax(values)
    return Judged(limit.text, spans, margin=margin(limit, float(worst)))


def _over_spans(over: Sequence[float], under: Sequence[float], slides: Sequence[tuple[int, int]]) -> FloatArray:
    """Quotient of two sums for each span; NaN where the second is 0."""
    places = np.array(slides)
    above, below = (np.concatenate([[0.0], np.cumsum(each)]) for each in (over, under))
    with np.errstate(divide="ignore", invalid="ignore"):
        values: FloatArray = (above[places[:, 1]] - above[places[:, 0]]) / (below[places[:, 1]] - below[places[:, 0]])
    return np.where(np.isfinite(values), values, np.nan)
