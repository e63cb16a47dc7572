"""Report section on the drive's steady state before the baseline, where the workload asks for it."""

from typing import cast

from cliffwatch.analysis.steady_state import Steadiness, assess
from cliffwatch.base.units import six_digits
from cliffwatch.model.phase import Phase
from cliffwatch.report.collect import Collected
from cliffwatch.report.format import duration
from cliffwatch.report.schema.report import Round, Steady


def steadiness_of(run: Collected) -> Steadiness | None:
    """Steadiness of the drive; None where the workload does not ask for it, or the load never began."""
    steady = run.order.workload.phases.steady if run.order else None
    if run.order is None or steady is None or run.load is None:
        return None
    warm_up = (window for window in run.windows if window.phase == Phase.WARM_UP)
    return assess(warm_up, run.load.start + run.order.workload.phases.warm_up, steady.round)


def not_steady(run: Collected, found: Steadiness | None) -> str:
    """Sentence on why the drive did not reach its steady state; empty when it did, or when that was not requested."""
    steady = run.order.workload.phases.steady if run.order else None
    if found is None or found.at is not None or steady is None:
        return ""
    return f"The drive did not reach its steady state within {duration(steady.maximum)}: {found.why_not}."


def steady_document(run: Collected, found: Steadiness, zero: float) -> Steady:
    """Section of report.json: the rounds, and whether and when they were steady; `zero` is the load's start."""
    rounds = [
        {"start_seconds": round(each.start - zero, 3), "end_seconds": round(each.end - zero, 3)}
        | {name: six_digits(value) for name, value in each.values.items()}
        for each in found.rounds
    ]
    body: Steady = {"reached": found.at is not None, "rounds": cast(list[Round], rounds)}
    if found.at is not None:
        body["at_seconds"] = round(found.at - zero, 3)
    else:
        body["why_not"] = not_steady(run, found)
    return body
