"""The `cliffwatch` command.

Exit status: 0 a pass, or success; 1 a run ended with any other verdict; 2 the request is not valid; 3 the service, or
something that it needs, is unavailable; 4 the database is of a newer version; 130 Ctrl-C. Every flag can be given as an
environment variable: CLIFFWATCH, the command's words and the flag's name, joined by `_`, in capitals.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.output import Output, print_json, put, say
from cliffwatch.cli.session import EXIT_INTERRUPTED, OutputOption, Session, session_of
from cliffwatch.cli.tree import CommandTree, Deferred, DeferredGroup

PROGRAM = "cliffwatch"
EXIT_USAGE = 2
EXIT_INFRASTRUCTURE = 3
EXIT_DATABASE_NEWER = 4

COMMANDS = {
    "serve": Deferred("cliffwatch.cli.service", "serve", "Run the service in the foreground."),
    "up": Deferred("cliffwatch.cli.service", "up", "Start the service and its watchers in the background."),
    "down": Deferred("cliffwatch.cli.service", "down", "Stop the service and its watchers; runs go on."),
    "status": Deferred("cliffwatch.cli.service", "status", "Show whether the service is up."),
    "open": Deferred("cliffwatch.cli.open", "open_", "Open the pages in a browser, logged in."),
    "install-units": Deferred("cliffwatch.cli.units", "install_units", "Write the systemd unit of the service."),
    "soak": Deferred("cliffwatch.cli.soak", "soak", "Soak a directory, a drive, a broker or a database."),
    "observe": Deferred("cliffwatch.cli.observe", "observe", "Look back on what a Prometheus knows of systems."),
    "analyze": Deferred("cliffwatch.cli.analyze", "analyze", "Find cliffs, stalls and drift in a run or a file."),
    "drill": Deferred("cliffwatch.cli.drill.command", "drill", "Soak a small emulated drive, to try everything."),
    "part": Deferred("cliffwatch.cli.main", "part"),
    "version": Deferred("cliffwatch.cli.main", "version", "Print the version."),
    "run": Deferred("cliffwatch.cli.runs", "app", "Start, list, watch, stop and report runs."),
    "workload": Deferred("cliffwatch.cli.workloads", "app", "Validate, save and show workloads."),
    "schedule": Deferred("cliffwatch.cli.schedules", "app", "Runs that start on a schedule."),
    "drive": Deferred("cliffwatch.cli.drives", "app", "List drives, and attach emulated drives that age."),
    "token": Deferred("cliffwatch.cli.tokens", "app", "Manage API tokens."),
    "notify": Deferred("cliffwatch.cli.notifications", "app", "Notify people of cliffs and of runs that ended."),
    "index": Deferred("cliffwatch.cli.index", "app"),
    "rules": Deferred("cliffwatch.cli.carried", "rules", "Alert and recording rules."),
    "dashboards": Deferred("cliffwatch.cli.carried", "dashboards", "Grafana's dashboards."),
    "omb": Deferred("cliffwatch.cli.omb", "app", "Files of OpenMessaging Benchmark."),
}


#: Printed by the command alone: what people come with, and the command for it.
FIRST_COMMANDS = (
    "Soak tests that say, while they run, when, where and why latency fell off a cliff.",
    "",
    "  a directory, a drive, a broker or a database?",
    "      cliffwatch soak /mnt/test",
    "  a system that others load, and a Prometheus that knows it?",
    "      cliffwatch observe --prometheus http://127.0.0.1:9090 --since 14d",
    "  a log of fio, pgbench, k6 and others, or a CSV?",
    "      cliffwatch analyze soak.csv",
    "  nothing yet, to see how it looks?",
    "      cliffwatch drill",
    "",
    "`cliffwatch up` starts the service of this machine, and `open` shows its pages; `--help` lists all commands.",
)


class _Root(DeferredGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.defer(COMMANDS)

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        if not arguments and not context.resilient_parsing:
            put(*FIRST_COMMANDS)
            context.exit()
        return super().parse_args(context, arguments)


app = CommandTree(
    cls=_Root,
    name=PROGRAM,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": "CLIFFWATCH", "help_option_names": ["--help"]},
    epilog="Every flag is also an environment variable: docs/cli.md names it, and describes every command.",
)


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


def part() -> None:
    """Execute one part of a run, by commands on stdin. Only runs start it; ARCHITECTURE.md describes the protocol."""
    from cliffwatch.part.__main__ import main as run_part

    raise typer.Exit(run_part())


def version(context: typer.Context, output: OutputOption = None) -> None:
    """Print the version."""
    from cliffwatch.base.version import VERSION

    if session_of(context).how(output) is Output.JSON:
        print_json({"version": VERSION})
    else:
        print(VERSION)


def _print_version(asked: bool) -> None:
    if asked:
        from cliffwatch.base.version import VERSION

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
        from cliffwatch.model.target import field_words

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
