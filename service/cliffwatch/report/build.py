"""A run's report, from its journal alone and always the same: the verdict, report.json and report.html."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cliffwatch.detect.verdict import Verdict, judge
from cliffwatch.journal import files
from cliffwatch.report.collect import collect, evidence_of, recorded_verdict
from cliffwatch.report.document import document_of
from cliffwatch.report.findings import client_limit, findings_of, summaries
from cliffwatch.report.html import render
from cliffwatch.report.limits import judge_limits, outcomes
from cliffwatch.report.series import Series, series_of
from cliffwatch.report.steady import not_steady, steadiness_of


@dataclass(frozen=True, slots=True)
class Report:
    """`document` is report.json; `series` is what report.html draws on top of it."""

    verdict: Verdict
    document: dict[str, Any]
    series: Series


def build(directory: Path) -> Report:
    """The report of the run whose journal is in `directory`, whole or damaged, finished or not.

    Raises FileNotFoundError when there is no such directory.
    """
    run = collect(directory)
    found = findings_of(run)
    limits = judge_limits(run, found)
    evidence = replace(
        evidence_of(run),
        findings=summaries(found),
        limits=outcomes(run, limits),
        client_limited=client_limit(run, found),
        not_steady=not_steady(run, steadiness_of(run)),
    )
    verdict = recorded_verdict(run) or judge(evidence)
    return Report(verdict, document_of(run, verdict, found, limits), series_of(run, found))


def write(directory: Path, report: Report) -> None:
    """Put both files of a report into the journal, each durable when this returns."""
    files.write_json_durably(directory / files.REPORT_JSON, report.document)
    files.write_durably(directory / files.REPORT_HTML, render(report.document, report.series))
