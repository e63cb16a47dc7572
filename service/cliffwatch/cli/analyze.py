"""`cliffwatch analyze …`: what changed in a run, in a journal, or in a CSV that others made. Needs no service."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cliffwatch.cli import completion
from cliffwatch.cli.given_path import is_file
from cliffwatch.cli.output import ABSENT, Output, print_json, say, show_latency, show_seconds, table_lines
from cliffwatch.cli.run_source import journal_of
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.documents import why_unreadable
from cliffwatch.errors import Code, FieldFault, Problem
from cliffwatch.units import format_number

if TYPE_CHECKING:
    from cliffwatch.detect.table import Table

EXIT_NOT_PASSED = 1


class Mode(StrEnum):
    """Which detection is carried out."""

    OFFLINE = "offline"
    ONLINE = "online"


class Format(StrEnum):
    """How the analysis is printed."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Analysis:
    """The verdict with its reasons, and each finding as it is printed."""

    verdict: str
    reasons: tuple[str, ...]
    findings: list[dict[str, Any]]


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
        typer.Option("--mode", help="All windows at once, or window by window as while the run went on."),
    ] = Mode.OFFLINE,
    events: Annotated[
        Path | None,
        typer.Option("--events", help="CSV `elapsed_seconds,name` of known restarts, for a CSV of windows."),
    ] = None,
    format_: Annotated[
        Format,
        typer.Option("--format", envvar="CLIFFWATCH_ANALYZE_FORMAT", help="Sentences for people or JSON for programs."),
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
            raise Problem(Code.BAD_REQUEST, "--events goes with a CSV: a journal has the events of its run")
        analysis = _of_journal(journal_of(session_of(context), source), mode)
    if format_ is Format.JSON or session_of(context).how(output) is Output.JSON:
        print_json({"verdict": analysis.verdict, "reasons": list(analysis.reasons), "findings": analysis.findings})
    else:
        _print_text(analysis)
    if analysis.verdict != "pass":
        raise typer.Exit(EXIT_NOT_PASSED)


def _of_table(path: Path, events: Path | None, mode: Mode) -> Analysis:
    from cliffwatch.detect.analysis import analysis
    from cliffwatch.detect.coverage import Gap, MeasuredInterval, measure_coverage
    from cliffwatch.detect.finding import Role
    from cliffwatch.detect.offline import replay
    from cliffwatch.detect.table import read_notices, read_table
    from cliffwatch.detect.verdict import COVERAGE_MINIMUM, DEGRADING_KINDS, percent
    from cliffwatch.detect.wording import sentence_of

    table = read_table(_lines(path, "the table"), path.name)
    notices = [*table.notices, *(read_notices(_lines(events, "--events"), events.name) if events is not None else [])]
    find = analysis if mode is Mode.OFFLINE else replay
    findings = find(table.series, table.samples, notices, table.window_seconds)
    known = {one.name: one for one in table.series}
    rows = [_row(finding, 0.0, sentence_of(finding, known[finding.series], None, known)) for finding in findings]
    left_out = _left_out(table)
    if fault := _unmeasured(table):
        return Analysis("invalid", (fault, *left_out), rows)
    coverage = measure_coverage(
        [
            MeasuredInterval(sample.start, sample.end, seconds)
            for sample, seconds in zip(table.samples, table.measured, strict=True)
            if sample.values
        ],
        min([table.samples[0].start, *(start for start, _ in table.gaps)]),
        max([table.samples[-1].end, *(end for _, end in table.gaps)]),
        table.window_seconds,
        [Gap(start, end, "gap") for start, end in table.gaps],
    )
    if coverage.ratio < COVERAGE_MINIMUM:
        reason = (
            f"Only {percent(coverage.ratio)} of the time was measured, less than the {COVERAGE_MINIMUM:.0%} needed."
        )
        return Analysis("invalid", (reason, *left_out), rows)
    # As in a report: of a drive alone, with clients that did not feel it, a change degrades nothing.
    clients = {one.name for one in table.series if one.role is Role.LATENCY} or set(known)
    worse = [row for row in rows if row["kind"] in DEGRADING_KINDS and row["series"] in clients]
    failed = (f"{table.errors:,} operations failed.",) if table.errors else ()
    reasons = (*(row["sentence"] for row in worse), *table.limits, *failed)
    verdict = "degraded" if reasons else "pass"
    return Analysis(verdict, (*(reasons or ("Nothing changed for the worse.",)), *left_out), rows)


def _unmeasured(table: "Table") -> str:
    """Why a table says nothing of a latency, or nothing at all; empty where one of its series can be judged."""
    from cliffwatch.detect.finding import Role
    from cliffwatch.detect.whole import WINDOWS_LEAST

    judged = [series.name for series in table.series if series.role in (Role.LATENCY, Role.DEVICE_LATENCY)]
    most = max(sum(sample.values.get(name, 0.0) > 0 for sample in table.samples) for name in judged)
    if most >= WINDOWS_LEAST:
        return ""
    columns = ", ".join(judged)
    return f"Only {most} rows hold a latency above zero ({columns}); it takes {WINDOWS_LEAST} to say anything."


def _left_out(table: "Table") -> tuple[str, ...]:
    """What was read and is not a measurement."""
    counts = [f"{count} of {column}" for column, count in table.below_zero.items()]
    return (f"Values below zero count as not measured: {', '.join(counts)}.",) if counts else ()


def _of_journal(directory: Path, mode: Mode) -> Analysis:
    from cliffwatch.detect.verdict import judge
    from cliffwatch.report.build import build
    from cliffwatch.report.collect import collect, evidence_of
    from cliffwatch.report.findings import raised_in, summaries
    from cliffwatch.report.found_document import findings_document

    if mode is Mode.OFFLINE:
        report = build(directory)
        body = report.document
        rows = [_row_of_document(finding) for finding in body.get("findings", ())]
        return Analysis(report.verdict.name.value, report.verdict.reasons, rows)
    run = collect(directory)
    found = raised_in(run)
    zero = run.load.start if run.load else 0.0
    verdict = judge(replace(evidence_of(run), findings=summaries(found)))
    rows = [_row_of_document(finding) for finding in findings_document(found, zero)]
    return Analysis(verdict.name.value, verdict.reasons, rows)


def _row(finding: Any, zero: float, sentence: str) -> dict[str, Any]:
    def since(moment: float | None) -> float | None:
        return None if moment is None else round(moment - zero, 3)

    return {
        "kind": finding.kind.value,
        "onset_seconds": since(finding.onset),
        "detected_seconds": since(finding.detected),
        "until_seconds": since(finding.until),
        "series": finding.series,
        "baseline": float(f"{finding.baseline:.6g}"),
        "level": float(f"{finding.level:.6g}"),
        "ratio": float(f"{finding.ratio:.4g}"),
        "confidence": round(finding.confidence, 3),
        "corroborated_by": list(finding.corroborated_by),
        "sentence": sentence,
    }


def _row_of_document(finding: dict[str, Any]) -> dict[str, Any]:
    keys = ("kind", "onset_seconds", "detected_seconds", "until_seconds", "series", "baseline", "level", "ratio")
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


def _print_text(analysis: Analysis) -> None:
    print(f"verdict: {analysis.verdict}")
    for reason in analysis.reasons:
        say(reason)
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
            show_latency(row["baseline"]) if row["baseline"] is not None else ABSENT,
            show_latency(row["level"]) if row["level"] is not None else ABSENT,
            format_number(row["ratio"]),
            f"{row['confidence']:.2f}",
        ]
        for row in analysis.findings
    ]
    for line in table_lines(headings, cells):
        print(line)
