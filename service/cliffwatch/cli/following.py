"""Start a run and follow it to its end; its verdict sets the command's exit status."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.comparison import (
    FLAG,
    comparison_lines,
    comparison_with,
    is_not_worse,
    label_of,
    require_comparable,
)
from cliffwatch.cli.junit import require_writable, write_junit
from cliffwatch.cli.live import Follower, RunSeen
from cliffwatch.cli.output import Output, print_json, put, say, show
from cliffwatch.cli.run_request import ask_for_confirmation, make_known, print_plan, standing_objections, target_text
from cliffwatch.cli.session import EXIT_INTERRUPTED, seconds_of
from cliffwatch.model.run_state import VerdictName

EXIT_BAD_VERDICT = 1

WatchOption = Annotated[bool, typer.Option("--watch", help="Show progress until the run is over.")]
WaitOption = Annotated[bool, typer.Option("--wait", help="Wait without output until the run is over.")]
GiveUpOption = Annotated[
    str, typer.Option("--give-up-after", help="How long to wait for a service that stopped answering.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print what would be written where, and start nothing.")]
ConfirmOption = Annotated[
    list[str] | None,
    typer.Option("--confirm", help="The confirmation that --dry-run prints for a device; of several, in their order."),
]


@dataclass(frozen=True, slots=True)
class Ending:
    """What a command does after it started a run: watch it or wait for it, compare it with earlier runs, and write the
    result to the JUnit file."""

    how: Output
    watch: bool
    wait: bool
    junit: Path | None
    give_up_after: str
    not_worse_than: str | None

    @property
    def label(self) -> str | None:
        """Label of the runs to compare with. Raises Problem(bad_request)."""
        return None if self.not_worse_than is None else label_of(self.not_worse_than)

    def check(self) -> None:
        """Check that what needs a result comes with --watch or --wait, and that the JUnit file can be written.

        Raises Problem(bad_request).
        """
        needing = [flag for flag, given in (("--junit", self.junit), (FLAG, self.label)) if given is not None]
        if needing and not (self.watch or self.wait):
            raise Problem(Code.BAD_REQUEST, f"{needing[0]}: there is no result before the run is over; give --wait too")
        if self.junit is not None:
            require_writable(self.junit)


def begin(api: ApiClient, order: dict[str, Any], run_id: str | None, ending: Ending, *, dry_run: bool) -> None:
    """Start a run and print its id, or print its plan. Ask at the terminal to confirm a drive's erasure, unless it is
    confirmed."""
    ending.check()
    if ending.label is not None:
        require_comparable(api, order, ending.label)
    if dry_run:
        _dry_run(api, order, run_id, ending.how)
        return
    devices = [each for each in (order["target"], *order.get("more_targets", ())) if each["kind"] == "device"]
    if devices and not any(device.get("confirmation") for device in devices) and sys.stdin.isatty():
        plan = api.post("/runs/plan", order)
        for device, sentence in zip(devices, filter(None, plan["confirmations"]), strict=True):
            device["confirmation"] = ask_for_confirmation(plan, sentence)
    run = api.post("/runs", order) if run_id is None else api.put(path_of("runs", run_id), order)
    say(f"run {run['id']} is {run['state']}")
    if isinstance(order["workload"], dict) and (known := make_known(api, order["workload"])):
        say(f"  {known}")
    if ending.watch or ending.wait:
        follow(api, run["id"], ending)
    elif ending.how is Output.JSON:
        print_json(run)
    else:
        say(f"  watch it:  cliffwatch run watch {run['id']}", f"  stop it:   cliffwatch run stop {run['id']}")
        put(run["id"])


def follow(api: ApiClient, run_id: str, ending: Ending) -> None:
    """Follow a run to its end, compare it with earlier runs and write its result as JUnit XML if requested, and exit
    with the status of its verdict and of that comparison."""
    from cliffwatch.cli.progress import display_for, interrupted

    clock = SystemClock()
    patience_seconds = seconds_of("--give-up-after", ending.give_up_after)
    run: dict[str, Any] = {}
    try:
        display = display_for(clock) if ending.watch else None
        follower = Follower(api, run_id, clock, patience_seconds)
        if display is None:
            for update in follower.updates():
                run = update.run if isinstance(update, RunSeen) else run
        else:
            with display:
                for update in follower.updates():
                    run = update.run if isinstance(update, RunSeen) else run
                    display.show(update)
    except KeyboardInterrupt:
        interrupted(run_id)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    compared = None if ending.label is None else comparison_with(api, run_id, ending.label)
    if ending.how is Output.JSON:
        print_json(run if compared is None else run | {"comparison": compared})
    else:
        put(*verdict_lines(run), *([] if compared is None else comparison_lines(compared)))
    if ending.junit is not None:
        write_junit(api, run, compared, workload_name(run), target_name(run), ending.junit)
    raise typer.Exit(exit_status(run) if compared is None or is_not_worse(compared) else EXIT_BAD_VERDICT)


def workload_name(run: Any) -> str:
    """`name@version`; the name alone for a workload whose document came with the run request."""
    workload = run.get("workload") or {}
    version = workload.get("version")
    return show(workload.get("name")) + (f"@{version}" if version is not None else "")


def target_name(run: Any, plain: str = "") -> str:
    """Targets of a run as `--target` takes them, such as `directory:/data`, joined by ` + `; each without the prefix
    `plain`."""
    targets = [run.get("target") or {}, *(run.get("more_targets") or [])]
    return " + ".join(target_text(target).removeprefix(plain) for target in targets)


def verdict_lines(run: dict[str, Any]) -> list[str]:
    """The verdict with its reasons, and where the report is."""
    first, *rest = run.get("reasons") or ["no reasons were given"]
    lines = [f"verdict: {run.get('verdict')} – {first}", *(f"         {reason}" for reason in rest)]
    return [*lines, f"report:  {run.get('report') or 'none was made'}"]


def exit_status(run: dict[str, Any]) -> int:
    """0 for a pass, 1 for any other verdict."""
    return 0 if run.get("verdict") == VerdictName.PASS else EXIT_BAD_VERDICT


def _dry_run(api: ApiClient, order: dict[str, Any], run_id: str | None, how: Output) -> None:
    plan = api.post("/runs/plan", order, run_id=run_id)
    if how is Output.JSON:
        print_json(plan)
    else:
        print_plan(plan)
    if objections := standing_objections(plan):
        raise Problem(Code.TARGET_UNSAFE, "this run would be refused: " + "; ".join(o["message"] for o in objections))
