"""Bands, and what is said of the field report: worked out from figures, so given figures decide."""

from collections.abc import Callable
from math import inf

import pytest

from cliffwatch.labs.what_if.answer import Band, WhatIfAnswer, answer, band, document
from cliffwatch.labs.what_if.field_report import StatementKind, statements
from cliffwatch.labs.what_if.plan import Simulation, SimulationPlan, make_plan
from cliffwatch.labs.what_if.profile import read_profile
from cliffwatch.labs.what_if.simulator import SimulationResult
from cliffwatch.labs.what_if.text import bar, lines

HOUR = 3600.0


def asked(onset_hours: Callable[[dict[str, object]], float], extra: dict[str, str] | None = None) -> WhatIfAnswer:
    """The field report's question, with the cliff where `onset_hours` says."""
    plan = make_plan(read_profile("field-report", extra or {}), {}, seeds=2, scale=64, jobs=1)

    def found(simulation: Simulation) -> SimulationResult:
        hours = onset_hours(dict(simulation.values))
        return SimulationResult(None if hours == inf else hours * HOUR, 2.0, "where it is slow", 0.1)

    return answer(plan, {simulation: found(simulation) for simulation in plan.simulations})


def kinds(said: WhatIfAnswer, words: str) -> list[StatementKind]:
    return [statement.kind for statement in statements(said) if words in statement.text]


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([3.0, 1.0, 2.0], Band(1.0, 2.0, 3.0)),
        ([4.0, 1.0, 2.0, 3.0], Band(1.0, 2.0, 4.0)),
        ([inf, 1.0, inf], Band(1.0, inf, inf)),
        ([5.0], Band(5.0, 5.0, 5.0)),
    ],
)
def test_a_band_is_three_figures_that_were_found(figures: list[float], expected: Band) -> None:
    assert band(figures) == expected


def test_no_cliff_is_null_for_programs_and_never_a_number() -> None:
    reported = document(asked(lambda values: inf if values["trim"] else 12.0))
    rows = {(row["parameter"], row["value"]): row for row in reported["rows"]}
    assert rows["trim", True]["onset_seconds"] == {"lowest": None, "middle": None, "highest": None}
    assert rows["trim", True]["simulations_with_cliff"] == 0
    assert rows["trim", False]["onset_seconds"] == {"lowest": 12 * HOUR, "middle": 12 * HOUR, "highest": 12 * HOUR}
    assert reported["unknown"] == {"over-provisioning": [0.07, 0.125, 0.2], "disorder": [0.1, 0.3, 1.0]}
    assert len(reported["simulations"]) == len(asked(lambda values: 1.0).plan.simulations)
    assert reported["assumptions"]["policy"] == "greedy"


def test_a_model_like_the_report_is_not_said_to_predict_it() -> None:
    said = asked(lambda values: inf if values["trim"] else 12.0 * (2.0 if values["unpartitioned"] else 1.0))
    assert kinds(said, "after 12 h") == [StatementKind.NOT_CONTRADICTED]
    assert kinds(said, "after 24 h") == [StatementKind.NOT_CONTRADICTED]
    assert kinds(said, "moves the cliff later in 18 of 18 pairs") == [StatementKind.REPRODUCED]
    assert kinds(said, "take away 0 of 18 cliffs") == [StatementKind.NOT_REPRODUCED]
    assert kinds(said, "With TRIM 0 of 18") == [StatementKind.NOT_IN_THE_REPORT]
    assert kinds(said, "Any single hour") == [StatementKind.NOT_REPRODUCED]


def test_a_model_unlike_the_report_is_said_to_be() -> None:
    said = asked(lambda values: inf if values["write-size"] == 1048576 else 30.0)
    assert kinds(said, "after 12 h") == [StatementKind.NOT_REPRODUCED]
    assert kinds(said, "after 24 h") == [StatementKind.NOT_REPRODUCED]
    assert kinds(said, "moves the cliff later in 0 of 18 pairs") == [StatementKind.NOT_REPRODUCED]
    assert kinds(said, "take away 18 of 18 cliffs") == [StatementKind.REPRODUCED]


def test_nothing_is_said_of_the_report_when_something_else_was_asked() -> None:
    assert statements(asked(lambda values: 12.0, {"rate": "0.4GB"})) == []


def test_a_drawn_band_ends_where_it_ends() -> None:
    assert bar(Band(0.0, 5.0, 10.0), 10.0, width=12) == "├────●────┤ "
    assert bar(Band(0.0, inf, inf), 10.0, width=12) == "├──────────●"
    assert bar(Band(5.0, 5.0, inf), 10.0, width=12) == "     ●─────→"
    assert bar(Band(1.0, 1.0, 1.0), 1.0, width=12, lowest=1.0)[0] == "●"


def test_the_table_says_what_is_assumed_and_gives_no_single_number() -> None:
    plan: SimulationPlan = asked(lambda values: 12.0).plan
    text = "\n".join(lines(asked(lambda values: 6.0 if values["disorder"] == 1.0 else inf)))
    assert "7.5 TB" in text
    assert "Assumed, not measured; varied in every band" in text
    assert "over-provisioning: 7 %, 12.5 %, 20 %" in text
    assert "gc-pacing 32" in text
    for row in [line for line in text.splitlines() if "/18" in line]:
        assert "6 h" in row
        assert "none" in row
    assert plan.seeds == (1, 2)
