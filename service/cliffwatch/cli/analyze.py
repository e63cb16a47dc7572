"""`cliffwatch analyze …`: find changes in a run, a journal, a CSV or another program's output. Needs no service."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from cliffwatch.analysis.finding import Role
from cliffwatch.analysis.table import Table
from cliffwatch.base.documents import why_unreadable
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.text_files import UnreadableTextError, opened_text
from cliffwatch.base.units import format_length, format_number, format_rate, format_ratio, six_digits
from cliffwatch.cli import completion
from cliffwatch.cli.output import ABSENT, Output, print_json, put, show_latency, show_seconds, table_lines
from cliffwatch.cli.paths import is_file
from cliffwatch.cli.run_source import journal_of
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.labs.outputs.names import LatencyUnit, OutputFormat
from cliffwatch.model.run_state import VerdictName

EXIT_NOT_PASSED = 1


class Mode(StrEnum):
    """Detection mode: all windows at once (offline), or window by window as during the run (online)."""

    OFFLINE = "offline"
    ONLINE = "online"


class Format(StrEnum):
    """Output format of the analysis."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Analysis:
    """Verdict with its reasons, and the findings as rows to print.

    `not_judged` says what the verdict does not cover because the source has no data on it, `read` how much data was
    read from a file. Both are empty for a journal.
    """

    verdict: str
    reasons: tuple[str, ...]
    findings: list[dict[str, Any]]
    not_judged: str = ""
    read: str = ""

    def document(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "not_judged": self.not_judged,
            "read": self.read,
            "findings": self.findings,
        }


def analyze(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|DIRECTORY|FILE",
            help=(
                "A run of this machine (its id, the beginning of it, or `last`), a journal, a CSV of windows, or what "
                "another program wrote."
            ),
            autocompletion=completion.runs,
        ),
    ],
    from_: Annotated[
        OutputFormat | None,
        typer.Option(
            "--from",
            envvar="CLIFFWATCH_ANALYZE_FROM",
            help="Program that wrote the file, where its lines do not show it.",
        ),
    ] = None,
    latency_unit: Annotated[
        LatencyUnit | None,
        typer.Option(
            "--latency-unit", help="Unit of latencies where the file does not say so (fio-log, hlog, prometheus)."
        ),
    ] = None,
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
    """Find cliffs, stalls, steps, drift, spikes and excursions that recur, without the service.

    A CSV begins with a line that names its columns: elapsed_seconds and any of p50, p90, p95, p99, p999, p9999, mean,
    max and device_write_latency (seconds), queue_depth, write_amplification, operations_per_second. An empty field was
    not measured. Other files are what a load generator printed or logged, or an HdrHistogram log, recognised by their
    lines or named with --from (docs/detection.md lists what is read of each). Exit status: 0 for a pass, 1 for any
    other verdict.
    """
    path = Path(source)
    format_of_file = from_ or (_recognised(path) if is_file(path) else None)
    if format_of_file is not None:
        analysis = _of_output(path, format_of_file, latency_unit, events, mode)
        if from_ is None:
            taken = f"It was taken for the output of {format_of_file} (--from says otherwise)."
            analysis = replace(analysis, read=f"{analysis.read} {taken}")
    elif latency_unit is not None:
        raise Problem(Code.BAD_REQUEST, "--latency-unit applies to the output of a program; name it with --from")
    elif is_file(path):
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
    from cliffwatch.analysis.csv_table import read_table

    with _opened(path, "the table") as file:
        table = read_table(file, path.name)
    return replace(_judged(table, events, mode), read=f"{_extent(table)}. {table.remark}".rstrip())


def _recognised(path: Path) -> OutputFormat | None:
    from cliffwatch.labs.outputs.formats import HEAD_CHARACTERS, HEAD_LINES, recognised

    with _opened(path, "the table", errors="replace") as file:
        head = [line.rstrip("\n")[:HEAD_CHARACTERS] for line in islice(file, HEAD_LINES)]
    return recognised(head, path.name)


