"""Limits on one part of a run, or on any of its parts: the run's windows as a part measured them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cliffwatch.journal import JournalWindow
from cliffwatch.model.drive_id import drive_figure
from cliffwatch.model.limits import ANY_PART, Limit
from cliffwatch.model.part_names import of_part
from cliffwatch.model.window import OLDEST_OUTSTANDING
from cliffwatch.report.limits.judged import Judged

#: Margins of so many parts are listed for a limit on any part that held.
_MARGINS = 4


def parts_of(limit: Limit, parts: Sequence[str]) -> list[str]:
    """Names of the parts that a limit is on, of those of a run; empty for one that is on the run as a whole."""
    if not limit.part:
        return []
    return list(parts) if limit.part == ANY_PART else [limit.part]


def as_part(window: JournalWindow, part: str) -> JournalWindow:
    """A window with the counters and gauges of one part under their own names, with the totals of its drives, and with
    no latency but the part's."""
    prefix = of_part(part, "")
    counters = {name.removeprefix(prefix): value for name, value in window.counters.items() if name.startswith(prefix)}
    for of_drive, count in [(drive_figure(name), count) for name, count in counters.items()]:
        if of_drive is not None:
            total = f"device_{of_drive[1]}"
            counters[total] = counters.get(total, 0) + count
    own = {name.removeprefix(prefix): value for name, value in window.gauges.items() if name.startswith(prefix)}
    shared = {name: value for name, value in window.gauges.items() if name != OLDEST_OUTSTANDING}
    latency = {name: summary for name, summary in window.latency.items() if name.startswith(prefix)}
    return replace(window, counters=counters, gauges=shared | own, latency=latency)


def on_part(limit: Limit, part: str) -> Limit:
    """A limit as it is held against the windows of one part."""
    return limit if limit.operation is None else replace(limit, operation=of_part(part, limit.operation))


def judged_by_parts(
    limit: Limit,
    parts: Sequence[str],
    windows: Sequence[JournalWindow],
    judge: Callable[[Limit, Sequence[JournalWindow]], Judged],
) -> Judged:
    """Judge a limit by the parts that it is on: it holds where each of them keeps it. `parts`: all of the run's."""
    if len(parts) == 1:
        return judge(limit, windows)
    each = {
        part: judge(on_part(limit, part), [as_part(window, part) for window in windows])
        for part in parts_of(limit, parts)
    }
    if limit.part != ANY_PART:
        return each[limit.part]
    broken = [replace(span, worst=f"{part}: {span.worst}") for part, one in each.items() for span in one.broken]
    unjudged = next((f"of {part}: {one.unjudged}" for part, one in each.items() if one.unjudged), "")
    margins = [f"{part}: {one.margin}" for part, one in each.items() if one.margin]
    return Judged(
        limit.text,
        tuple(sorted(broken, key=lambda span: span.start)),
        unjudged="" if broken else unjudged,
        margin="; ".join(margins) if len(margins) <= _MARGINS and not broken else "",
    )
