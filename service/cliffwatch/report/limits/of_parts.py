"""Limits on one part of a run, or on any of its parts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cliffwatch.journal import JournalWindow
from cliffwatch.model.limits import ANY_PART, Limit
from cliffwatch.model.part_names import of_part
from cliffwatch.report.limits.judged import Judged
from cliffwatch.report.part_view import as_part

#: Margins of so many parts are listed for a limit on any part that held.
_MARGINS = 4


def parts_of(limit: Limit, parts: Sequence[str]) -> list[str]:
    """Names of the parts that a limit is on, of those of a run; empty for one that is on the run as a whole."""
    if not limit.part:
        return []
    return list(parts) if limit.part == ANY_PART else [limit.part]


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
