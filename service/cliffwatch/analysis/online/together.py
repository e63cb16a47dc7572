"""Merge operations that slow down at the same time into one change."""

from collections.abc import Mapping, Sequence

from cliffwatch.analysis.cliff import height_to_join
from cliffwatch.analysis.finding import SUDDEN
from cliffwatch.analysis.online.series_judge import Judge
from cliffwatch.analysis.sizes import LEVEL_WINDOWS, rose
from cliffwatch.analysis.span_lengths import HOUR
from cliffwatch.analysis.thresholds import JOIN_SIGMAS, JOIN_WINDOWS


def together_with(
    judge: Judge, judges: Sequence[Judge], present: Mapping[str, float], height: float, windows: int
) -> list[Judge]:
    """The other operations that became slower in the last `windows` too. `present`: levels of the last window."""
    if not judge.is_primary:
        return []
    found = []
    for one in judges:
        level, recent = one.channel.level(min(windows, HOUR)), one.channel.recent_level
        if one is judge or not one.is_primary or level is None or recent is None:
            continue
        needed = max(height_to_join(height), JOIN_SIGMAS * one.channel.fast_sigma())
        if one.name in present and level - recent > needed:
            found.append(one)
    return found


def take_in_affected(judge: Judge, judges: Sequence[Judge], window: int) -> None:
    """Add to a sudden finding each operation that rose at its onset, while its size is still being decided.

    The noise of an added operation does not matter: it is no finding by itself, but part of one.
    """
    finding, sizing = judge.active, judge.sizing
    if finding is None or sizing is None or finding.kind not in SUDDEN or not judge.is_primary:
        return
    if window - judge.began_window > 2 * LEVEL_WINDOWS:
        return
    for one in judges:
        if one is judge or not one.is_primary or one.active is not None or one.name in sizing.rises:
            continue
        if rose(one.channel.levels_before(finding.onset), one.channel.levels_since(finding.onset)):
            one.measure(finding, sizing)


def joins_another(judge: Judge, judges: Sequence[Judge], window: int, windows: int) -> bool:
    """Merge a change, found at `window` and begun `windows` before, into another operation's active change, if the two
    began close together; returns whether it was merged."""
    began = window - windows
    for other in judges:
        if other is judge or not other.is_primary or other.active is None or other.active.kind not in SUDDEN:
            continue
        if judge.active is None and other.sizing is not None and began - other.began_window <= JOIN_WINDOWS:
            judge.measure(other.active, other.sizing)
            judge.channel.begin_regime(windows)
            judge.save_state()
            return True
    return False
