"""`cliffwatch drive …`: the drives of the service's machine with the safety gate's objections; emulated drives."""

import shutil
import textwrap
from collections.abc import Mapping
from typing import Any

import typer

from cliffwatch.base.units import format_size
from cliffwatch.cli import aging, what_if
from cliffwatch.cli.output import Output, print_json, put, say
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree

app = CommandTree(help="List the drives of the service's machine, and attach emulated drives that age.")
aging.register(app)
what_if.register(app)

#: Minimum width of a line; below it, words would be split.
_WIDTH_MINIMUM = 40
_FIELD_WIDTH = 10


@app.command("list")
def list_drives(context: typer.Context, output: OutputOption = None) -> None:
    """List drives: what each is, how to name it as a target, and whether the safety gate allows writing to it."""
    session = session_of(context)
    with session.client() as api:
        rows = api.get("/drives")["items"]
    if session.how(output) is Output.JSON:
        print_json(rows)
        return
    if not rows:
        say("this machine has no drives that the service can see")
    width = max(_WIDTH_MINIMUM, shutil.get_terminal_size().columns)
    for drive in rows:
        put(*drive_lines(drive, width))


def drive_lines(drive: Mapping[str, Any], width: int) -> list[str]:
    """Describe a drive in lines of at most `width` columns, unless a single name is longer."""
    objections = [objection["message"] for objection in drive["objections"]]
    facts = [("target", target_of(drive))]
    facts += [("no:", message) for message in objections] or [("eligible", "yes, as a raw device; all on it is lost")]
    lines = _wrapped("  ".join([drive["name"], *kind_of(drive)]), width, "", "  ")
    if objections:
        facts.insert(1, ("eligible", "not eligible as a raw device"))
    for name, text in facts:
        lines += _wrapped(text, width, f"  {name:<{_FIELD_WIDTH}}", " " * (2 + _FIELD_WIDTH))
    return lines


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    """Wrap a text between words only: a path or a name that is split could not be copied."""
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def kind_of(drive: Mapping[str, Any]) -> list[str]:
    """Description of a drive: size, kind, model, and whether it is read-only."""
    trim = ("TRIM supported" if drive["discard"] else "no TRIM") if drive["kind"] == "SSD" else None
    facts = [format_size(drive["size_bytes"]), drive["kind"], trim, drive["model"]]
    return [*(fact for fact in facts if fact), *(["read-only"] if drive["read_only"] else [])]


def target_of(drive: Mapping[str, Any]) -> str:
    """Value of `--target` for the drive: the first of its stable names; or why it has none."""
    identities = drive["identities"]
    if identities:
        return f"device:{identities[0]}"
    return (
        "none: it has no name that no other drive has, and no link in /dev/disk/by-path; a directory on it can be one"
    )
