"""`cliffwatch run …`: start, list, watch, stop and report runs."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli import bundles, completion, export, reports
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.junit import JunitOption, require_writable, write_junit
from cliffwatch.cli.live import Follower, RunSeen
from cliffwatch.cli.output import (
    Column,
    Output,
    plain,
    print_facts,
    print_json,
    print_rows,
    put,
    say,
    show,
    show_seconds,
    show_time,
)
from cliffwatch.cli.progress import display_for, interrupted, run_figures
from cliffwatch.cli.run_id import RunArgument, known_run
from cliffwatch.cli.run_request import (
    ask_for_confirmation,
    duration_overrides,
    make_known,
    print_plan,
    standing_objections,
    target_documents,
    workload_reference,
)
from cliffwatch.cli.session import OutputOption, seconds_of, session_of
from cliffwatch.cli.tree import CommandTree
from cliffwatch.model.phase import phase_words
from cliffwatch.model.run_state import RunState, VerdictName

app = CommandTree(help="Start, list, watch, stop and report runs.")

EXIT_BAD_VERDICT = 1
EXIT_INTERRUPTED = 130

GiveUpOption = Annotated[
    str, typer.Option("--give-up-after", help="How long to wait for a service that stopped answering.")
]

#: Findings of a run that are shown, the newest first.
_FINDINGS_SHOWN = 20
_NO_RUNS = "no runs; start one with `cliffwatch run start`"
_COLUMNS = (
    Column("RUN", plain("id")),
    Column("WORKLOAD", lambda run: workload_name(run)),
    Column("TARGET", lambda run: target_name(run)),
    Column("STATE", lambda run: show(run.get("state")) + (", imported" if run.get("imported_at") else "")),
    Column("PHASE", lambda run: show(_phase(run))),
    Column("VERDICT", plain("verdict")),
    Column("ELAPSED", lambda run: show_seconds(run.get("elapsed_seconds"))),
    Column("CREATED", lambda run: show_time(run.get("created_at"))),
)


def _phase(run: Mapping[str, Any]) -> str | None:
    """The phase that a run is in; none once it is over."""
    phase = run.get("phase")
    return None if phase is None or run.get("state") == RunState.FINISHED else phase_words(phase)


@app.command("start")
def start(
    context: typer.Context,
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD",
            help="A name, name@version, or the path of a YAML file.",
            autocompletion=completion.workloads_and_files,
        ),
    ],
    target: Annotated[
        list[str],
        typer.Option(
            "--target",
            help="directory:PATH, device:SERIAL (or WWN, or backing file), broker:HOST:PORT[,…], synthetic:NAME. "
            "Of several, each is loaded by a part of its own.",
            autocompletion=completion.targets,
        ),
    ],
    id: Annotated[  # noqa: A002  # the flag's name
        str | None, typer.Option("--id", help="Id of the run; repeating the request with it starts no second run.")
    ] = None,
    window: Annotated[str | None, typer.Option("--window", help="Length of a window, such as 10s.")] = None,
    warm_up: Annotated[str | None, typer.Option("--warm-up", help="Length of the warm-up, such as 10m.")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="Length of the baseline, such as 1h.")] = None,
    soak: Annotated[str | None, typer.Option("--soak", help="Length of the soak, such as 36h.")] = None,
    cool_down: Annotated[str | None, typer.Option("--cool-down", help="Length of the cool-down, such as 1m.")] = None,
    confirm: Annotated[
        list[str] | None,
        typer.Option(
            "--confirm", help="The confirmation that --dry-run prints for a device; of several, in their order."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be written where, and start nothing.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show progress until the run is over.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait without output until the run is over.")] = False,
    junit: JunitOption = None,
    give_up_after: GiveUpOption = "10m",
    output: OutputOption = None,
) -> None:
    """Start a run, or print what it would do. With --watch or --wait the exit status is the verdict's.

    A workload from a file is saved under its name, unless another workload has that name.
    """
    session = session_of(context)
    how = session.how(output)
    if junit is not None:
        if not (watch or wait):
            raise Problem(Code.BAD_REQUEST, "--junit: there is no result before the run is over; give --wait too")
        require_writable(junit)
    order: dict[str, Any] = {
        "workload": workload_reference(workload),
        **target_documents(target, confirm or []),
        "durations": duration_overrides(
            window=window, warm_up=warm_up, baseline=baseline, soak=soak, cool_down=cool_down
        ),
    }
    with session.client() as api:
        if dry_run:
            _dry_run(api, order, id, how)
            return
        devices = [each for each in (order["target"], *order.get("more_targets", ())) if each["kind"] == "device"]
        if devices and not confirm and sys.stdin.isatty():
            plan = api.post("/runs/plan", order)
            for device, sentence in zip(devices, filter(None, plan["confirmations"]), strict=True):
                device["confirmation"] = ask_for_confirmation(plan, sentence)
        run = api.post("/runs", order) if id is None else api.put(path_of("runs", id), order)
        say(f"run {run['id']} is {run['state']}")
        if isinstance(order["workload"], dict) and (known := make_known(api, order["workload"])):
            say(f"  {known}")
        if watch or wait:
            _follow(api, run["id"], give_up_after, how, quietly=not watch, junit=junit)
        elif how is Output.JSON:
            print_json(run)
        else:
            say(f"  watch it:  cliffwatch run watch {run['id']}", f"  stop it:   cliffwatch run stop {run['id']}")


@app.command("list")
def list_runs(
    context: typer.Context,
    state: Annotated[
        RunState | None, typer.Option("--state", help="Only runs in this state.", show_choices=True)
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", help="Only runs of this workload.", autocompletion=completion.workloads)
    ] = None,
    verdict: Annotated[
        VerdictName | None, typer.Option("--verdict", help="Only runs with this verdict.", show_choices=True)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of runs, the newest first.")] = 50,
    output: OutputOption = None,
) -> None:
    """List runs, the newest first."""
    session = session_of(context)
    with session.client() as api:
        runs = api.list_all("/runs", limit, state=state, workload=workload, verdict=verdict)
    is_narrowed = any(given is not None for given in (state, workload, verdict))
    none = "no run matches; leave --state, --workload and --verdict out to see all" if is_narrowed else _NO_RUNS
    print_rows(runs, _COLUMNS, session.how(output), none)


@app.command("show")
def show_run(context: typer.Context, run: RunArgument, output: OutputOption = None) -> None:
    """Show one run."""
    session = session_of(context)
    with session.client() as api:
        run = known_run(api, run)
        body = api.get(path_of("runs", run))
        findings = api.list_all(path_of("runs", run, "findings"), _FINDINGS_SHOWN)
    said = [show(finding["detail"].get("summary")) for finding in findings]
    print_facts(body, _facts_of(body) | {"findings": "\n".join(said) or "none"}, session.how(output))


@app.command("watch")
def watch_run(
    context: typer.Context,
    run: RunArgument,
    junit: JunitOption = None,
    give_up_after: GiveUpOption = "10m",
    output: OutputOption = None,
) -> None:
    """Show a run's progress until it is over. The exit status is the verdict's; Ctrl-C leaves the run running."""
    session = session_of(context)
    if junit is not None:
        require_writable(junit)
    with session.client() as api:
        _follow(api, known_run(api, run), give_up_after, session.how(output), quietly=False, junit=junit)


@app.command("stop")
def stop_run(
    context: typer.Context,
    run: RunArgument,
    force: Annotated[bool, typer.Option("--force", help="Kill the engine before its window ends.")] = False,
    output: OutputOption = None,
) -> None:
    """Ask a run to stop: the engine finishes its window, and the report is made."""
    session = session_of(context)
    with session.client() as api:
        run = known_run(api, run)
        body = api.post(path_of("runs", run, "stop"), {"force": force})
    say(f"run {run} was asked to stop; `cliffwatch run watch {run}` shows when it has")
    if session.how(output) is Output.JSON:
        print_json(body)


@app.command("mark")
def mark_run(
    context: typer.Context,
    run: RunArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What was done, such as 'pulled a drive'.")],
    start: Annotated[
        str,
        typer.Option("--from", envvar="CLIFFWATCH_RUN_MARK_FROM", help="When it began, such as 2026-11-26T12:00:00Z."),
    ],
    to: Annotated[str, typer.Option("--to", help="When it was over.")],
    output: OutputOption = None,
) -> None:
    """Mark a span in which a run was disturbed on purpose: its report draws it, and leaves it out of the judgement."""
    session = session_of(context)
    with session.client() as api:
        run = known_run(api, run)
        body = api.post(path_of("runs", run, "marks"), {"text": text, "start": start, "end": to})
    say(f"run {run} is marked; a report that is made from now on has it: `cliffwatch run report {run} --anew`")
    if session.how(output) is Output.JSON:
        print_json(body)


reports.register(app)
export.register(app)
bundles.register(app)


def workload_name(run: Any) -> str:
    """`name@version`; the name alone for a workload that came with the order."""
    workload = run.get("workload") or {}
    version = workload.get("version")
    return show(workload.get("name")) + (f"@{version}" if version is not None else "")


def target_name(run: Any) -> str:
    """`kind:what`, as `--target` takes it; of several, each."""
    return " + ".join(_target_text(target) for target in [run.get("target") or {}, *(run.get("more_targets") or [])])


def _target_text(target: Any) -> str:
    if isinstance(target, str):
        return target
    if "bootstrap_servers" in target:
        return f"{target.get('kind')}:{','.join(target['bootstrap_servers'])}"
    what = target.get("path") or target.get("identity") or target.get("name")
    return f"{target.get('kind')}:{what}"


def verdict_lines(run: dict[str, Any]) -> list[str]:
    """The verdict with its reasons, and where the report is."""
    first, *rest = run.get("reasons") or ["no reasons were given"]
    lines = [f"verdict: {run.get('verdict')} – {first}", *(f"         {reason}" for reason in rest)]
    return [*lines, f"report:  {run.get('report') or 'none was made'}"]


def exit_status(run: dict[str, Any]) -> int:
    """0 for a pass, 1 for any other verdict."""
    return 0 if run.get("verdict") == VerdictName.PASS else EXIT_BAD_VERDICT


def _facts_of(run: dict[str, Any]) -> dict[str, str]:
    return {
        "run": show(run.get("id")),
        "workload": workload_name(run),
        "engine": show(run.get("engine")),
        "target": target_name(run),
        "state": f"{show(run.get('state'))} since {show_time(run.get('since'))}",
        **({"waits for": ", ".join(run["waits_for"])} if run.get("waits_for") else {}),
        "phase": show(_phase(run)),
        "verdict": show(run.get("verdict")),
        "reasons": "\n".join(run.get("reasons") or []),
        "created": show_time(run.get("created_at")),
        **({"imported": show_time(run["imported_at"])} if run.get("imported_at") else {}),
        "started": show_time(run.get("started_at")),
        "finished": show_time(run.get("finished_at")),
        "elapsed": f"{show_seconds(run.get('elapsed_seconds'))} of {show_seconds(run.get('planned_seconds'))}",
        "windows": show(run.get("windows")),
        "figures": run_figures(run["figures"], run["engine"]) if run.get("figures") else show(None),
        "journal": show(run.get("directory")),
        "report": show(run.get("report")),
    }


def _dry_run(api: ApiClient, order: dict[str, Any], run_id: str | None, how: Output) -> None:
    plan = api.post("/runs/plan", order, run_id=run_id)
    if how is Output.JSON:
        print_json(plan)
    else:
        print_plan(plan)
    if objections := standing_objections(plan):
        raise Problem(Code.TARGET_UNSAFE, "this run would be refused: " + "; ".join(o["message"] for o in objections))


def _follow(api: ApiClient, run_id: str, give_up_after: str, how: Output, *, quietly: bool, junit: Path | None) -> None:
    """Follow a run to its end, write its result as JUnit XML where asked to, and exit with its verdict's status."""
    clock = SystemClock()
    patience_seconds = seconds_of("--give-up-after", give_up_after)
    run: dict[str, Any] = {}
    try:
        display = None if quietly else display_for(clock)
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
    if how is Output.JSON:
        print_json(run)
    else:
        put(*verdict_lines(run))
    if junit is not None:
        write_junit(api, run, workload_name(run), target_name(run), junit)
    raise typer.Exit(exit_status(run))
