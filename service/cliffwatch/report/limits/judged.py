"""Result of a limit: whether it held, and the spans that broke it."""

from dataclasses import dataclass

from cliffwatch.analysis.limit_spans import Breach


@dataclass(frozen=True, slots=True)
class BrokenSpan:
    """Time in which a limit was broken, from `start` to `end` (since the epoch), and the worst value in it, as text.

    `window_end` is the end of the window that broke the limit, which begins at `start`; None where no single window
    broke it: for a limit over the whole load (`is_whole`), or on findings.
    """

    start: float
    end: float
    worst: str
    window_end: float | None = None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """Result for one limit. `unjudged` says why it could not be judged; empty where it could.

    `margin` is how far the worst value was from the bound, as text; empty where that is not known. `windows` and
    `operations` are the numbers of windows and operations that it was judged by. `in_baseline` is the value of the
    declared baseline, as text, if the baseline broke a limit that the run broke; else empty.
    """

    text: str
    broken: tuple[BrokenSpan, ...] = ()
    unjudged: str = ""
    margin: str = ""
    windows: int = 0
    operations: int = 0
    in_baseline: str = ""

    @property
    def held(self) -> bool:
        return not self.broken and not self.unjudged


def broken_span(breach: Breach, worst: str, is_by_window: bool) -> BrokenSpan:
    """Broken span of a breach; `worst` is its worst value, as text."""
    return BrokenSpan(breach.start, breach.until, worst, breach.end if is_by_window else None, not is_by_window)
