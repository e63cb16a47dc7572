"""Compare a published soak of a streaming broker (drive/profiles/field-report.yaml) with the model's results.

Sentences with figures are computed from the simulations of the answer, so that they claim no more than these show.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from cliffwatch.base.units import format_hours, format_ratio
from cliffwatch.labs.what_if.answer import Row, WhatIfAnswer
from cliffwatch.labs.what_if.parameters import TRIM, UNPARTITIONED, WRITE_SIZE
from cliffwatch.labs.what_if.plan import Simulation

NAME = "field-report"
#: Reported hours until the latency cliff, by the share of each drive that was left unpartitioned.
REPORTED_HOURS = {0.0: 12.0, 0.1: 24.0}
_HOUR = 3600.0


class StatementKind(StrEnum):
    """Relation of a sentence to the published report."""

    REPRODUCED = "reproduced"
    NOT_CONTRADICTED = "not contradicted, and not predicted either"
    NOT_REPRODUCED = "not reproduced"
    NOT_IN_THE_REPORT = "said by the model alone"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence about the report and the model."""

    kind: StatementKind
    text: str


def statements(answer: WhatIfAnswer) -> list[Statement]:
    """Statements on what the model reproduces of the report and what it does not; empty for another profile."""
    if answer.plan.profile.shipped != NAME:
        return []
    found = [*_hours(answer), *_later(answer), *_trim(answer), *_write_size(answer), *_always()]
    return sorted(found, key=lambda statement: list(StatementKind).index(statement.kind))


def _hours(answer: WhatIfAnswer) -> Iterator[Statement]:
    for share, hours in REPORTED_HOURS.items():
        row = answer.row(UNPARTITIONED.name, share) or (answer.base if share == 0.0 else None)
        if row is None or row.onset_seconds is None:
            continue
        where = f"The report's cliff after {hours:g} h with {UNPARTITIONED.show(share)} left unpartitioned"
        band = row.onset_seconds
        if band.lowest <= hours * _HOUR <= band.highest:
            yield Statement(StatementKind.NOT_CONTRADICTED, f"{where} lies within the model's band, {_band_text(row)}.")
        else:
            yield Statement(StatementKind.NOT_REPRODUCED, f"{where} lies outside the model's band, {_band_text(row)}.")


def _later(answer: WhatIfAnswer) -> Iterator[Statement]:
    """Statement on whether the cliff comes later, from pairs of simulations that differ only in the share left
    unpartitioned."""
    narrow, wide = (_by_rest(answer, UNPARTITIONED.name, share) for share in REPORTED_HOURS)
    pairs = [(onset, wide[rest]) for rest, onset in narrow.items() if rest in wide and onset != inf]
    if not pairs:
        return
    moved = sum(later > onset for onset, later in pairs)
    ratios = sorted(later / onset for onset, later in pairs if later != inf)
    gone = sum(later == inf for _, later in pairs)
    kind = StatementKind.REPRODUCED if moved == len(pairs) else StatementKind.NOT_REPRODUCED
    times = (
        f"; where it comes, {format_ratio(ratios[0])} to {format_ratio(ratios[-1])} as late (report: {format_ratio(2)})"
        if ratios
        else ""
    )
    text = f"10 % left unpartitioned moves the cliff later in {moved} of {len(pairs)} pairs and away in {gone}{times}."
    yield Statement(kind, text)


def _trim(answer: WhatIfAnswer) -> Iterator[Statement]:
    row = answer.row(TRIM.name, True)
    if row is not None:
        text = f"With TRIM {row.with_cliff} of {row.simulations} simulations have a cliff. The report ran without."
        yield Statement(StatementKind.NOT_IN_THE_REPORT, text)


def _write_size(answer: WhatIfAnswer) -> Iterator[Statement]:
    small, large = (_by_rest(answer, WRITE_SIZE.name, size) for size in (16384, 1048576))
    pairs = [(onset, large[rest]) for rest, onset in small.items() if rest in large]
    if not pairs:
        return
    saved = sum(onset != inf and later == inf for onset, later in pairs)
    had = sum(onset != inf for onset, _ in pairs)
    kind = StatementKind.REPRODUCED if had and saved == had else StatementKind.NOT_REPRODUCED
    text = (
        "In the report one broker fell off and another, with larger writes, did not. In the model writes of 1 MiB "
        f"instead of 16 KiB take away {saved} of {had} cliffs."
    )
    yield Statement(kind, text)


def _always() -> Iterator[Statement]:
    yield Statement(
        StatementKind.NOT_REPRODUCED,
        "Any single hour: it hangs on the drive's own over-provisioning and on q, and neither is published.",
    )
    yield Statement(
        StatementKind.NOT_REPRODUCED, "The difference between the three brokers of one cluster: the model is one drive."
    )


def _by_rest(answer: WhatIfAnswer, name: str, value: object) -> dict[tuple[object, ...], float]:
    """Onsets in seconds of the simulations in which the parameter has the value, keyed by all other values and seed."""
    row = answer.row(name, value)
    if row is None:
        return {}
    return {_rest(item, name): _onset(answer, item) for item in row.case.simulations}


def _rest(simulation: Simulation, name: str) -> tuple[object, ...]:
    return (*(pair for pair in simulation.values if pair[0] != name), simulation.seed)


def _onset(answer: WhatIfAnswer, simulation: Simulation) -> float:
    seconds = answer.found[simulation].onset_seconds
    return inf if seconds is None else seconds


def _band_text(row: Row) -> str:
    assert row.onset_seconds is not None, "asked for rows with an onset only"
    if row.with_cliff == 0:
        return "no cliff in any simulation"
    band = row.onset_seconds
    span = f"{format_hours(band.lowest)} to {'none' if band.highest == inf else format_hours(band.highest)}"
    return f"{span}, with a cliff in {row.with_cliff} of {row.simulations} simulations"
