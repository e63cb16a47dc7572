"""Evidence for the verdict, from a table of windows."""

from collections.abc import Mapping, Sequence

from cliffwatch.analysis.coverage import Coverage, Gap, MeasuredInterval, measure_coverage
from cliffwatch.analysis.finding import Notice, Role, Sample
from cliffwatch.analysis.run_arrays import WINDOWS_LEAST
from cliffwatch.analysis.run_evidence import FindingSummary, LimitOutcome, LoadEnd, RunEvidence
from cliffwatch.analysis.slow_baseline import slow_baseline
from cliffwatch.analysis.stalls import LONGEST_SECONDS, Slowest
from cliffwatch.analysis.table import Table

#: Criteria of a run's verdict that a table does not hold; `_LONGEST` is one where the table has no column `max`.
_NOT_HELD = ("whether the load reached the drive", "whether the client was the bottleneck")
_LONGEST = "whether a single operation took 10 s or more"
_NEVER_HELD = (
    "whether the load ended in a stall",
    "whether the run was stopped or failed",
    "and limits that what was measured could not decide",
)
#: The most columns that a sentence names.
_NAMED = 5


def not_judged(table: Table) -> str:
    """Sentence on the criteria that the verdict on a table leaves out."""
    has_longest = table.slowest is not None or any(series.quantile == 1.0 for series in table.series)
    found = _slowest(table)
    is_found = found is not None and found.seconds >= LONGEST_SECONDS
    missing = (*_NOT_HELD, *(() if has_longest or is_found else (_LONGEST,)), *_NEVER_HELD)
    return f"Not judged, because a table does not hold it: {', '.join(missing)}."


def evidence_of_table(
    table: Table,
    findings: tuple[FindingSummary, ...],
    client_limited: str,
    isolated: str = "",
    notices: Sequence[Notice] = (),
) -> RunEvidence:
    """Evidence of a load that ended with the table's last row. `findings` are those that degrade it; `client_limited`
    is the sentence on work that the client did not request, `isolated` the one on isolated rises."""
    return RunEvidence(
        load_end=LoadEnd.COMPLETED,
        coverage=_coverage(table, min([table.samples[0].start, *(start for start, _ in table.gaps)])),
        judged=None if table.warm_up_end is None else _coverage(table, table.warm_up_end),
        has_warm_up=table.warm_up_end is not None,
        windows=len(table.samples),
        target_kind="",
        operations=None,
        errors=table.errors,
        skipped=table.skipped,
        due=None if table.completed is None else table.completed + table.errors + table.skipped,
        findings=findings,
        client_limited=client_limited,
        isolated=isolated,
        slow_baseline=slow_baseline(table.series, table.samples, notices),
        limits=tuple(LimitOutcome(sentence, judged=True) for sentence in table.limits),
        slowest=_slowest(table),
        rate=table.rate,
        unmeasured=_unmeasured(table),
        left_out=_left_out(table),
    )


def _coverage(table: Table, begin: float) -> Coverage:
    known = {one.name: one.role for one in table.series}
    return measure_coverage(
        [
            MeasuredInterval(sample.start, sample.end, seconds)
            for sample, seconds in zip(table.samples, table.measured, strict=True)
            if _is_measured(sample, known)
        ],
        begin,
        max([table.samples[-1].end, *(end for _, end in table.gaps)]),
        table.window_seconds,
        [Gap(start, end, "gap") for start, end in table.gaps],
    )


def _is_measured(sample: Sample, known: Mapping[str, Role]) -> bool:
    """Whether a row counts as measured: it has a latency, or says that nothing was completed, which is a stall. Of a
    table without latencies of the client, it has a value."""
    if Role.LATENCY not in known.values():
        return bool(sample.values)
    return any(
        known[name] is Role.LATENCY or (known[name] is Role.RATE and value == 0)
        for name, value in sample.values.items()
    )


def _slowest(table: Table) -> Slowest | None:
    """The slowest operation, None where none is known. It took at least as long as any quantile or mean of its
    window."""
    latencies = [series for series in table.series if series.role is Role.LATENCY]
    found = [
        Slowest(value, sample.end, at_least=series.quantile != 1.0)
        for sample in table.samples
        for series in latencies
        if (value := sample.values.get(series.name))
    ]
    if table.slowest is not None:
        found.append(table.slowest)
    return max(found, key=lambda one: one.seconds, default=None)


def _unmeasured(table: Table) -> str:
    """Sentence on a table with too few latencies to judge; empty where one of its series can be judged."""
    judged = [series.name for series in table.series if series.role in (Role.LATENCY, Role.DEVICE_LATENCY)]
    rate = next((series.name for series in table.series if series.role is Role.RATE), "")
    # A latency beside a rate of 0 is none: summaries keep their last values.
    working = [sample for sample in table.samples if sample.values.get(rate) != 0]
    if not working:
        return f"No operation was completed in {len(table.samples):,} rows."
    most = max(sum(sample.values.get(name, 0.0) > 0 for sample in working) for name in judged)
    if most >= WINDOWS_LEAST:
        return ""
    more = f" and {len(judged) - _NAMED} more" if len(judged) > _NAMED else ""
    columns = ", ".join(judged[:_NAMED]) + more
    return f"Only {most} rows hold a latency above zero ({columns}); it takes {WINDOWS_LEAST} to say anything."


def _left_out(table: Table) -> str:
    counts = [f"{count} of {column}" for column, count in table.below_zero.items()]
    return f"Values below zero count as not measured: {', '.join(counts)}." if counts else ""
