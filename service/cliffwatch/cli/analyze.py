"""`cliffwatch analyze …`: what changed in a run, in a journal, or in a CSV that others made. Needs no service."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cliffwatch.base.documents import why_unreadable
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import format_number, format_ratio, six_digits
from cliffwatch.cli import completion
from cliffwatch.cli.output import ABSENT, Output, print_json, put, say, show_latency, show_seconds, table_lines
from cliffwatch.cli.paths import is_file
from cliffwatch.cli.run_source import journal_of
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.model.run_state import VerdictName

EXIT_NOT_PASSED = 1


class Mode(StrEnum):
    """Which detection is run."""

    OFFLINE = "offline"
    ONLINE = "online"


class Format(StrEnum):
    """How the analysis is printed."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Analysis:
    """The verdict with its reasons, and each finding as it is printed.

    `not_judged` says what the verdict leaves out because the source does not hold it; empty of a journal.
    """

    verdict: str
    reasons: tuple[str, ...]
    findings: list[dict[str, Any]]
    not_judged: str = ""

    def document(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "not_judged": self.not_judged,
            "findings": self.findings,
        }


def register(app: typer.Typer) -> None:
    """Add `analyze` to the root command."""
    app.command("analyze")(analyze)


def analyze(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|DIRECTORY|CSV",
            help="A run of this machine (its id, the beginning of it, or `last`), a journal, or a CSV of windows.",
            autocompletion=completion.runs,
        ),
    ],
    mode: Annotated[
        Mode,
        typer.Option("--mode", help="All windows at once (offline), or window by window as during the run (online)."),
    ] = Mode.OFFLINE,
    events: Annotated[
        Path | None,
        typer.Option("--events", help="CSV `elapsed_seconds,name` of known restarts, for a CSV of windows."),
    ] = None,
    format_: Annotated[
        Format,
        typer.Option("--format", envvar="CLIFFWATCH_ANALYZE_FORMAT", help="Output format: text or JSON."),
    ] = Format.TEXT,
    output: OutputOption = None,
) -> None:
    """Find cliffs, steps, drift and recurring spikes, without the service.

    A CSV begins with a line that names its columns: elapsed_seconds and any of p50, p90, p99, p999, p9999 and
    device_write_latency (seconds), queue_depth, operations_per_second. An empty field was not measured. Exit status: 0
    for a pass, 1 for any other verdict.
    """
    path = Path(source)
    if is_file(path):
        analysis = _of_table(path, events, mode)
    else:
        if events is not None:
            raise Problem(Code.BAD_REQUEST, "--events applies to a CSV only; a journal contains its run's events")
        analysis = _of_journal(journal_of(session_of(context), source), mode)
    if format_ is Format.JSON or session_of(context).how(output) is Output.JSON:
        print_json(analysis.document())
    else:
        _print_text(analysis)
    if analysis.verdict != VerdictName.PASS:
        raise typer.Exit(EXIT_NOT_PASSED)


def _of_table(path: Path, events: Path | None, mode: Mode) -> Analysis:
    from cliffwatch.analysis.csv_table import read_notices, read_table
    from cliffwatch.analysis.online.replay import replay
    from cliffwatch.analysis.run_analysis import analysis
    from cliffwatch.analysis.table_evidence import NOT_JUDGED, evidence_of_table
    from cliffwatch.analysis.verdict import FindingSummary, degrades, judge
    from cliffwatch.analysis.wording import sentence_of
    from cliffwatch.analysis.work import not_asked_for

    table = read_table(_lines(path, "the table"), path.name)
    notices = [*table.notices, *(read_notices(_lines(events, "--events"), events.name) if events is not None else [])]
    find = analysis if mode is Mode.OFFLINE else replay
    findings = find(table.series, table.samples, notices, table.window_seconds)
    known = {one.name: one for one in table.series}
    rows = [
        _row(finding, known[finding.series], sentence_of(finding, known[finding.series], None, known))
        for finding in findings
    ]
    summaries = tuple(
        FindingSummary(row["kind"], row["sentence"])
        for finding, row in zip(findings, rows, strict=True)
        if degrades(finding, known)
    )
    idle = not_asked_for((finding, row["sentence"]) for finding, row in zip(findings, rows, strict=True))
    verdict = judge(evidence_of_table(table, summaries, idle))
    return Analysis(verdict.name.value, verdict.reasons, rows, NOT_JUDGED)


