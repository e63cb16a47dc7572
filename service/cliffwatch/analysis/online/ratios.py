"""Degradation ratios: median level of each series' newest windows / its baseline, over several spans."""

import math
from collections.abc import Iterable

from cliffwatch.analysis.finding import Role
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.span_lengths import BLOCK

#: Windows whose median is compared with the baseline, by the span's name.
RATIO_SPANS = {"fast": BLOCK, "slow": 180, "drift": 720}


def ratios_of(channels: Iterable[Channel]) -> dict[tuple[str, str], float]:
    """Degradation ratios by (series name, span): median level of the span's windows / baseline."""
    ratios = {}
    for channel in channels:
        if channel.baseline is None or channel.series.role not in (Role.LATENCY, Role.DEVICE_LATENCY):
            continue
        for span, windows in RATIO_SPANS.items():
            level = channel.level(windows)
            if level is not None:
                ratios[channel.series.name, span] = math.exp(level) / channel.baseline.level
    return ratios
