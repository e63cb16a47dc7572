"""`cliffwatch omb …`: import workloads and drivers of OpenMessaging Benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.durable import output_file
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.output import Output, print_json, say
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree

app = CommandTree(name="omb", help="Files of OpenMessaging Benchmark.")


@app.callback()
def group() -> None:
    """Files of OpenMessaging Benchmark."""


@app.command("import")
def import_(
    context: typer.Context,
    workload: Annotated[Path, typer.Argument(metavar="WORKLOAD.yaml", help="The benchmark's workload file.")],
    driver: Annotated[Path, typer.Argument(metavar="DRIVER.yaml", help="The benchmark's driver file, for Kafka.")],
    to: Annotated[Path | None, typer.Option("--to", help="The file to write; stdout otherwise.")] = None,
    accept_differences: Annotated[
        bool, typer.Option("--accept-differences", help="Write the workload although it measures something else.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Convert a benchmark's workload and driver file into a workload, and list every key that is not supported.

    Differences in what is measured are listed with their consequences; without --accept-differences nothing is written
    then, and the status is 1.
    """
    from cliffwatch.labs.omb.importer import import_files
    from cliffwatch.model.workload import format_workload

    imported = import_files(workload, driver)
    if imported.warnings and not accept_differences:
        say(*(f"difference: {words}" for words in imported.warnings), *(f"note: {words}" for words in imported.notes))
        say("nothing was written; `--accept-differences` writes the workload with these")
        raise typer.Exit(1)
    text = format_workload(imported.workload)
    if to is not None:
        try:
            with output_file(to) as file:
                file.write(text.encode())
        except OSError as error:
            raise Problem(Code.BAD_REQUEST, f"--to: {to} cannot be written: {error.strerror}") from error
    if session_of(context).how(output) is Output.JSON:
        print_json(
            {
                "workload": imported.workload.model_dump(mode="json"),
                "target": imported.target.model_dump(mode="json"),
                "warnings": list(imported.warnings),
                "notes": list(imported.notes),
            }
        )
    elif to is None:
        typer.echo(text, nl=False)
    say(*(f"difference: {words}" for words in imported.warnings), *(f"note: {words}" for words in imported.notes))
    say(f"run it: cliffwatch run start {to or 'FILE'} --target {imported.target}")
