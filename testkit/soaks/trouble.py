"""Soaks of which every trouble is known: healthy ones, and what can be laid over them.

Unlike the generators of degradations, nothing is drawn here: a soak follows from its `Plan`, so that the same soak can
be made with more trouble, or written in another way.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from testkit.soaks.noise import autoregressive
from testkit.soaks.soak import Column

from cliffwatch.analysis.finding import Finding, Notice
from cliffwatch.analysis.isolated import isolated_rises, isolated_sentence
from cliffwatch.analysis.online.replay import Replayed, replayed
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.run_evidence import FindingSummary, RunEvidence
from cliffwatch.analysis.table import COLUMNS, PHASE_COLUMN, Row, Table
from cliffwatch.analysis.table import table_of as table_of_rows
from cliffwatch.analysis.table_evidence import evidence_of_table
from cliffwatch.analysis.verdict import degrades, judge
from cliffwatch.analysis.wording import sentence_of
from cliffwatch.analysis.work import not_asked_for
from cliffwatch.model.phase import Phase
from cliffwatch.model.run_state import Verdict

WINDOW_SECONDS = 10.0
HOUR = 360
#: Hours before the first trouble: those that healthy is learned from.
LEARNED_HOURS = 4
MODES = ("offline", "online")


class Kind(StrEnum):
    """Kind of trouble."""

    #: Client and device are slower, or the client alone.
    SLOWER = "slower"
    CLIENT = "client slower"
    #: Nothing completes, and what waited completes afterwards.
    STALL = "stall"
    #: Windows are missing.
    GAP = "gap"
    #: Operations fail, or are skipped.
    ERRORS = "errors"
    SKIPPED = "skipped"
    #: The client does less, as fast as before.
    SHORTFALL = "shortfall"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Trouble: `times` spans of `windows` each, `apart` windows from start to start, the first at window `start`.

    `size` is a factor of latencies (SLOWER, CLIENT), or the share of the rate that fails, is skipped, or is left.
    """

    kind: Kind
    start: int
    windows: int
    size: float = 2.0
    times: int = 1
    apart: int = 0

    def spans(self, count: int) -> Iterable[slice]:
        for turn in range(self.times):
            first = self.start + turn * self.apart
            if first < count:
                yield slice(first, min(count, first + self.windows))

    def share(self, count: int) -> float:
        """Share of the soak's windows after the learned hours that are in trouble."""
        inside = np.zeros(count, dtype=np.bool_)
        for span in self.spans(count):
            inside[span] = True
        return float(inside.sum()) / max(1, count - LEARNED_HOURS * HOUR)


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a soak: `noise` is the standard deviation of single windows (a logarithm); `compaction` windows of ×2
    come once an hour; `swing` is that of a day; `device`: whether a device was measured, too; the first `declared`
    windows are the baseline phase; at the start of window `restart` an engine was restarted."""

    seed: int
    hours: int = 12
    noise: float = 0.08
    compaction: int = 0
    swing: float = 0.0
    troubles: tuple[Trouble, ...] = ()
    rate: float = 800.0
    device: bool = True
    declared: int = 0
    restart: int | None = None

    def more(self, *troubles: Trouble) -> "Plan":
        return replace(self, troubles=(*self.troubles, *troubles))


@dataclass(slots=True)
class Rows:
    """Columns of a soak's windows, NaN where nothing was measured; which windows are there, and how many of the first
    are a declared baseline."""

    times: Column
    columns: dict[str, Column]
    present: np.ndarray = field(default_factory=lambda: np.ones(0, dtype=np.bool_))
    declared: int = 0

    def phase(self, index: int) -> str:
        return (Phase.BASELINE if index < self.declared else Phase.SOAK).value


def rows_of(plan: Plan) -> Rows:
    random = np.random.default_rng(plan.seed)
    count = plan.hours * HOUR
    at = np.arange(count)
    shape = autoregressive(random, count, plan.noise / 3, 20) + random.normal(0, plan.noise, count)
    shape = shape + math.log1p(plan.swing) * np.sin(2 * np.pi * at / (24 * HOUR))
    if plan.compaction:
        shape = shape + math.log(2.0) * ((at + plan.seed * 37) % HOUR < plan.compaction)
    device = random.normal(0, 0.06, count) + 0.5 * (shape - shape.mean())
    columns: dict[str, Column] = {
        "p99": 0.009 * np.exp(shape),
        "device_write_latency": 0.0004 * np.exp(device),
        "operations_per_second": plan.rate * np.exp(random.normal(0, 0.01, count)),
        "errors": np.zeros(count),
        "skipped": np.zeros(count),
    }
    times: Column = at * np.float64(WINDOW_SECONDS)
    rows = Rows(times, columns, np.ones(count, dtype=np.bool_), plan.declared)
    for trouble in plan.troubles:
        for span in trouble.spans(count):
            _lay(rows, trouble, span)
    if not plan.device:
        del columns["device_write_latency"]
    return rows


def _lay(rows: Rows, trouble: Trouble, span: slice) -> None:
    columns, count = rows.columns, len(rows.times)
    rate = columns["operations_per_second"]
    match trouble.kind:
        case Kind.SLOWER | Kind.CLIENT:
            columns["p99"][span] *= trouble.size
            if trouble.kind is Kind.SLOWER:
                columns["device_write_latency"][span] *= trouble.size
        case Kind.STALL:
            rate[span] = 0.0
            columns["p99"][span] = np.nan
            if span.stop < count and rate[span.stop] > 0:
                columns["p99"][span.stop] = max(columns["p99"][span.stop], (span.stop - span.start) * WINDOW_SECONDS)
        case Kind.GAP:
            rows.present[span] = False
        case Kind.ERRORS | Kind.SKIPPED:
            lost = np.round(rate[span] * trouble.size * WINDOW_SECONDS)
            columns[trouble.kind.value][span] += lost
            rate[span] = np.maximum(0.0, rate[span] - lost / WINDOW_SECONDS)
        case Kind.SHORTFALL:
            rate[span] *= trouble.size


def csv_of(rows: Rows, *, shift_seconds: float = 0.0) -> list[str]:
    """Lines of the CSV that `cliffwatch analyze` reads."""
    names = list(rows.columns)
    table = np.column_stack([rows.columns[name] for name in names])
    phase = [PHASE_COLUMN] if rows.declared else []
    lines = [",".join(["elapsed_seconds", *phase, *names])]
    for index, (at, row) in enumerate(zip(rows.times.tolist(), table.tolist(), strict=True)):
        if rows.present[index]:
            values = ("" if value != value else f"{value:.9g}" for value in row)
            phase = [rows.phase(index)] if rows.declared else []
            lines.append(",".join([f"{at + shift_seconds:.3f}", *phase, *values]))
    return lines


def merged(rows: Rows, by: int) -> Rows:
    """The same soak in windows that are `by` times as long: counts are added, the rate and latencies averaged."""
    count = len(rows.times) // by * by

    def averaged(column: Column) -> Column:
        parts = column[:count].reshape(-1, by)
        with np.errstate(invalid="ignore"):
            known = np.isfinite(parts)
            sums = np.where(known, parts, 0.0).sum(axis=1)
            return np.where(known.any(axis=1), sums / np.maximum(1, known.sum(axis=1)), np.nan)

    columns = {name: averaged(column) for name, column in rows.columns.items()}
    for name in ("errors", "skipped"):
        columns[name] = rows.columns[name][:count].reshape(-1, by).sum(axis=1)
    present = np.asarray(rows.present[:count].reshape(-1, by).all(axis=1))
    return Rows(rows.times[:count:by], columns, present, rows.declared // by)


def table_of(plan: Plan) -> Table:
    """The table that `cliffwatch analyze` reads of the soak's CSV, but for the last digits of its numbers."""
    rows = rows_of(plan)
    names = list(rows.columns)
    columns = zip(*(rows.columns[name].tolist() for name in names), strict=True)
    windows = [dict(zip(names, values, strict=True)) for values in columns]
    read = [
        Row(at, texts, {name: value for name, value in windows[index].items() if value == value})
        for index, at in enumerate(rows.times.tolist())
        if rows.present[index]
        for texts in [{PHASE_COLUMN: rows.phase(index)} if rows.declared else {}]
    ]
    table = table_of_rows({name: COLUMNS[name] for name in names if name in COLUMNS}, read)
    if plan.restart is None:
        return table
    return replace(table, notices=(Notice(table.samples[plan.restart].start, "restart"),))


