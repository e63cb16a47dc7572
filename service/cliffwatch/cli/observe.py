"""`cliffwatch observe --prometheus URL --since 14d`: runs of what a Prometheus kept of systems that others load."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlsplit

import typer

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import format_duration, format_length, parse_duration
from cliffwatch.cli.following import verdict_lines
from cliffwatch.cli.output import Output, answer_to, print_json, put, say, table_lines
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.journal import files
from cliffwatch.labs.look_back.journal import look_back
from cliffwatch.labs.look_back.systems import LeftOut, System, systems_in
from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.settings import Settings
from cliffwatch.observer.bounded import BoundedQueries
from cliffwatch.telemetry.address import PrometheusAddress, named_address
from cliffwatch.telemetry.prometheus import Prometheus, QueryFailed

EXIT_NOT_PASSED = 1
_SHORTEST_SECONDS, _LONGEST_SECONDS = 600.0, 90 * 86_400.0
_PATIENCE_SECONDS, _REPORT_SECONDS = 30.0, 5.0
#: Instances that are named before the rest is counted.
_NAMED = 3


def observe(
    context: typer.Context,
    prometheus: Annotated[
        str,
        typer.Option(
            "--prometheus",
            metavar="URL|NAME",
            help="URL of the Prometheus, or the name of one in the file CLIFFWATCH_PROMETHEUS_SERVERS.",
        ),
    ],
    since: Annotated[
        str, typer.Option("--since", help="How far to look back, such as 24h or 14d; at most 90d.")
    ] = "14d",
    yes: Annotated[bool, typer.Option("--yes", help="Look back without asking.")] = False,
    output: OutputOption = None,
) -> None:
    """Look back on what a Prometheus knows of systems that others load, and report on each. Needs no service.

    It looks for the metrics of the workloads `observe-*` (docs/workloads.md), prints what it found, asks once, and
    makes a finished run with a report for each system. Nothing is written to Prometheus, which is asked one query at a
    time: at most 2,000, each of at most 50,000 samples. Exit status: 0 if all passed, 1 for any other verdict.
    """
    session = session_of(context)
    settings, how = session.keeping_state(), session.how(output)
    server, seconds = _server(settings, prometheus), _seconds(since)
    rows = []
    with _connected(server) as queries:
        now = queries.prometheus.now()
        found, left_out = systems_in(queries, now - seconds, now)
        say(*_found_lines(found, left_out))
        if not found:
            raise Problem(Code.NOT_FOUND, f"{server.url} has no metrics of a system that is known, since {since}")
        if not yes:
            _ask(len(found))
        for system in found:
            directory, conclusion = look_back(system, queries, server, settings.runs_directory, _progress(system))
            row = {
                "system": system.name,
                "run": directory.name,
                "verdict": conclusion.verdict.name.value,
                "reasons": list(conclusion.verdict.reasons),
                "report": str(directory / files.REPORT_HTML),
            }
            rows.append(row)
            if how is not Output.JSON:
                put(f"{system.name} ({directory.name})", *verdict_lines(row), "")
        say(f"Prometheus was asked {queries.asked:,} queries.")
    if how is Output.JSON:
        print_json(rows)
    if any(row["verdict"] != VerdictName.PASS for row in rows):
        raise typer.Exit(EXIT_NOT_PASSED)


@contextmanager
def _connected(server: PrometheusAddress) -> Iterator[BoundedQueries]:
    """Queries of the server, closed at the end. Raises Problem where one fails, or it is no Prometheus."""
    try:
        prometheus = Prometheus(server, time.monotonic() + _PATIENCE_SECONDS)
        try:
            prometheus.major_version()
            yield BoundedQueries(prometheus)
        finally:
            prometheus.close()
    except QueryFailed as error:
        raise Problem(Code.SERVICE_UNREACHABLE, f"the past cannot be read: {error}") from error
    except OSError as error:
        raise Problem(Code.JOURNAL_UNWRITABLE, f"the run cannot be written: {error.strerror or error}") from error


def _server(settings: Settings, prometheus: str) -> PrometheusAddress:
    if "://" not in prometheus:
        return named_address(settings, prometheus, "--prometheus")
    if urlsplit(prometheus).username:
        fault = FieldFault("--prometheus", "write its user and password into a file of servers (docs/remote-drives.md)")
        raise Problem(Code.BAD_REQUEST, "a password on the command line is seen by all users of this machine", [fault])
    return PrometheusAddress(prometheus)


def _seconds(since: str) -> float:
    try:
        seconds = parse_duration(since)
    except ValueError as error:
        raise Problem(Code.BAD_REQUEST, "the length is not valid", [FieldFault("--since", str(error))]) from error
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        fault = FieldFault("--since", f"{since} is not between 10m and 90d")
        raise Problem(Code.BAD_REQUEST, "the length is not valid", [fault])
    return seconds


def _found_lines(found: Sequence[System], left_out: Sequence[LeftOut]) -> list[str]:
    lines = [f"{each.name} is left out: {each.reason}." for each in left_out]
    if not found:
        return lines
    cells = [
        [
            each.name,
            _instances(each),
            "–" if each.hosts is None else str(len(each.hosts.drives)),
            f"{datetime.fromtimestamp(each.start, UTC):%Y-%m-%d %H:%MZ}",
            format_length(each.stop - each.start),
            f"{each.windows:,} of {format_duration(each.workload.window)}",
            f"{each.queries:,}",
        ]
        for each in found
    ]
    return [*table_lines(["SYSTEM", "INSTANCES", "DRIVES", "SINCE", "LENGTH", "WINDOWS", "QUERIES"], cells), *lines]


def _instances(system: System) -> str:
    more = f", {len(system.instances) - _NAMED} more" if len(system.instances) > _NAMED else ""
    return ", ".join(system.instances[:_NAMED]) + more


def _ask(systems: int) -> None:
    """Ask at the terminal whether to look back; any other answer than yes ends the command. Raises Problem without a
    terminal."""
    if not sys.stdin.isatty():
        raise Problem(Code.BAD_REQUEST, "nothing was read: there is no terminal to ask; give --yes")
    what = "it" if systems == 1 else f"these {systems} systems"
    if answer_to(f"Look back on {what}? [y/N]").lower() not in ("y", "yes"):
        raise typer.Exit(1)


def _progress(system: System) -> Callable[[int], None]:
    """Report progress of reading a system's windows, every few seconds."""
    reported = time.monotonic()

    def progress(windows: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= _REPORT_SECONDS:
            reported = time.monotonic()
            say(f"{system.name}: {windows:,} of {system.windows:,} windows")

    return progress