def _of_output(
    path: Path, format_: OutputFormat, unit: LatencyUnit | None, events: Path | None, mode: Mode
) -> Analysis:
    from cliffwatch.labs.outputs.formats import read_output

    # A program's output may hold what others wrote: what is no text of the encoding is replaced.
    with _opened(path, "the file", errors="replace") as file:
        output = read_output((line.rstrip("\n") for line in file), path.name, format_, unit)
    operations = "" if output.operations is None else f", {output.operations:,} operations"
    said = [f"{_extent(output.table)}{operations}.", *filter(None, [output.remark])]
    return replace(_judged(output.table, events, mode), read=" ".join(said))


@contextmanager
def _opened(path: Path, what: str, errors: str = "strict") -> Iterator[TextIO]:
    try:
        with opened_text(path, errors) as file:
            yield file
    except UnreadableTextError as error:
        raise _unreadable(path, what, str(error)) from error
    except OSError as error:
        raise _unreadable(path, what, f"{why_unreadable(error)}; correct the path") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, what, f"{why_unreadable(error)}; save it as UTF-8") from error


def _extent(table: Table) -> str:
    """Amount of data that was read: `Read 70 windows of 1 s, of which 68 have a latency`."""
    latencies = [series.name for series in table.series if series.role in (Role.LATENCY, Role.DEVICE_LATENCY)]
    measured = sum(any(sample.values.get(name) for name in latencies) for sample in table.samples)
    missing = "" if measured == len(table.samples) else f", of which {measured:,} have a latency"
    return f"Read {len(table.samples):,} windows of {format_length(table.window_seconds)}{missing}"


def _judged(table: Table, events: Path | None, mode: Mode) -> Analysis:
    from cliffwatch.analysis.csv_table import read_notices
    from cliffwatch.analysis.isolated import isolated_rises, isolated_sentence
    from cliffwatch.analysis.online.replay import replay
    from cliffwatch.analysis.run_analysis import analysis
    from cliffwatch.analysis.run_evidence import FindingSummary
    from cliffwatch.analysis.table_evidence import evidence_of_table, not_judged
    from cliffwatch.analysis.verdict import degrades, judge
    from cliffwatch.analysis.wording import sentence_of
    from cliffwatch.analysis.work import not_asked_for

    notices = [*table.notices]
    if events is not None:
        with _opened(events, "--events") as file:
            notices += read_notices(file, events.name)
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
    isolated = isolated_rises(table.series, table.samples, notices, findings, table.window_seconds)
    zero = table.samples[0].start
    verdict = judge(evidence_of_table(table, summaries, idle, isolated_sentence(isolated, zero), notices))
    return Analysis(verdict.name.value, verdict.reasons, rows, not_judged(table))


def _of_journal(directory: Path, mode: Mode) -> Analysis:
    from cliffwatch.report.build import build, verdict_on
    from cliffwatch.report.collect import collect
    from cliffwatch.report.findings import raised_in
    from cliffwatch.report.findings_document import findings_document
    from cliffwatch.report.limits.results import judge_limits

    if mode is Mode.OFFLINE:
        report = build(directory)
        body = report.document
        rows = [_row_of_document(finding) for finding in body.get("findings", ())]
        verdict = report.conclusion.verdict
        return Analysis(verdict.name.value, verdict.reasons, rows)
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


def _row_of_document(finding: Mapping[str, Any]) -> dict[str, Any]:
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


def _unreadable(path: Path, what: str, why: str) -> Problem:
    fault = FieldFault(what, f"{path} cannot be read: {why}")
    return Problem(Code.BAD_REQUEST, f"{what} cannot be read", [fault])


def _quantity(value: float | None, unit: str | None) -> str:
    if value is None:
        return ABSENT
    if unit == "operations_per_second":
        return format_rate(value)
    return show_latency(value) if unit == "seconds" else format_number(value)


def _print_text(analysis: Analysis) -> None:
    put(f"verdict: {analysis.verdict}", *analysis.reasons, *filter(None, [analysis.read, analysis.not_judged]))
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
