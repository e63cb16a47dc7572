"""Terminal output of a what-if answer: a table with a drawn band in each row, then assumptions and notes."""

from collections.abc import Iterator, Sequence
from math import inf
from textwrap import wrap

from cliffwatch.base.units import format_amplification, format_hours, format_number
from cliffwatch.labs.what_if.answer import Band, Row, WhatIfAnswer
from cliffwatch.labs.what_if.field_report import StatementKind, statements
from cliffwatch.labs.what_if.parameters import PARAMETERS
from cliffwatch.labs.what_if.plan import SimulationPlan

BAR_WIDTH = 37
_WIDTH = 112
_HOUR = 3600.0
AS_DESCRIBED = "as described"


def lines(answer: WhatIfAnswer) -> Iterator[str]:
    """Lines of the answer, without colours."""
    yield question(answer.plan)
    yield ""
    yield from _aligned(list(_table(answer)))
    yield ""
    yield from _paragraph(reading(answer))
    yield ""
    for title, points in notes(answer):
        yield title
        for point in points:
            yield from _paragraph(point, "  - ", "    ")
        yield ""


def question(plan: SimulationPlan) -> str:
    """Heading of the answer in one line: profile, capacity, rate and duration."""
    profile = plan.profile
    facts = [profile.name, f"{format_number(profile.capacity_bytes / 1e12)} TB"]
    if profile.rate_bytes_per_second is not None:
        facts.append(f"{format_number(profile.rate_bytes_per_second / 1e9)} GB/s")
    if profile.horizon_seconds is not None:
        facts.append(hours_or_none(profile.horizon_seconds))
    return "What if · " + " · ".join(facts)


def reading(answer: WhatIfAnswer) -> str:
    """Paragraph on how to read the bands."""
    plan = answer.plan
    unknown = " and of ".join(PARAMETERS[name].title.lower() for name in plan.unknown)
    times = f"{answer.base.simulations} simulations in the first row" if answer.base.simulations > 1 else "a simulation"
    seeds = f"{len(plan.seeds)} seeds" if len(plan.seeds) > 1 else "one seed"
    return (
        f"A band goes from the lowest through the middle (●) to the highest of {times}: over {seeds} and over all "
        f"values of {unknown}. The truth may be anywhere in it; the middle is not more likely. ▸ marks what the "
        "profile says. → is no cliff within the run."
    )


def notes(answer: WhatIfAnswer) -> Iterator[tuple[str, list[str]]]:
    """Notes below the table: titles with their lines."""
    found = statements(answer)
    for kind in StatementKind:
        texts = [statement.text for statement in found if statement.kind is kind]
        if texts:
            yield f"The field report, {kind.value}:", texts
    plan = answer.plan
    if answer.left_out:
        yield (
            "Left out, because it cannot be simulated:",
            [
                f"{case.parameter.title.lower()} {case.parameter.show(case.value)}: {reason}"
                for case, reason in answer.left_out
                if case.parameter is not None and case.value is not None
            ],
        )
    yield (
        "Assumed, not measured; varied in every band:",
        [
            f"{PARAMETERS[name].title.lower()}: {', '.join(PARAMETERS[name].show(value) for value in values)}"
            for name, values in plan.unknown.items()
        ],
    )
    held = ", ".join(f"{name} {value}" for name, value in answer.assumptions.items())
    yield "Assumed, not measured; held at one value:", [f"{held}. Vary any by --set NAME=VALUE."]
    definition = [f"A cliff is {answer.definition}."] if answer.base.onset_seconds is not None else []
    drive = "the whole drive was simulated" if plan.scale == 1 else f"1/{plan.scale} of the drive was simulated"
    wear = "no wear, no SLC cache, no cleaning in idle time"
    yield "What is meant:", [*definition, f"{drive.capitalize()}; {wear}. docs/drive.md has all limits."]


def _table(answer: WhatIfAnswer) -> Iterator[Sequence[str]]:
    has_onset = answer.base.onset_seconds is not None
    scale = end_of_axis(answer)
    heading = _axis(scale, has_onset)
    columns = ("LOWEST", "MIDDLE", "HIGHEST", "CLIFFS") if has_onset else ()
    yield ("", "", heading, *columns, "WRITE AMPLIFICATION")
    yield ("", AS_DESCRIBED, *_cells(answer.base, scale))
    before = None
    for row in answer.rows[1:]:
        parameter = row.case.parameter
        assert parameter is not None, "only the first row has none"
        assert row.case.value is not None, "a parameter has a value"
        if parameter is not before:
            yield ()
            yield (parameter.title,)
            before = parameter
        mark = "▸" if row.case.is_as_described and not parameter.is_unknown else ""
        yield (mark, parameter.show(row.case.value), *_cells(row, scale))


def _cells(row: Row, end: float) -> Iterator[str]:
    amplification = row.write_amplification
    if row.onset_seconds is None:
        yield bar(amplification, end, lowest=1.0)
    else:
        yield bar(row.onset_seconds, end)
        for figure in (row.onset_seconds.lowest, row.onset_seconds.middle, row.onset_seconds.highest):
            yield hours_or_none(figure)
        yield f"{row.with_cliff}/{row.simulations}"
    yield " … ".join(map(format_amplification, (amplification.lowest, amplification.middle, amplification.highest)))


def bar(band: Band, end: float, width: int = BAR_WIDTH, lowest: float = 0.0) -> str:
    """A drawn band on an axis from `lowest` to `end`; infinity is an arrow in the last place."""
    last = width - 2

    def place(figure: float) -> int:
        share = (figure - lowest) / (end - lowest) if end > lowest else 0.0
        return width - 1 if figure == inf else round(min(max(share, 0.0), 1.0) * last)

    left, middle, right = place(band.lowest), place(band.middle), place(band.highest)
    drawn = [" "] * width
    for position in range(left, right + 1):
        drawn[position] = "─"
    drawn[left], drawn[right] = "├", "┤"
    if band.highest == inf:
        drawn[right] = "→"
    if left == right and band.highest != inf:
        drawn[left] = "│"
    drawn[middle] = "●"
    return "".join(drawn)


def _axis(end: float, has_onset: bool) -> str:
    if not has_onset:
        return f"{format_amplification(1):<{BAR_WIDTH - 6}}{format_amplification(end):>6}"
    return f"{'0 h':<{BAR_WIDTH - 9}}{hours_or_none(end):>6} →"


def end_of_axis(answer: WhatIfAnswer) -> float:
    """End of the axis: the run's duration in seconds, or the latest onset if it has none; if no onset is known, the
    highest write amplification."""
    bands = [row.onset_seconds for row in answer.rows if row.onset_seconds is not None]
    if not bands:
        return max(row.write_amplification.highest for row in answer.rows)
    finite = [figure for band in bands for figure in (band.lowest, band.middle, band.highest) if figure != inf]
    return answer.plan.profile.horizon_seconds or max(finite, default=_HOUR)


def hours_or_none(seconds: float) -> str:
    """Format seconds in hours; infinity as `none`."""
    return "none" if seconds == inf else format_hours(seconds)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their widest cell; a row of one cell is a heading and widens none."""
    widths: dict[int, int] = {}
    for row in rows:
        if len(row) > 1:
            for column, cell in enumerate(row):
                widths[column] = max(widths.get(column, 0), len(cell))
    for row in rows:
        if len(row) == 1:
            yield row[0]
        else:
            yield "  ".join(f"{cell:<{widths[column]}}" for column, cell in enumerate(row)).rstrip()


def _paragraph(text: str, first: str = "", later: str = "") -> list[str]:
    return wrap(text, _WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
