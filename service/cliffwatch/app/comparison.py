"""Compare a run with earlier runs that have a label: is it worse than they were?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.analysis.comparison import (
    RUNS_LEAST,
    WORSE_FROM,
    Outcome,
    Ratio,
    ratio_to_earlier,
    runs_needed,
    together,
)
from cliffwatch.app.differences import flattened
from cliffwatch.app.orders import read_order
from cliffwatch.app.stored_figures import stored_figures
from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import JournalReader
from cliffwatch.model.annotations import parse_choice
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.workload import Workload
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import runs_page

#: Newest runs with the label that are looked at.
RUNS_MOST = 100
#: An interval that reaches to more than this many times the ratio says nothing, and is not stated.
_WIDEST = 10
#: Verdicts whose figures are of a load that was measured to its end.
_MEASURED = frozenset({VerdictName.PASS, VerdictName.DEGRADED})


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that has the label and is not compared with, and why."""

    run: str
    reason: str


@dataclass(frozen=True, slots=True)
class ComparableRuns:
    """Runs that a run of a load is compared with, the newest first: those of its load that were measured to their end.

    `label` is as it was asked for: `release=26.1`, or `release` for any value of it. `objection`: why they are too few;
    null if they are not. `doubt`: why even an equal run would be inconclusive beside them, and how many would show that
    it is not worse; null if they would.
    """

    label: str
    runs: list[str]
    left_out: list[LeftOut]
    objection: str | None
    doubt: str | None


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """A figure of the run by the geometric mean of the earlier runs', with a 95 % interval from `low` to `high`.

    Latencies are in seconds, rates per second; null where they were not measured, or by too few runs.
    """

    name: str
    value: float | None
    earlier: list[float]
    ratio: float | None
    low: float | None
    high: float | None
    outcome: Outcome
    summary: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside earlier runs; `summary` is its outcome in a sentence."""

    label: str
    runs: list[str]
    left_out: list[LeftOut]
    outcome: Outcome
    summary: str
    figures: list[ComparedFigure]


def comparable_runs(database: Database, label: str, workload: Workload, parts: int) -> ComparableRuns:
    """Runs that a run of this workload on as many targets would be compared with."""
    rows, left_out = _comparable(database, label, _load_of(workload, parts), workload.name)
    objection = _too_few(label, len(rows)) if len(rows) < RUNS_LEAST else None
    doubt = None if objection else _doubt(list(map(_figures_of, rows)))
    return ComparableRuns(label, [row.id for row in rows], left_out, objection, doubt)


def _doubt(earlier: Sequence[dict[str, float]]) -> str | None:
    known = {name: [each[name] for each in earlier if name in each] for name in earlier[0]}
    needed = {name: runs_needed(values) or math.inf for name, values in known.items() if len(values) >= RUNS_LEAST}
    name = max(needed, key=lambda name: needed[name], default=None)
    if name is None or needed[name] <= len(earlier):
        return None
    enough = f"{needed[name]} such runs would" if needed[name] < math.inf else "no number of such runs would"
    return f"the {name} of {len(earlier)} runs differs too much to show that a run is not worse; {enough}"


def comparison_of(database: Database, run: RunRow, label: str) -> Comparison:
    """Compare a finished run with those before it that have the label.

    Raises Problem: wrong_state while the run is not over, journal_unreadable.
    """
    if run.state != RunState.FINISHED:
        raise Problem(Code.WRONG_STATE, f"run {run.id} is not over; there is nothing to compare yet")
    order = read_order(JournalReader(Path(run.directory)))
    load = _load_of(order.workload, len(order.parts))
    rows, left_out = _comparable(database, label, load, order.workload.name, before=run)
    figures: list[ComparedFigure] = []
    if run.verdict in _MEASURED and len(rows) >= RUNS_LEAST:
        earlier = list(map(_figures_of, rows))
        figures = [
            _compared(name, value, [each[name] for each in earlier if name in each], is_worse_above=is_latency)
            for name, (value, is_latency) in _named(run).items()
        ]
    outcome = together(figure.outcome for figure in figures)
    summary = _summary(run, label, rows, figures, outcome)
    return Comparison(label, [row.id for row in rows], left_out, outcome, summary, figures)


def _too_few(label: str, count: int) -> str:
    runs = "1 earlier run of the same load has" if count == 1 else f"{count or 'no'} earlier runs of the same load have"
    return f"{runs} the label {label}, and {RUNS_LEAST} are needed to know how much such runs differ"


def _comparable(
    database: Database, label: str, load: dict[str, str], name: str, before: RunRow | None = None
) -> tuple[list[RunRow], list[LeftOut]]:
    after = None if before is None else (before.created_at, before.id)
    with database.snapshot() as session:
        found = runs_page(session, RUNS_MOST, after, workload=name, labels=dict([parse_choice(label)]))
    rows, left_out = [], []
    for row in found:
        if reason := _why_not(row, load):
            left_out.append(LeftOut(row.id, reason))
        else:
            rows.append(row)
    return rows, left_out


def _why_not(row: RunRow, load: dict[str, str]) -> str:
    """Why a run of this name is not compared with; empty if it is."""
    if row.state != RunState.FINISHED:
        return "it is not over"
    if row.verdict not in _MEASURED:
        return f"it is {row.verdict}"
    try:
        order = read_order(JournalReader(Path(row.directory)))
    except Problem as problem:
        return problem.detail
    own = _load_of(order.workload, len(order.parts))
    places = [place for place in (*load, *own) if load.get(place) != own.get(place)]
    return f"its load is another, by `{places[0]}`" if places else ""


def _load_of(workload: Workload, parts: int) -> dict[str, str]:
    """What runs must have in common to be compared, as text by its dotted path. Their targets may differ."""
    document = workload.model_dump(mode="json", include={"engine", "window", "phases", "load"})
    return {"targets": str(parts), **dict(flattened(document))}


def _figures_of(row: RunRow) -> dict[str, float]:
    """Figures of a run by name, those that were measured and are above zero."""
    return {name: value for name, (value, _) in _named(row).items() if value is not None and value > 0}


def _named(row: RunRow) -> dict[str, tuple[float | None, bool]]:
    """Figures of a run by name, and whether each is a latency; none before there is a report."""
    figures = stored_figures(row)
    if figures is None:
        return {}
    name = figures.latency or "latency"
    return {
        f"{name} p50": (figures.p50_seconds, True),
        f"{name} p99": (figures.p99_seconds, True),
        "operations": (figures.operations_per_second, False),
    }


def _compared(name: str, value: float | None, earlier: list[float], *, is_worse_above: bool) -> ComparedFigure:
    if value is None or value <= 0 or len(earlier) < RUNS_LEAST:
        which = "by this run" if value is None or value <= 0 else f"by {RUNS_LEAST} earlier runs"
        summary = f"{name}: inconclusive, it was not measured {which}"
        return ComparedFigure(name, value, earlier, None, None, None, Outcome.INCONCLUSIVE, summary)
    found = ratio_to_earlier(value, earlier, is_worse_above=is_worse_above)
    is_narrow = found.high <= _WIDEST * found.ratio
    interval = f" (95 %: {found.low:.3g} to {found.high:.3g})" if is_narrow else ""
    summary = f"{name} ×{found.ratio:.3g}{interval}: {_words(found)}"
    return ComparedFigure(name, value, earlier, found.ratio, found.low, found.high, found.outcome, summary)


def _words(found: Ratio) -> str:
    if found.outcome is not Outcome.INCONCLUSIVE:
        return "worse" if found.outcome is Outcome.WORSE else "not worse"
    if found.runs_needed is None:
        return "inconclusive, the earlier runs differ too much from one another"
    return f"inconclusive, {found.runs_needed} earlier runs could if they differ no more than these"


def _summary(
    run: RunRow, label: str, rows: Sequence[RunRow], figures: Sequence[ComparedFigure], outcome: Outcome
) -> str:
    if run.verdict not in _MEASURED:
        return f"inconclusive: this run is {run.verdict}"
    if len(rows) < RUNS_LEAST:
        return f"inconclusive: {_too_few(label, len(rows))}"
    of = f"{len(rows)} earlier runs with the label {label}"
    decisive = [
        figure.name if figure.ratio is None else f"{figure.name} ×{figure.ratio:.3g}"
        for figure in figures
        if figure.outcome is outcome
    ]
    if outcome is Outcome.NOT_WORSE:
        return f"not worse than {of}: no figure by ×{WORSE_FROM:g} or more"
    verb = "worse than" if outcome is Outcome.WORSE else "inconclusive beside"
    return f"{verb} {of}: {', '.join(decisive) or 'this run has no figures'}"