def findings_in(table: Table, mode: str) -> list[Finding]:
    return _findings(table, mode, _replayed(table))


def verdict_on(table: Table, mode: str) -> Verdict:
    """The verdict of `cliffwatch analyze --mode MODE` on a table."""
    return _judged(table, findings_in(table, mode), evidence_of_table(table, (), ""))


def verdicts_on(table: Table) -> dict[str, Verdict]:
    """`verdict_on` a table by mode, for which online detection, most of the work, is replayed once."""
    online, evidence = _replayed(table), evidence_of_table(table, (), "")
    return {mode: _judged(table, _findings(table, mode, online), evidence) for mode in MODES}


def _replayed(table: Table) -> Replayed:
    return replayed(table.series, table.samples, table.notices, table.window_seconds)


def _findings(table: Table, mode: str, online: Replayed) -> list[Finding]:
    if mode == "online":
        return online.reported
    return analysis(table.series, table.samples, table.notices, table.window_seconds, online)


def _judged(table: Table, findings: Sequence[Finding], evidence: RunEvidence) -> Verdict:
    """The verdict on findings; `evidence` is that of the table without them."""
    known = {one.name: one for one in table.series}
    said: Sequence[tuple[Finding, str]] = [(one, sentence_of(one, known[one.series], None, known)) for one in findings]
    summaries = tuple(FindingSummary(one.kind.value, words) for one, words in said if degrades(one, known))
    isolated = isolated_rises(table.series, table.samples, table.notices, findings, table.window_seconds)
    words = isolated_sentence(isolated, table.samples[0].start)
    return judge(replace(evidence, findings=summaries, client_limited=not_asked_for(said), isolated=words))
