"""Build a run's report from its journal alone, reproducibly: the verdict, report.json and report.html."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cliffwatch.analysis.isolated import isolated_sentence
from cliffwatch.analysis.verdict import judge
from cliffwatch.base import durable
from cliffwatch.journal import files
from cliffwatch.journal.conclusion import Conclusion
from cliffwatch.model.run_state import Verdict
from cliffwatch.report.charts.series import ChartSeries, series_of
from cliffwatch.report.collect import Collected, collect, evidence_of, recorded_verdict
from cliffwatch.report.document import document_of
from cliffwatch.report.findings import (
    ReportedFinding,
    client_limit,
    findings_of,
    isolated_in,
    slow_baseline_of,
    summaries,
    unconfirmed,
    window_seconds_of,
)
from cliffwatch.report.html import render
from cliffwatch.report.limits.judged import Judged
from cliffwatch.report.limits.results import judge_limits, outcomes
from cliffwatch.report.raised import final_findings, not_confirmed
from cliffwatch.report.schema.report import ReportDocument
from cliffwatch.report.steady_section import not_steady, steadiness_of


@dataclass(frozen=True, slots=True)
class Report:
    """A built report: `document` is report.json, `series` the chart data that report.html has on top of it, and
    `conclusion` the detail of the event that finishes the run."""

    conclusion: Conclusion
    document: ReportDocument
    series: ChartSeries


def build(directory: Path) -> Report:
    """Build the report of the run whose journal is in `directory`, whole or damaged, finished or not.

    Raises FileNotFoundError when there is no such directory.
    """
    run = collect(directory)
    found, unanalysed = _analysed(run)
    limits = judge_limits(run, found)
    verdict = verdict_on(run, found, limits, unanalysed)
    document = document_of(run, verdict, found, limits)
    final = final_findings(found, run.events, window_seconds_of(run))
    # A failed analysis refutes no finding that was raised during the run.
    refuted = [] if unanalysed else not_confirmed(unconfirmed(run, found))
    return Report(Conclusion(verdict, tuple(final), tuple(refuted)), document, series_of(run, found))


def verdict_on(
    run: Collected, found: Sequence[ReportedFinding], limits: Sequence[Judged], unanalysed: str = ""
) -> Verdict:
    """Verdict on a run with these findings and limits. `unanalysed`: the error that ended the analysis, if any."""
    evidence = replace(
        evidence_of(run),
        findings=summaries(found),
        limits=outcomes(run, limits),
        client_limited=client_limit(run, found),
        isolated="" if unanalysed or run.load is None else isolated_sentence(isolated_in(run, found), run.load.start),
        slow_baseline="" if unanalysed else slow_baseline_of(run),
        not_steady=not_steady(run, steadiness_of(run)),
        unanalysed=unanalysed,
    )
    return recorded_verdict(run) or judge(evidence)


def _analysed(run: Collected) -> tuple[tuple[ReportedFinding, ...], str]:
    """Findings of a run, and the error that ended the analysis, if any: a failed analysis must not lose the report."""
    try:
        return findings_of(run), ""
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return (), f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"


def write(directory: Path, report: Report) -> None:
    """Write report.json and report.html into `directory`; both are durable when this returns.

    The page is rendered first: if that runs out of memory, neither file is written.
    """
    page = render(report.document, report.series).encode()
    durable.write_json_durably(directory / files.REPORT_JSON, report.document)
    durable.write_durably(directory / files.REPORT_HTML, page)
