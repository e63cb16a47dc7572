"""Answer of a what-if: bands (lowest, middle, highest) over seeds and over unpublished parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from cliffwatch.base.errors import Problem
from cliffwatch.labs.what_if.plan import Case, Simulation, SimulationPlan
from cliffwatch.labs.what_if.simulator import Outcome, SimulationResult

#: Settings that a drive's maker does not publish, held at one value here; every answer lists them.
HELD_ASSUMPTIONS = {
    "policy": "greedy",
    "frontiers": "1",
    "gc-pacing": "32",
    "buffer-size": "16MiB",
    "program-latency": "1ms",
    "read-latency": "75us",
    "erase-latency": "3.8ms",
    "channels": "8",
    "dies-per-channel": "4",
    "planes": "2",
}
#: First word of the simulator's cliff definition for a run without a timing model or a rate.
_UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class Band:
    """The lowest, the middle (of an even number the lower one) and the highest of some figures."""

    lowest: float
    middle: float
    highest: float


@dataclass(frozen=True, slots=True)
class Row:
    """Result of a case. Infinity in `onset_seconds` is a simulation without a cliff; None: onsets are undetermined."""

    case: Case
    onset_seconds: Band | None
    write_amplification: Band
    with_cliff: int
    simulations: int


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """Result of a what-if. `definition` is the definition of a cliff.

    `assumptions` are unpublished settings, each held at one value. `left_out` are cases that cannot be simulated and
    that the user did not ask for, each with the reason.
    """

    plan: SimulationPlan
    rows: tuple[Row, ...]
    found: Mapping[Simulation, SimulationResult]
    definition: str
    assumptions: Mapping[str, str]
    left_out: tuple[tuple[Case, str], ...] = ()

    @property
    def base(self) -> Row:
        """Row in which nothing is varied."""
        return self.rows[0]

    def row(self, name: str, value: object) -> Row | None:
        """The row in which the parameter of that name has that value."""
        rows = (row for row in self.rows if row.case.parameter and row.case.parameter.name == name)
        return next((row for row in rows if row.case.value == value), None)


def band(figures: Sequence[float]) -> Band:
    """Band of at least one figure."""
    ordered = sorted(figures)
    return Band(ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1])


def answer(plan: SimulationPlan, outcomes: Mapping[Simulation, Outcome]) -> WhatIfAnswer:
    """Make the answer from the results of a plan's simulations."""
    found = {simulation: outcome for simulation, outcome in outcomes.items() if isinstance(outcome, SimulationResult)}
    cases = [case for case in plan.cases if all(simulation in found for simulation in case.simulations)]
    definition = found[plan.cases[0].simulations[0]].definition
    is_determined = not definition.startswith(_UNDETERMINED)
    rows = tuple(_row(case, [found[simulation] for simulation in case.simulations], is_determined) for case in cases)
    assumptions = {name: str(plan.profile.settings.get(name, default)) for name, default in HELD_ASSUMPTIONS.items()}
    left_out = tuple((case, _reason(case, outcomes)) for case in plan.cases if case not in cases)
    return WhatIfAnswer(plan, rows, found, definition, assumptions, left_out)


def _reason(case: Case, outcomes: Mapping[Simulation, Outcome]) -> str:
    problem = next(outcomes[one] for one in case.simulations if isinstance(outcomes[one], Problem))
    assert isinstance(problem, Problem), "a case is left out for one"
    return "; ".join(fault.message for fault in problem.faults) or problem.detail


def _row(case: Case, found: Sequence[SimulationResult], is_determined: bool) -> Row:
    onsets = [inf if item.onset_seconds is None else item.onset_seconds for item in found]
    return Row(
        case,
        band(onsets) if is_determined else None,
        band([item.write_amplification for item in found]),
        sum(item.onset_seconds is not None for item in found),
        len(found),
    )


def document(answer: WhatIfAnswer) -> dict[str, Any]:
    """The answer as JSON. Times are of the unscaled drive; null in a band of onsets means no cliff within the run."""
    plan = answer.plan
    return {
        "profile": plan.profile.name,
        "settings": {name: _plain(value) for name, value in plan.profile.settings.items()},
        "horizon_seconds": plan.profile.horizon_seconds,
        "scale": plan.scale,
        "seeds": list(plan.seeds),
        "cliff_definition": answer.definition,
        "unknown": {name: list(values) for name, values in plan.unknown.items()},
        "assumptions": dict(answer.assumptions),
        "rows": [_row_document(row) for row in answer.rows],
        "left_out": [
            {"parameter": case.parameter.name, "value": case.value, "reason": reason}
            for case, reason in answer.left_out
            if case.parameter is not None
        ],
        "simulations": [
            {
                **dict(simulation.values),
                "seed": simulation.seed,
                "onset_seconds": found.onset_seconds,
                "write_amplification": found.write_amplification,
            }
            for simulation, found in answer.found.items()
        ],
    }


def _row_document(row: Row) -> dict[str, Any]:
    parameter = row.case.parameter
    return {
        "parameter": parameter.name if parameter else None,
        "value": row.case.value,
        "as_described": row.case.is_as_described,
        "simulations": row.simulations,
        "simulations_with_cliff": row.with_cliff,
        "onset_seconds": _band_document(row.onset_seconds),
        "write_amplification": _band_document(row.write_amplification),
    }


def _band_document(band: Band | None) -> dict[str, float | None] | None:
    if band is None:
        return None
    figures = {"lowest": band.lowest, "middle": band.middle, "highest": band.highest}
    return {name: None if figure == inf else figure for name, figure in figures.items()}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
