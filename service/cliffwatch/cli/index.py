"""`cliffwatch index …`: rebuild the database, which is an index, from the journals."""

from dataclasses import asdict

import typer

from cliffwatch.cli.output import Output, print_json, say
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree

app = CommandTree(help="The database, which is an index over the journals of runs.")


@app.callback()
def group() -> None:
    """Empty callback that keeps `rebuild` a subcommand, although it is the only one."""


@app.command("rebuild")
def rebuild(context: typer.Context, output: OutputOption = None) -> None:
    """Rebuild the database's runs, findings and workload versions from the journals, on this machine.

    Works with the service up or down, in one transaction. Schedules and tokens are in no journal and stay as they are.
    """
    from cliffwatch.app import index  # slow to load, and no other command needs them
    from cliffwatch.store import database

    session = session_of(context)
    settings = session.keeping_state()
    database.upgrade(settings.database_url)
    store = database.open_database(settings.database_url)
    try:
        with store.session() as transaction:
            report = index.rebuild(transaction, settings.runs_directory)
    finally:
        store.close()
    for run_id, faults in report.faults.items():
        say(f"{run_id}:", *(f"  {fault}" for fault in faults))
    say(f"{report.indexed} runs from the journals in {settings.runs_directory}")
    if session.how(output) is Output.JSON:
        print_json(asdict(report) | {"refused": sorted(report.refused)})
