"""`cliffwatch run export`: a run's windows for other programs."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.run_id import SourceArgument
from cliffwatch.cli.run_source import FileOutputOption, journal_of, say_written, written
from cliffwatch.cli.session import session_of

_OMB = "omb"
FORMATS = {
    "csv": "a row for each window and operation",
    "parquet": "the same, with types",
    "analyze": "the CSV that `cliffwatch analyze` reads",
    _OMB: "the result file of OpenMessaging Benchmark",
}


def register(app: typer.Typer) -> None:
    """Add `export` to `cliffwatch run`."""
    app.command("export")(export)


def export(
    context: typer.Context,
    run: SourceArgument,
    format: Annotated[  # noqa: A002  # the flag's name
        str, typer.Option("--format", help="; ".join(f"{name}: {what}" for name, what in FORMATS.items()) + ".")
    ] = "csv",
    to: Annotated[Path | None, typer.Option("--to", help="The file to write; stdout otherwise.")] = None,
    output: FileOutputOption = None,
) -> None:
    """Export a run's windows from its journal; the service is not needed.

    For a live run, these are the windows committed so far. Gaps are rows of their own, or left empty.
    """
    if format not in FORMATS:
        raise Problem(Code.BAD_REQUEST, f"--format: {format!r} is not a format; formats: {', '.join(FORMATS)}")
    if format == "parquet" and to is None and sys.stdout.isatty():
        raise Problem(Code.BAD_REQUEST, "--to: Parquet is binary; name a file, or redirect the output")
    session = session_of(context)
    directory = journal_of(session, run)
    with written(to) as file:
        if format == _OMB:
            from cliffwatch.labs.omb.result import result_of

            file.write((json.dumps(result_of(directory)) + "\n").encode())
        else:
            from cliffwatch.report.export.formats import WRITERS
            from cliffwatch.report.export.window_table import table_of

            WRITERS[format](table_of(directory), file)
    say_written(to, format, session.how(output))
