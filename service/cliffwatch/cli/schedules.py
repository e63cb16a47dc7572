"""`cliffwatch schedule …`: add, list, enable, disable and remove schedules of runs."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.base.units import format_length, parse_duration
from cliffwatch.cli import completion
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.following import target_name
from cliffwatch.cli.labels import LabelOption, labels_of, labels_text
from cliffwatch.cli.output import Column, Output, plain, print_facts, print_json, print_rows, say, show, show_time
from cliffwatch.cli.run_request import duration_overrides, target_document, workload_reference
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree
from cliffwatch.cli.watched_drives import DrivesOption, PrometheusOption, drives_document

app = CommandTree(help="Runs that start on a schedule.")

ScheduleArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCHEDULE",
        help="A name or an id, from `cliffwatch schedule list`.",
        autocompletion=completion.schedules,
    ),
]

_COLUMNS = (
    Column("SCHEDULE", plain("name")),
    Column("ID", plain("id")),
    Column("WORKLOAD", lambda schedule: show_workload(schedule["workload"])),
    Column("TARGET", lambda schedule: target_name(schedule) if schedule["target"] else show(None)),
    Column("WHEN", lambda schedule: show_when(schedule)),
    Column("ENABLED", plain("enabled")),
    Column("NEXT", lambda schedule: show_time(schedule.get("next_fire_at"))),
)


@app.command("add")
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")],
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            help="A name, name@version, or the path of a YAML file.",
            autocompletion=completion.workloads_and_files,
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target",
            help="directory:PATH, device:SERIAL, broker:HOST:PORT[,…], postgres://USER@HOST/DATABASE, observed:NAME, "
            "synthetic:NAME.",
            autocompletion=completion.targets,
        ),
    ],
    cron: Annotated[str | None, typer.Option("--cron", help="Five fields, such as '0 2 * * sat'.")] = None,
    every: Annotated[str | None, typer.Option("--every", help="An interval, such as 24h.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="One time, such as 2026-12-24T18:00:00Z.")] = None,
    time_zone: Annotated[str | None, typer.Option("--time-zone", help="For --cron, such as Europe/Berlin.")] = None,
    soak: Annotated[str | None, typer.Option("--soak", help="Length of the soak, such as 36h.")] = None,
    confirm: Annotated[
        str | None, typer.Option("--confirm", help="The confirmation that --dry-run prints for a device.")
    ] = None,
    drives: DrivesOption = None,
    prometheus: PrometheusOption = None,
    label: LabelOption = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Create it disabled.")] = False,
    output: OutputOption = None,
) -> None:
    """Add a schedule: exactly one of --cron, --every and --at says when."""
    session = session_of(context)
    body = {
        "name": name,
        "workload": workload_reference(workload),
        "target": target_document(target, confirm),
        "durations": duration_overrides(soak=soak),
        **({"labels": labels_of("--label", label)} if label else {}),
        **drives_document(drives, prometheus),
        "trigger": trigger_document(cron, every, at, time_zone),
        "enabled": not disabled,
    }
    with session.client() as api:
        schedule = api.post("/schedules", body)
    say(f"schedule {name} created; next {show_time(schedule['next_fire_at'])}")
    if session.how(output) is Output.JSON:
        print_json(schedule)


@app.command("list")
def list_schedules(context: typer.Context, output: OutputOption = None) -> None:
    """List schedules with the time at which each fires next."""
    session = session_of(context)
    with session.client() as api:
        rows = api.list_all("/schedules")
    print_rows(rows, _COLUMNS, session.how(output), "no schedules; add one with `cliffwatch schedule add`")


@app.command("show")
def show_schedule(context: typer.Context, schedule: ScheduleArgument, output: OutputOption = None) -> None:
    """Show one schedule."""
    session = session_of(context)
    with session.client() as api:
        body = api.get(path_of("schedules", _found(api, schedule)["id"]))
    print_facts(body, _facts_of(body), session.how(output))


@app.command("enable")
def enable(context: typer.Context, schedule: ScheduleArgument, output: OutputOption = None) -> None:
    """Enable a schedule."""
    _set_enabled(context, schedule, True, output)


@app.command("disable")
def disable(context: typer.Context, schedule: ScheduleArgument, output: OutputOption = None) -> None:
    """Disable a schedule. Runs that it queued continue."""
    _set_enabled(context, schedule, False, output)


@app.command("remove")
def remove(context: typer.Context, schedule: ScheduleArgument, output: OutputOption = None) -> None:
    """Remove a schedule. Runs that it queued stay."""
    session = session_of(context)
    with session.client() as api:
        row = _found(api, schedule)
        api.delete(path_of("schedules", row["id"]))
    say(f"schedule {schedule} is removed")
    if session.how(output) is Output.JSON:
        print_json(row)


def trigger_document(cron: str | None, every: str | None, at: str | None, time_zone: str | None) -> dict[str, Any]:
    """A schedule's trigger as the API takes it.

    Raises Problem unless exactly one of `cron`, `every` and `at` is given, or if `time_zone` is given without `cron`.
    """
    given = [
        {"kind": "cron", "expression": cron} if cron else None,
        {"kind": "interval", "every": every} if every else None,
        {"kind": "date", "at": at} if at else None,
    ]
    chosen = [trigger for trigger in given if trigger is not None]
    if len(chosen) != 1:
        fault = FieldFault("--cron, --every, --at", "give exactly one of them")
        raise Problem(Code.SCHEDULE_INVALID, "a schedule needs exactly one trigger", [fault])
    if time_zone and not cron:
        fault = FieldFault("--time-zone", "applies to --cron only; omit it")
        raise Problem(Code.SCHEDULE_INVALID, "the trigger is not valid", [fault])
    return chosen[0] | ({"time_zone": time_zone} if time_zone else {})


def show_trigger(trigger: dict[str, Any]) -> str:
    every, zone = trigger.get("every"), trigger.get("time_zone")
    if every:
        return f"every {format_length(parse_duration(every))}"
    when = trigger.get("expression") or trigger.get("at")
    return f"{trigger.get('kind')} {show(when)}" + (f" {zone}" if zone else "")


def show_when(schedule: Mapping[str, Any]) -> str:
    """Text of a schedule's trigger, or `cannot be scheduled`."""
    return "cannot be scheduled" if schedule.get("fault") else show_trigger(schedule["trigger"])


