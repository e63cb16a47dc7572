"""The `cliffwatch` command.

Exit status: 0 a pass, or success; 1 a run ended with any other verdict; 2 the request is not valid; 3 the service, or
something that it needs, is unavailable; 4 the database is of a newer version; 130 Ctrl-C. Every flag can be given as an
environment variable: CLIFFWATCH, the command's words and the flag's name, joined by `_`, in capitals.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.version import VERSION
from cliffwatch.cli import (
    analyze,
    carried,
    drives,
    index,
    notifications,
    omb,
    runs,
    schedules,
    service,
    tokens,
    units,
    workloads,
)
from cliffwatch.cli.drill import command
from cliffwatch.cli.following import EXIT_INTERRUPTED
from cliffwatch.cli.output import Output, print_json, say
from cliffwatch.cli.session import OutputOption, Session, session_of
from cliffwatch.cli.tree import CommandTree
from cliffwatch.model.target import field_words
from cliffwatch.part.__main__ import main as run_part

PROGRAM = "cliffwatch"
EXIT_USAGE = 2
EXIT_INFRASTRUCTURE = 3
EXIT_DATABASE_NEWER = 4

app = CommandTree(
    name=PROGRAM,
    # Plain help: boxes are cut off in narrow terminals and cannot be searched.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": "CLIFFWATCH", "help_option_names": ["--help"]},
    epilog="Every flag is also an environment variable, which its help names. docs/cli.md describes every command.",
)
app.add_typer(runs.app, name="run")
app.add_typer(workloads.app, name="workload")
app.add_typer(schedules.app, name="schedule")
app.add_typer(drives.app, name="drive")
app.add_typer(tokens.app, name="token")
app.add_typer(notifications.app, name="notify")
app.add_typer(index.app, name="index")
app.add_typer(carried.rules, name="rules")
app.add_typer(carried.dashboards, name="dashboards")
app.add_typer(omb.app, name="omb")
service.register(app)
units.register(app)
analyze.register(app)
command.register(app)


@app.callback()
def root(
    context: typer.Context,
    url: Annotated[
        str | None, typer.Option("--url", help="URL of the service; default: the service on this machine.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="File with the token; default: `token` in the state directory."),
    ] = None,
    state_directory: Annotated[
        Path | None,
        typer.Option("--state-directory", help="State directory of this machine's service; default .cliffwatch."),
    ] = None,
    output: OutputOption = None,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda asked: _print_version(asked),
            # Images and scripts use the name CLIFFWATCH_VERSION for something else.
            allow_from_autoenv=False,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Soak tests that say, while they run, when, where and why latency fell off a cliff."""
    context.obj = Session(url, token_file, state_directory, output)


@app.command("part")
def part() -> None:
    """Execute one part of a run, by commands on stdin. Only runs start it; ARCHITECTURE.md describes the protocol."""
    raise typer.Exit(run_part())


@app.command("version")
def version(context: typer.Context, output: OutputOption = None) -> None:
    """Print the version."""
    if session_of(context).how(output) is Output.JSON:
        print_json({"version": VERSION})
    else:
        print(VERSION)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"{PROGRAM} {VERSION}")
        raise typer.Exit


def exit_status_of(problem: Problem) -> int:
    """Exit status for a problem: 2 if the request is at fault, 3 if the service is, 4 for a newer database."""
    if problem.code is Code.DATABASE_NEWER:
        return EXIT_DATABASE_NEWER
    return EXIT_INFRASTRUCTURE if problem.kind.status >= 500 else EXIT_USAGE


def main() -> None:
    """Entry point of the console script: run the command, and print a Problem to stderr."""
    try:
        app(prog_name=PROGRAM)
    except Problem as problem:
        faults = [f"  {field_words(fault.field)}: {fault.message}" for fault in problem.faults]
        say(f"{PROGRAM}: {problem.detail}", *faults)
        sys.exit(exit_status_of(problem))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe: discard what is still buffered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
