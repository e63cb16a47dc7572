"""`cliffwatch run report`: get a run's report, and make it if there is none."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.output import say
from cliffwatch.cli.run_id import SourceArgument, known_run
from cliffwatch.cli.run_source import FileOutputOption, is_journal, say_written, written
from cliffwatch.cli.session import session_of
from cliffwatch.journal import files
from cliffwatch.model.run_state import RunState
from cliffwatch.report.picture.process import picture_of
from cliffwatch.report.process import make_report

_NAMES = {"json": "report", "html": files.REPORT_HTML, "png": files.REPORT_PNG}


def register(app: typer.Typer) -> None:
    """Add `report` to `cliffwatch run`."""
    app.command("report")(report)


def report(
    context: typer.Context,
    run: SourceArgument,
    format: Annotated[  # noqa: A002  # the flag's name
        str, typer.Option("--format", help="json, html, or png: one picture for a chat.")
    ] = "json",
    to: Annotated[Path | None, typer.Option("--to", help="The file to write; stdout otherwise.")] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Make it again even if there is one.")] = False,
    output: FileOutputOption = None,
) -> None:
    """Get a run's report. If there is none yet, it is made of what was measured so far, also during the run.

    For a journal's directory, such as a copy from another machine, it is made here, without the service.
    """
    if format not in _NAMES:
        raise Problem(Code.BAD_REQUEST, f"--format: {format!r} is not a format; formats: {', '.join(_NAMES)}")
    if format == "png" and to is None and sys.stdout.isatty():
        raise Problem(Code.BAD_REQUEST, "--to: a PNG is binary; name a file, or redirect the output")
    session = session_of(context)
    if is_journal(run):
        content = _made_here(Path(run), format)
    else:
        with session.client() as api:
            content = fetched(api, known_run(api, run), format, anew=anew)
    with written(to) as file:
        file.write(content)
    say_written(to, format, session.how(output))


def fetched(api: ApiClient, run: str, format_: str, *, anew: bool) -> bytes:
    """Fetch a report; the service makes it if there is none, if the run is unfinished, or if `anew`. Raises Problem."""
    path = path_of("runs", run, _NAMES[format_])
    if not anew and api.get(path_of("runs", run))["state"] == RunState.FINISHED:
        try:
            return api.get_bytes(path)
        except Problem as problem:
            if problem.code is not Code.REPORT_NOT_READY:
                raise
    made = api.make(path_of("runs", run, "report"))
    if made["is_provisional"]:
        say(f"run {run} is not finished: this report covers what was measured so far")
    return api.get_bytes(path)


def as_markdown(api: ApiClient, run: str) -> str:
    """A run's result as Markdown, from its report. Raises Problem."""
    from cliffwatch.report.markdown import markdown

    return markdown(json.loads(fetched(api, run, "json", anew=False))).rstrip()


def _made_here(directory: Path, format_: str) -> bytes:
    """Make a report without the service, in a temporary directory, since the journal's directory may be read-only."""
    with tempfile.TemporaryDirectory(prefix="cliffwatch-report-") as place:
        made = make_report(directory.resolve(), Path(place))
        if made.failure:
            raise Problem(Code.INTERNAL, f"the report of {directory} could not be made: {made.failure}")
        if format_ == "png":
            return picture_of(directory.resolve(), Path(place) / "fonts", Path(place))
        return (Path(place) / (files.REPORT_JSON if format_ == "json" else files.REPORT_HTML)).read_bytes()
