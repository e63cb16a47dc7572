"""Limit on recovery: how long after each marked span the latency was as before."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.marks import Mark, marks_in
from cliffwatch.analysis.span_lengths import FAST
from cliffwatch.analysis.thresholds import AFFECTED_FROM
from cliffwatch.journal import JournalWindow
from cliffwatch.journal.windows import QUANTILE_NAMES
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import Phase
from cliffwatch.report.collect import Collected

#: Windows whose median has to be as before; and the quantile of a window that is compared.
_SETTLED_WINDOWS = 5
_QUANTILE = QUANTILE_NAMES[2]


def recoveries(run: Collected, windows: Sequence[JournalWindow]) -> tuple[list[tuple[Mark, float | None]], str]:
    """Each marked span of a run, with the seconds from its end until the primary latency was as before: the p99 of some
    windows within ×1.3 of that of the baseline, or, of a run without one, of what came before the first mark. None
    where the load, or the time until the next mark, ended before. And why that cannot be known; else an empty text."""
    marks = marks_in(run.events)
    name = primary_latency(sorted({name for window in windows for name in window.latency}))
    if not marks:
        return [], "no span of the run is marked"
    if name is None:
        return [], "no latency was measured"
    known = [(window, level) for window in windows if (level := window.latency.get(name, {}).get(_QUANTILE))]
    before = [level for window, level in known if window.phase == Phase.BASELINE]
    before = before or [level for window, level in known if window.end <= marks[0].start]
    if len(before) < FAST:
        return [], f"fewer than {FAST} windows before the first mark show what the latency was"
    bound = AFFECTED_FROM * median(before)
    ends = [*(later.start for _, later in pairwise(marks)), float("inf")]
    found: list[tuple[Mark, float | None]] = []
    for mark, end in zip(marks, ends, strict=True):
        after = [(window, level) for window, level in known if window.start >= mark.end - 1e-6 and window.end <= end]
        settled = (
            after[index][0].start
            for index in range(len(after) - _SETTLED_WINDOWS + 1)
            if after[index][1] <= bound
            and median(level for _, level in after[index : index + _SETTLED_WINDOWS]) <= bound
        )
        start = next(settled, None)
        found.append((mark, None if start is None else max(0.0, start - mark.end)))
    return found, ""
