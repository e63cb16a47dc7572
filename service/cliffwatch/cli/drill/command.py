"""`cliffwatch drill`: end-to-end test from emulated flash to the report, on a small aging drive, in minutes."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from cliffwatch.base.clock import Clock, SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.base.resources import DRILL_PROFILE
from cliffwatch.base.units import parse_size
from cliffwatch.cli.aging import drive_settings
from cliffwatch.cli.client import ApiClient
from cliffwatch.cli.drill.judgement import VARIANTS, Expectation, Observed, Variant, expectations
from cliffwatch.cli.drill.progress import DrillProgress, DriveMeter
from cliffwatch.cli.following import EXIT_BAD_VERDICT, verdict_lines
from cliffwatch.cli.live import Follower, RunSeen
from cliffwatch.cli.output import Output, print_json, put, say
from cliffwatch.cli.run_request import duration_overrides, workload_reference
from cliffwatch.cli.session import EXIT_INTERRUPTED, OutputOption, Session, session_of
from cliffwatch.labs.aging.lifecycle import AgingDrive, AttachRequest, aging_drives, attach, detach
from cliffwatch.model.drill import DRILL_LABEL, VariantName
from cliffwatch.part.facts import available_memory_bytes

DRIVE_NAME = "drill"
_MEMORY = Path("/dev/shm")  # noqa: S108 # the name in it is the drive's serial, which cannot be predicted
#: How long the service may be unreachable while the drill follows its run.
_PATIENCE_SECONDS = 60.0


def drill(
    context: typer.Context,
    variant: Annotated[
        VariantName,
        typer.Option("--variant", help="Mitigation of garbage collection: none, TRIM, or 25 % left unpartitioned."),
    ] = VariantName.AGING,
    workload: Annotated[
        str, typer.Option("--workload", help="The load: a workload's name, or the path of a YAML file.")
    ] = "drill",
    soak: Annotated[str | None, typer.Option("--soak", help="Length of the soak, such as 3m.")] = None,
    output: OutputOption = None,
) -> None:
    """Soak a small emulated drive, and check cliff, alert, verdict and report. Needs root and the service (`up`).

    Exit status 0 when the variant's expectations were met: the drive without TRIM has a latency cliff, and one with
    TRIM, or with a quarter left unpartitioned, has none.
    """
    session = session_of(context)
    if session.service_url() != session.local_url():
        detail = "--url: the drill's drive is on this machine, so that only this machine's own service can soak it"
        raise Problem(Code.BAD_REQUEST, detail)
    # SIGTERM ends the drill as SIGINT does, so that its drive is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    how = session.how(output)
    clock = SystemClock()
    chosen = VARIANTS[variant]
    order: dict[str, Any] = {"workload": workload_reference(workload), "durations": duration_overrides(soak=soak)}
    with session.client() as api, _drive(session, chosen, clock) as drive:
        say(f"{chosen.story}", *_drive_lines(drive))
        order["target"] = {"kind": "directory", "path": str(drive.mount_point)}
        order["labels"] = {DRILL_LABEL: variant.value}
        run = api.post("/runs", order)
        say(f"run {run['id']} is {run['state']}")
        observed = _observe(api, run["id"], drive, clock)
    found = expectations(chosen, observed)
    _print_result(how, chosen, observed, found)
    if not all(each.holds for each in found):
        raise typer.Exit(EXIT_BAD_VERDICT)


@contextmanager
def _drive(session: Session, variant: Variant, clock: Clock) -> Iterator[AgingDrive]:
    """Attach a drive for this drill, and delete it at the end of the block, also after an error.

    If the drive cannot be deleted, a message is printed, and the result of the drill still counts.
    """
    state_directory = session.keeping_state().state_directory
    for left in aging_drives(state_directory):
        if left.name == DRIVE_NAME and left.is_abandoned:
            say("a drill before this one was killed; removing its drive")
            detach(state_directory, DRIVE_NAME, clock, delete=True)
    if any(drive.name == DRIVE_NAME for drive in aging_drives(state_directory)):
        detail = (
            f"another drill is in progress, or a drive named {DRIVE_NAME} exists; wait, or detach and delete the drive"
        )
        raise Problem(Code.CONFLICT, detail)
    settings = drive_settings(DRILL_PROFILE, None, [])
    order = AttachRequest(
        settings,
        discard=variant.discard,
        unpartitioned=variant.unpartitioned,
        content_directory=_memory_for(parse_size(settings["capacity"])),
    )
    drive = attach(state_directory, DRIVE_NAME, clock, order, keeper=ProcessIdentity.of(os.getpid()))
    try:
        yield drive
    finally:
        try:
            detach(state_directory, DRIVE_NAME, clock, delete=True)
            say(f"the drive {DRIVE_NAME} is unmounted, detached and deleted")
        except Problem as problem:
            say(f"the drive {DRIVE_NAME} is still there: {problem}", "  then: cliffwatch drive clean")


def _memory_for(capacity_bytes: int) -> Path | None:
    """Directory in memory if enough is free, else None: the machine's own disk must not affect the emulated drive."""
    try:
        room = os.statvfs(_MEMORY)
    except OSError:
        return None
    free_bytes = room.f_bavail * room.f_frsize
    is_plenty = min(free_bytes, (available_memory_bytes() or 0) / 2) > capacity_bytes * 1.1
    return _MEMORY if is_plenty else None