def show_workload(workload: str | dict[str, Any] | None) -> str:
    if workload is None:
        return show(None)
    return workload if isinstance(workload, str) else f"{workload.get('name')} (a document)"


def show_drives(drives: Mapping[str, Any] | None) -> str:
    """Text of the drives of other hosts that are watched; a dash where those below the target are."""
    if drives is None:
        return show(None)
    server = drives.get("server")
    return f"{drives['source']}:{drives['selector']}" + (f" of {server}" if server else "")


def _found(api: ApiClient, schedule: str) -> dict[str, Any]:
    """Find a schedule by its name or id. Raises Problem(not_found)."""
    rows = api.list_all("/schedules")
    for row in rows:
        if schedule in (row["name"], row["id"]):
            return row
    hint = did_you_mean(schedule, [row["name"] for row in rows])
    hint = hint or "; `cliffwatch schedule list` shows those there are"
    raise Problem(Code.NOT_FOUND, f"there is no schedule {schedule!r}{hint}")


def _facts_of(schedule: dict[str, Any]) -> dict[str, str]:
    facts = {column.heading.lower(): column.text(schedule) for column in _COLUMNS[:-1]}
    last = schedule.get("last_firing")
    last_text = show(None)
    if last:
        outcome = last.get("run_verdict") or last.get("run_state") or last["outcome"]
        parts = (show_time(last["due_at"]), outcome, last["run_id"], last["detail"])
        last_text = " ".join(part for part in parts if part)
    fault = {"fault": schedule["fault"]} if schedule.get("fault") else {}
    return (
        facts
        | fault
        | {
            "next": "\n".join(map(show_time, schedule.get("next_fire_times") or [])),
            "last": last_text,
            "lengths": _lengths_of(schedule),
            "labels": labels_text(schedule),
            "drives": show_drives(schedule.get("drives")),
            "missed": show_time(schedule.get("last_missed_at")),
        }
    )


def _lengths_of(schedule: Mapping[str, Any]) -> str:
    """Text of the lengths that its runs have in place of the workload's; a dash where there are none."""
    given = (schedule.get("durations") or {}).items()
    return ", ".join(f"{name} {length}" for name, length in given if length is not None) or show(None)


def _set_enabled(context: typer.Context, schedule: str, enabled: bool, output: Output | None) -> None:
    session = session_of(context)
    with session.client() as api:
        body = api.patch(path_of("schedules", _found(api, schedule)["id"]), {"enabled": enabled})
    say(f"schedule {schedule} is {'enabled' if enabled else 'disabled'}; next {show_time(body.get('next_fire_at'))}")
    if session.how(output) is Output.JSON:
        print_json(body)
