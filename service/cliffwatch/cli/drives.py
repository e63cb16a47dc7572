"""`cliffwatch drive …`: what drives the service's machine has, and what the safety gate says to each; aging drives."""

from collections.abc import Mapping
from typing import Any

import typer

from cliffwatch.cli import aging, what_if
from cliffwatch.cli.output import Column, plain, print_rows, show
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree
from cliffwatch.units import format_size

app = CommandTree(help="Look at the drives of the service's machine, and attach drives that age.")
aging.register(app)
what_if.register(app)

_COLUMNS = (
    Column("DRIVE", plain("name")),
    Column("SIZE", lambda drive: format_size(drive["size_bytes"])),
    Column("MODEL", plain("model")),
    Column("TARGET", lambda drive: target_of(drive)),
    Column("FREE TO USE", lambda drive: objections_of(drive)),
)


@app.command("list")
def list_drives(context: typer.Context, output: OutputOption = None) -> None:
    """List drives, how to name each as a target, and why the safety gate would refuse it."""
    session = session_of(context)
    with session.client() as api:
        rows = api.get("/drives")["items"]
    print_rows(rows, _COLUMNS, session.how(output), "this machine has no drives that the service can see")


def target_of(drive: Mapping[str, Any]) -> str:
    """What `--target` takes for the drive: the first of the names that do not move."""
    identities = drive["identities"]
    return f"device:{identities[0]}" if identities else show(None)


def objections_of(drive: Mapping[str, Any]) -> str:
    """`yes`, or every reason of the safety gate's."""
    return "; ".join(objection["message"] for objection in drive["objections"]) or "yes"
