"""`cliffwatch drive attach`, `detach`, `aging`, `clean`: emulated aging drives. They need root, but no service."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.programs import DRIVE, require_program
from cliffwatch.base.resources import DRILL_PROFILE
from cliffwatch.base.units import format_size, parse_share, parse_size
from cliffwatch.cli import completion
from cliffwatch.cli.drive_settings import check_names, setting_name, typed_by_name, with_typed
from cliffwatch.cli.output import Column, Output, plain, print_facts, print_json, print_rows, say, show
from cliffwatch.cli.run_request import read_document
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.labs.aging.description import FileSystem
from cliffwatch.labs.aging.directories import check_unpartitioned, place_of
from cliffwatch.labs.aging.lifecycle import (
    AgingDrive,
    AttachRequest,
    aging_drives,
    attach,
    clean,
    detach,
    unreadable_drives,
)

NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name for the drive.", autocompletion=completion.drives),
]

_COLUMNS = (
    Column("NAME", plain("name")),
    Column("SERIAL", plain("serial")),
    Column("DEVICE", plain("device")),
    Column("SIZE", lambda row: show(None) if row["size_bytes"] is None else format_size(row["size_bytes"])),
    Column("MOUNTED AT", plain("mount_point")),
    Column("METRICS", lambda row: f"{row['url']}/metrics" if row["url"] else show(None)),
)


def attach_drive(
    context: typer.Context,
    name: NameArgument,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", help="YAML file with the drive model's settings; default drive/profiles/drill.yaml."),
    ] = None,
    capacity: Annotated[
        str | None, typer.Option("--capacity", help="Size, such as 4GiB; default: the profile's.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            envvar="CLIFFWATCH_DRIVE_ATTACH_SET",
            metavar="KEY=VALUE",
            help="A setting of docs/drive.md as KEY=VALUE; repeatable.",
        ),
    ] = None,
    file_system: Annotated[
        FileSystem | None, typer.Option("--file-system", help="File system to create; default ext4.")
    ] = None,
    discard: Annotated[
        bool | None,
        typer.Option("--discard/--no-discard", help="Mount with discard (TRIM); default off."),
    ] = None,
    unpartitioned: Annotated[
        str | None,
        typer.Option("--unpartitioned", help="Share of the drive left unpartitioned, such as 0.25 or 25%; default 0."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Attach an aging drive as a disk and mount it; a new one is created first, as the flags specify."""
    session = session_of(context)
    state_directory = session.keeping_state().state_directory
    is_known = place_of(state_directory, name).exists()
    given = (profile, capacity, settings, file_system, discard, unpartitioned)
    typed = typed_by_name(settings or [], {"capacity": capacity, "unpartitioned": unpartitioned})
    order = None
    if not is_known or any(value is not None for value in given):
        order = AttachRequest(
            settings=drive_settings(profile or DRILL_PROFILE, capacity, settings or []),
            file_system=file_system or FileSystem.EXT4,
            discard=bool(discard),
            unpartitioned=_share_of(unpartitioned),
        )
    check_names(require_program(DRIVE, state_directory), settings or [], Code.DRIVE_INVALID)
    try:
        drive = attach(state_directory, name, SystemClock(), order)
    except Problem as problem:
        raise with_typed(problem, settings or [], typed) from problem
    print_facts(_body(drive), _facts(drive), session.how(output))


def detach_drive(
    context: typer.Context,
    name: NameArgument,
    delete: Annotated[bool, typer.Option("--delete", help="Also delete its content and its simulated wear.")] = False,
    output: OutputOption = None,
) -> None:
    """Unmount an aging drive, detach it and stop serving it. Its content and its simulated wear are kept."""
    session = session_of(context)
    left = detach(session.keeping_state().state_directory, name, SystemClock(), delete=delete)
    say(f"the drive {name} is {'deleted' if delete else 'detached'}", *left)
    if session.how(output) is Output.JSON:
        print_json({"name": name, "deleted": delete})


def list_aging(context: typer.Context, output: OutputOption = None) -> None:
    """List this machine's aging drives, attached or not."""
    session = session_of(context)
    state_directory = session.settings().state_directory
    say(*(problem.detail for problem in unreadable_drives(state_directory)))
    rows = [_body(drive) for drive in aging_drives(state_directory)]
    print_rows(rows, _COLUMNS, session.how(output), "no aging drives; make one with `cliffwatch drive attach NAME`")


def clean_up(context: typer.Context, output: OutputOption = None) -> None:
    """Clean up the aging drives that killed processes left behind. Drives in use are not touched."""
    session = session_of(context)
    done = clean(session.keeping_state().state_directory, SystemClock())
    if session.how(output) is Output.JSON:
        print_json(done)
    else:
        say(*(done or ["nothing to clean up"]))


def register(app: typer.Typer) -> None:
    """Add `attach`, `detach`, `aging` and `clean` to `cliffwatch drive`."""
    for name, command in (
        ("attach", attach_drive),
        ("detach", detach_drive),
        ("aging", list_aging),
        ("clean", clean_up),
    ):
        app.command(name)(command)


def drive_settings(profile: Path, capacity: str | None, assignments: list[str]) -> dict[str, Any]:
    """Settings of the emulated drive: the profile's, overridden by `capacity` and `assignments`. Raises Problem."""
    settings = read_document(profile)
    if capacity is not None:
        try:
            parse_size(capacity)
        except ValueError as error:
            raise Problem(Code.DRIVE_INVALID, f"--capacity: {error}") from error
        assignments = [f"capacity={capacity}", *assignments]
    names = {setting_name(assignment) for assignment in assignments}
    if {"capacity", "blocks"} <= names:
        raise Problem(Code.DRIVE_INVALID, "capacity and blocks both say how large the drive is; give one of them")
    if names & {"capacity", "blocks"}:
        # The profile's own size, as capacity or blocks, would override the given size or conflict with it.
        settings = {key: value for key, value in settings.items() if key not in ("capacity", "blocks")}
    for assignment in assignments:
        key, separator, value = assignment.partition("=")
        if not separator or not key:
            raise Problem(Code.DRIVE_INVALID, f"--set: {assignment!r} has no value; write KEY=VALUE, as in channels=2")
        settings[setting_name(assignment)] = _value(value)
    return settings


def _share_of(unpartitioned: str | None) -> float:
    if unpartitioned is None:
        return 0.0
    try:
        return check_unpartitioned(parse_share(unpartitioned))
    except ValueError as error:
        raise Problem(Code.DRIVE_INVALID, f"--unpartitioned: {error}") from error


def _value(text: str) -> Any:
    """Value of a setting, parsed as YAML, except that `on` and `off` stay strings."""
    return text if text in ("on", "off") else yaml.safe_load(text)


def _body(drive: AgingDrive) -> dict[str, Any]:
    return {
        "name": drive.name,
        "serial": drive.serial,
        "device": drive.device,
        "identity": drive.identity,
        "size_bytes": drive.size_bytes,
        "mount_point": None if drive.mount_point is None else str(drive.mount_point),
        "url": drive.url,
    }


def _facts(drive: AgingDrive) -> dict[str, str]:
    return {
        "drive": drive.name,
        "serial": drive.serial,
        "device": show(drive.device and f"/dev/{drive.device}"),
        "size": show(None if drive.size_bytes is None else format_size(drive.size_bytes)),
        "target": f"directory:{drive.mount_point}" if drive.mount_point else f"device:{drive.identity}",
        "metrics": show(drive.url and f"{drive.url}/metrics"),
    }
