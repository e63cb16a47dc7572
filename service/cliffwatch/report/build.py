"""A run's report, from its journal alone and always the same: the verdict, report.json and report.html."""

import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cliffwatch.detect.verdict import Verdict, judge
from cliffwatch.journal import files
from cliffwatch.report.collect import Collected, collect, evidence_of, recorded_verdict
from cliffwatch.report.document import document_of
from cliffwatch.report.findings import Found, client_limit, findings_of, summaries
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
    found, unanalysed = _analysed(run)
    limits = judge_limits(run, found)
    evidence = replace(
        evidence_of(run),
        findings=summaries(found),
        limits=outcomes(run, limits),
        client_limited=client_limit(run, found),
        not_steady=not_steady(run, steadiness_of(run)),
        unanalysed=unanalysed,
    )
    verdict = recorded_verdict(run) or judge(evidence)
    return Report(verdict, document_of(run, verdict, found, limits), series_of(run, found))


def _analysed(run: Collected) -> tuple[tuple[Found, ...], str]:
    """What was found, and what ended the analysis if something did: 36 h are not lost to a mistake in arithmetic."""
    try:
        return findings_of(run), ""
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return (), f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"


def write(directory: Path, report: Report) -> None:
    """Put both files of a report into the journal, each durable when this returns."""
    files.write_json_durably(directory / files.REPORT_JSON, report.document)
    files.write_durably(directory / files.REPORT_HTML, render(report.document, report.series))
