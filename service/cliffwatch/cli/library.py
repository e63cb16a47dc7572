"""Manage stored runs: `cliffwatch run label`, `note`, `pin`, `unpin`, `again`, `diff` and `delete`."""

import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Annotated, Any

import typer

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import format_ratio
from cliffwatch.cli import completion
from cliffwatch.cli.client import path_of
from cliffwatch.cli.comparison import NotWorseOption
from cliffwatch.cli.following import (
    ConfirmOption,
    DryRunOption,
    Ending,
    GiveUpOption,
    WaitOption,
    WatchOption,
    begin,
)
from cliffwatch.cli.junit import JunitOption
from cliffwatch.cli.labels import labels_of
from cliffwatch.cli.output import Output, print_json, put, say, show, table_lines
from cliffwatch.cli.run_id import RunArgument, known_run
from cliffwatch.cli.session import OutputOption, session_of


def register(app: typer.Typer) -> None:
    """Add the commands for stored runs to `cliffwatch run`."""
    for name, command in (
        ("label", label_run),
        ("note", note_run),
        ("pin", pin_run),
        ("unpin", unpin_run),
        ("again", run_again),
        ("diff", diff_runs),
        ("delete", delete_run),
    ):
        app.command(name)(command)


def label_run(
    context: typer.Context,
    run: RunArgument,
    labels: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE…", help="Labels to set, such as release=26.1.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="NAME", help="A label to remove; may be given again.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Label a run. `run list --label NAME=VALUE` finds it again."""
    if not (labels or remove):
        raise Problem(Code.BAD_REQUEST, "give a label to set, such as release=26.1, or one to remove with --remove")
    given = labels_of("NAME=VALUE", labels or ())
    if both := sorted(given.keys() & set(remove or ())):
        raise Problem(Code.BAD_REQUEST, f"--remove: {both[0]!r} is to be set, too; give one of the two")
    _change(context, run, {"labels": dict.fromkeys(remove or ()) | given}, output, remove or ())


def note_run(
    context: typer.Context,
    run: RunArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The note, in place of the one before; '' for none.")],
    output: OutputOption = None,
) -> None:
    """Set the note of a run, such as the firmware of its drive."""
    _change(context, run, {"note": text}, output)


def pin_run(context: typer.Context, run: RunArgument, output: OutputOption = None) -> None:
    """Pin a run: it is never deleted."""
    _change(context, run, {"pinned": True}, output)


def unpin_run(context: typer.Context, run: RunArgument, output: OutputOption = None) -> None:
    """Unpin a run: it can be deleted again."""
    _change(context, run, {"pinned": False}, output)


def run_again(
    context: typer.Context,
    run: RunArgument,
    confirm: ConfirmOption = None,
    dry_run: DryRunOption = False,
    watch: WatchOption = False,
    wait: WaitOption = False,
    junit: JunitOption = None,
    not_worse_than: NotWorseOption = None,
    give_up_after: GiveUpOption = "10m",
    output: OutputOption = None,
) -> None:
    """Start a run with the workload, targets and labels of another run. Erasing a drive must be confirmed again."""
    session = session_of(context)
    ending = Ending(session.how(output), watch, wait, junit, give_up_after, not_worse_than)
    with session.client() as api:
        order = api.get(path_of("runs", known_run(api, run), "request"))
        devices = [each for each in (order["target"], *order["more_targets"]) if each["kind"] == "device"]
        if confirm and len(confirm) != len(devices):
            fault = FieldFault("--confirm", f"{len(confirm)} are given for {len(devices)} devices; give one for each")
            raise Problem(Code.BAD_REQUEST, "the confirmations do not fit the run", [fault])
        for device, sentence in zip(devices, confirm or (), strict=False):
            device["confirmation"] = sentence
        begin(api, order, None, ending, dry_run=dry_run)


def diff_runs(
    context: typer.Context,
    run: RunArgument,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The run to compare it with.", autocompletion=completion.runs)
    ],
    output: OutputOption = None,
) -> None:
    """Show what differs between two runs: results, workload, targets, environment."""
    session = session_of(context)
    with session.client() as api:
        ids = known_run(api, run), known_run(api, other)
        body = api.get(path_of("runs", ids[0], "differences"), other=ids[1])
    if session.how(output) is Output.JSON:
        print_json(body)
        return
    for fault in body.pop("faults"):
        say(f"note: {fault}")
    for part, found in body.items():
        rows = [row for each in found for row in _rows(each)]
        headings = (part.upper(), *ids, "RATIO" if part == "result" else "")
        put(*(table_lines(headings, rows) if rows else [f"{part.upper()}  the same"]), "")


def _rows(difference: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Rows of a table for one difference: one for each line of a text."""
    ratio, change = difference["ratio"], difference["change"] or ""
    notes = [f"{format_ratio(ratio)} {change}".rstrip() if ratio else ""]
    texts = (show(difference[side]).splitlines() for side in ("first", "second"))
    yield from zip_longest([difference["place"]], *texts, notes, fillvalue="")


def delete_run(
    context: typer.Context,
    run: RunArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    output: OutputOption = None,
) -> None:
    """Delete a finished run: its journal, its reports and its telemetry. A pinned run is not deleted."""
    session = session_of(context)
    with session.client() as api:
        run = known_run(api, run)
        if not yes:
            if not sys.stdin.isatty():
                raise Problem(Code.BAD_REQUEST, f"--yes: say so where you cannot be asked whether to delete run {run}")
            typer.confirm(f"Delete run {run}, with all that was measured?", abort=True, err=True)
        api.delete(path_of("runs", run))
    say(f"run {run} is deleted")
    if session.how(output) is Output.JSON:
        print_json({"id": run, "deleted": True})


def _change(
    context: typer.Context, run: str, change: dict[str, Any], output: Output | None, removed: Sequence[str] = ()
) -> None:
    session = session_of(context)
    with session.client() as api:
        run = known_run(api, run)
        before = api.get(path_of("runs", run))["labels"] if removed else {}
        if absent := [name for name in removed if name not in before]:
            say(f"note: run {run} had no label {' and no label '.join(absent)}")
        body = api.patch(path_of("runs", run), change)
    labels = ", ".join(f"{name}={value}" for name, value in body["labels"].items()) or "no labels"
    say(f"run {run}: {labels}; {'pinned' if body['pinned'] else 'not pinned'}")
    if session.how(output) is Output.JSON:
        print_json(body)
