"""`cliffwatch install-units`: write the systemd unit that keeps the service of this machine running."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.durable import write_durably
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.output import Output, print_json, say
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.stack.systemd import UNIT, UNITS_DIRECTORY, unit


def install_units(
    context: typer.Context,
    to: Annotated[Path, typer.Option("--to", help="Directory to write the unit into.")] = UNITS_DIRECTORY,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            help="User to run as, with the drives of the group disk; default: root, with what drives need.",
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Write the systemd unit of this installation, and say how to start it."""
    program = Path(sys.prefix) / "bin" / "cliffwatch"
    path = to / UNIT
    try:
        write_durably(path, unit(program, user))
        path.chmod(0o644)
    except OSError as error:
        detail = f"{path} cannot be written: {error.strerror}; do it as root, or name another directory with --to"
        raise Problem(Code.BAD_REQUEST, detail) from error
    say(f"wrote {path}; then:", "  systemctl daemon-reload", "  systemctl enable --now cliffwatch")
    if session_of(context).how(output) is Output.JSON:
        print_json({"unit": str(path)})
