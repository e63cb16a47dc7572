"""`cliffwatch run bundle` and `run import`: export a run as one file, and import it into another service."""

from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.regular_files import NotAFile, reading
from cliffwatch.cli.output import Output, print_json, say
from cliffwatch.cli.run_id import SourceArgument
from cliffwatch.cli.run_source import journal_of, written
from cliffwatch.cli.session import OutputOption, session_of


def register(app: typer.Typer) -> None:
    """Add `bundle` and `import` to `cliffwatch run`."""
    app.command("bundle")(bundle)
    app.command("import")(import_)


def bundle(
    context: typer.Context,
    run: SourceArgument,
    to: Annotated[Path | None, typer.Option("--to", help="The file to write; RUN.tar.zst here otherwise.")] = None,
    output: OutputOption = None,
) -> None:
    """Pack a finished run into one file: journal, telemetry, report and dashboards. The service is not needed."""
    from cliffwatch.labs.bundle.pack import ENDING, pack  # slow to load, and no other command needs it

    session = session_of(context)
    directory = journal_of(session, run)
    path = to or Path(f"{directory.resolve().name}{ENDING}")
    with written(path) as file:
        manifest = pack(directory, file)
    say(f"wrote {path}", f"  open it elsewhere:  cliffwatch run import {path}")
    if session.how(output) is Output.JSON:
        print_json({"file": str(path)} | manifest.model_dump(mode="json"))


def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `cliffwatch run bundle` wrote.")],
    output: OutputOption = None,
) -> None:
    """Import a bundled run into the service, under its own id."""
    session = session_of(context)
    try:
        with reading(file) as content, session.client() as api:
            run = api.upload("/runs/import", content)
    except NotAFile as error:
        raise Problem(Code.BAD_REQUEST, f"{file} is not a regular file; name the file of the bundle") from error
    except OSError as error:
        raise Problem(Code.BAD_REQUEST, f"{file} cannot be read: {error.strerror}; correct the path") from error
    say(f"imported {run['id']} (verdict {run['verdict']})", f"  look at it:  cliffwatch run show {run['id']}")
    if session.how(output) is Output.JSON:
        print_json(run)
