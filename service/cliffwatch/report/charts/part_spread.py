"""Distribution of p99 over the parts of a run that has too many for a curve each: a line for each part, on one axis."""

from collections.abc import Sequence
from math import ceil, floor, log10

from markupsafe import Markup

from cliffwatch.report import format as formats
from cliffwatch.report.schema.latency import PartDocument

_WIDTH, _HEIGHT = 1000.0, 36.0
_HALF, _MOST = 0.5, 0.9


def spread_words(parts: Sequence[PartDocument]) -> str:
    """The middle, nine in ten and the slowest of the parts' p99, as text; empty where none has one."""
    levels = _levels(parts)
    if not levels:
        return ""
    half, most = (formats.latency(levels[ceil(share * len(levels)) - 1]) for share in (_HALF, _MOST))
    return f"half are at most {half}, nine in ten at most {most}, the slowest {formats.latency(levels[-1])}"


def drawn(parts: Sequence[PartDocument]) -> Markup | None:
    """SVG with a line at each part's p99, on a logarithmic axis of whole decades; None where no part has one."""
    levels = _levels(parts)
    if not levels:
        return None
    low, high = floor(log10(levels[0])), ceil(log10(levels[-1]))
    high += high == low
    decades = "".join(f"M{_WIDTH * (power - low) / (high - low):.1f} 0v{_HEIGHT:g}" for power in range(low, high + 1))
    lines = "".join(f"M{_WIDTH * (log10(level) - low) / (high - low):.1f} 6v{_HEIGHT - 12:g}" for level in levels)
    labels = (
        f'<span style="left: {(power - low) / (high - low):.1%}">{formats.latency(10.0**power)}</span>'
        for power in range(low, high + 1)
    )
    # Only numbers and constant text: nothing to escape.
    return Markup(  # noqa: S704
        f'<div class="part-spread"><svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="p99 of each part"><path class="curve-rule" d="{decades}"/><path class="part-line" d="{lines}"/>'
        f'</svg><div class="heat-times curve-times">{"".join(labels)}</div></div>'
    )


def _levels(parts: Sequence[PartDocument]) -> list[float]:
    return sorted(part["p99_seconds"] for part in parts if part.get("p99_seconds"))