def _of_journal(directory: Path, mode: Mode) -> Analysis:
    from cliffwatch.report.build import build, verdict_on
    from cliffwatch.report.collect import collect
    from cliffwatch.report.findings import raised_in
    from cliffwatch.report.findings_document import findings_document
    from cliffwatch.report.limit_results import judge_limits

    if mode is Mode.OFFLINE:
        report = build(directory)
        body = report.document
        rows = [_row_of_document(finding) for finding in body.get("findings", ())]
        return Analysis(report.verdict.name.value, report.verdict.reasons, rows)
    run = collect(directory)
    found = raised_in(run)
    zero = run.load.start if run.load else 0.0
    verdict = verdict_on(run, found, judge_limits(run, found))
    rows = [_row_of_document(finding) for finding in findings_document(found, zero)]
    return Analysis(verdict.name.value, verdict.reasons, rows)


def _row(finding: Any, series: Any, sentence: str) -> dict[str, Any]:
    from cliffwatch.analysis.wording import details_of
    from cliffwatch.report.findings_document import UNITS

    def since(moment: float | None) -> float | None:
        return None if moment is None else round(moment, 3)

    return details_of(finding) | {
        "kind": finding.kind.value,
        "onset_seconds": since(finding.onset),
        "detected_seconds": since(finding.detected),
        "until_seconds": since(finding.until),
        "series": finding.series,
        "baseline": six_digits(finding.baseline),
        "level": six_digits(finding.level),
        "unit": UNITS[series.role],
        "ratio": round(finding.ratio, 4),
        "confidence": round(finding.confidence, 3),
        "corroborated_by": list(finding.corroborated_by),
        "sentence": sentence,
    }


def _row_of_document(finding: dict[str, Any]) -> dict[str, Any]:
    keys = (
        "kind",
        "onset_seconds",
        "detected_seconds",
        "until_seconds",
        "series",
        "baseline",
        "level",
        "unit",
        "ratio",
    )
    row = {key: finding.get(key) for key in keys}
    rest = {
        key: value for key, value in finding.items() if key not in row and key not in ("onset", "until", "detected")
    }
    return row | rest


def _lines(path: Path, what: str) -> Sequence[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        fault = FieldFault(what, f"{path} cannot be read: {why_unreadable(error)}; correct the path")
        raise Problem(Code.BAD_REQUEST, f"{what} cannot be read", [fault]) from error


def _quantity(value: float | None, unit: str | None) -> str:
    if value is None:
        return ABSENT
    if unit == "operations_per_second":
        return f"{format_number(value)}/s"
    return show_latency(value) if unit == "seconds" else format_number(value)


def _print_text(analysis: Analysis) -> None:
    put(f"verdict: {analysis.verdict}")
    for sentence in (*analysis.reasons, *filter(None, [analysis.not_judged])):
        say(sentence)
    if not analysis.findings:
        return
    headings = ["KIND", "ONSET", "DETECTED", "UNTIL", "SERIES", "BASELINE", "LEVEL", "RATIO", "CONFIDENCE"]
    cells = [
        [
            row["kind"],
            show_seconds(row["onset_seconds"]),
            show_seconds(row["detected_seconds"]),
            show_seconds(row["until_seconds"]),
            row["series"],
            _quantity(row["baseline"], row["unit"]),
            _quantity(row["level"], row["unit"]),
            format_ratio(row["ratio"]),
            f"{row['confidence']:.2f}",
        ]
        for row in analysis.findings
    ]
    put(*table_lines(headings, cells))