def _observe(api: ApiClient, run_id: str, drive: AgingDrive, clock: Clock) -> Observed:
    """Follow the run to its end and return what was observed. Ctrl-C stops the run and the drill."""
    course = DrillProgress(DriveMeter(drive), clock)
    run: dict[str, Any] = {}
    try:
        for update in Follower(api, run_id, clock, _PATIENCE_SECONDS).updates():
            run = update.run if isinstance(update, RunSeen) else run
            course.take(update)
    except KeyboardInterrupt:
        say("stopping the run, because the drill removes its drive")
        _stop(api, run_id, clock)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BaseException:
        _stop(api, run_id, clock)
        raise
    return Observed(
        run=run,
        report=_report(api, run_id),
        device=drive.device or "",
        windows=course.windows,
        amplifications=course.amplifications,
    )


def _stop(api: ApiClient, run_id: str, clock: Clock) -> None:
    """End the run, so that nothing uses the drive any more."""
    with suppress(Problem):
        api.post(f"/runs/{run_id}/stop", {"force": True})
        for _ in Follower(api, run_id, clock, _PATIENCE_SECONDS).updates():
            pass


def _report(api: ApiClient, run_id: str) -> dict[str, Any]:
    try:
        report: dict[str, Any] = api.get(f"/runs/{run_id}/report")
    except Problem as problem:
        say(f"the run has no report: {problem.detail}")
        return {}
    return report


def _drive_lines(drive: AgingDrive) -> list[str]:
    return [
        f"  drive:   /dev/{drive.device}, serial {drive.serial}, mounted at {drive.mount_point}",
        f"  metrics: {drive.url}/metrics",
    ]


def _print_result(how: Output, variant: Variant, observed: Observed, found: list[Expectation]) -> None:
    run = observed.run
    if how is Output.JSON:
        print_json(
            {
                "variant": variant.name.value,
                "run_id": run.get("id"),
                "verdict": run.get("verdict"),
                "reasons": run.get("reasons"),
                "report": run.get("report"),
                "device": observed.device,
                "expectations": [{"what": each.what, "holds": each.holds, "detail": each.detail} for each in found],
            }
        )
        return
    put(*verdict_lines(run))
    put(f"drill:   {variant.name.value}")
    for each in found:
        put(f"  {'yes' if each.holds else 'NO '}  {each.what}: {each.detail}")
    if failed := [each.what for each in found if not each.holds]:
        say(
            f"the drill did not meet its expectations: {'; '.join(failed)}",
            "  see docs/drill.md",
        )
