"""`cliffwatch run …`: start, list, watch, stop and report runs."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli import bundles, completion, export, library, reports
from cliffwatch.cli.client import named_by_flag, path_of
from cliffwatch.cli.comparison import NotWorseOption
from cliffwatch.cli.following import (
    ConfirmOption,
    DryRunOption,
    Ending,
    GiveUpOption,
    WaitOption,
    WatchOption,
    begin,
    follow,
    target_name,
    workload_name,
)
from cliffwatch.cli.junit import JunitOption
from cliffwatch.cli.labels import LabelOption, check_choices, labels_of, labels_text
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
from cliffwatch.cli.run_id import RunArgument, known_run
from cliffwatch.cli.run_request import (
    checked_id,
    duration_overrides,
    target_documents,
    workload_reference,
)
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree
from cliffwatch.cli.watched_drives import DrivesOption, PrometheusOption, drives_document
from cliffwatch.model.phase import phase_words
from cliffwatch.model.run_state import RunState, VerdictName

app = CommandTree(help="Start, list, watch, stop and report runs.")

#: Findings of a run that are shown, the newest first.
_FINDINGS_SHOWN = 20
_NO_RUNS = "no runs; start one with `cliffwatch run start`"
_COLUMNS = (
    Column("RUN", plain("id")),
    Column("WORKLOAD", lambda run: workload_name(run)),
    Column("TARGET", lambda run: target_name(run, plain="directory:")),
    Column("STATE", lambda run: _state(run)),
    Column("ELAPSED", lambda run: show_seconds(run.get("elapsed_seconds"))),
    Column("LABELS", lambda run: labels_text(run)),
)


def _state(run: Mapping[str, Any]) -> str:
    """State of a run with its phase, or once it is over its verdict: `running, soak`; `pass`."""
    words = (run.get("verdict") or run.get("state"), _phase(run), "imported" if run.get("imported_at") else None)
    return ", ".join(filter(None, words))


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
            help="directory:PATH, device:SERIAL (or WWN, or backing file), broker:HOST:PORT[,…], "
            "postgres://USER@HOST/DATABASE, observed:NAME, synthetic:NAME. Of several, each is "
            "loaded by a part of its own; NAME=TARGET names the part.",
            autocompletion=completion.targets,
        ),
    ],
    drives: DrivesOption = None,
    prometheus: PrometheusOption = None,
    id: Annotated[  # noqa: A002  # the flag's name
        str | None, typer.Option("--id", help="Id of the run; repeating the request with it starts no second run.")
    ] = None,
    window: Annotated[str | None, typer.Option("--window", help="Length of a window, such as 10s.")] = None,
    warm_up: Annotated[str | None, typer.Option("--warm-up", help="Length of the warm-up, such as 10m.")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="Length of the baseline, such as 1h.")] = None,
    soak: Annotated[str | None, typer.Option("--soak", help="Length of the soak, such as 36h.")] = None,
    cool_down: Annotated[str | None, typer.Option("--cool-down", help="Length of the cool-down, such as 1m.")] = None,
    confirm: ConfirmOption = None,
    dry_run: DryRunOption = False,
    label: LabelOption = None,
    watch: WatchOption = False,
    wait: WaitOption = False,
    junit: JunitOption = None,
    not_worse_than: NotWorseOption = None,
    give_up_after: GiveUpOption = "10m",
    output: OutputOption = None,
) -> None:
    """Start a run, or print what it would do. With --watch or --wait the exit status is the verdict's.

    A workload from a file is saved under its name, unless another workload has that name.
    """
    run_id = None if id is None else checked_id(id)
    order: dict[str, Any] = {
        "workload": workload_reference(workload),
        **target_documents(target, confirm or []),
        "durations": duration_overrides(
            window=window, warm_up=warm_up, baseline=baseline, soak=soak, cool_down=cool_down
        ),
        **({"labels": labels_of("--label", label)} if label else {}),
        **drives_document(drives, prometheus),
    }
    session = session_of(context)
    ending = Ending(session.how(output), watch, wait, junit, give_up_after, not_worse_than)
    with session.client() as api:
        begin(api, order, run_id, ending, dry_run=dry_run)


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
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="NAME[=VALUE]", help="Only runs with this label; of several, with all of them."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of runs, the newest first.")] = 50,
    output: OutputOption = None,
) -> None:
    """List runs, the newest first."""
    session = session_of(context)
    check_choices("--label", label or ())
    with session.client() as api:
        runs = api.list_all("/runs", limit, state=state, workload=workload, verdict=verdict, label=label)
    is_narrowed = any(given is not None for given in (state, workload, verdict, label))
    none = "no run matches; without --state, --workload, --verdict and --label it is all of them"
    print_rows(runs, _COLUMNS, session.how(output), none if is_narrowed else _NO_RUNS, shortened="TARGET")


@app.command("show")
def show_run(
    context: typer.Context,
    run: RunArgument,
    format: Annotated[  # noqa: A002  # the flag's name
        str, typer.Option("--format", help="text, or markdown: the result for a ticket or a pull request.")
    ] = "text",
    output: OutputOption = None,
) -> None:
    """Show one run."""
    session = session_of(context)
    if format not in ("text", "markdown"):
        raise Problem(Code.BAD_REQUEST, f"--format: {format!r} is not a format; formats: text, markdown")
    with session.client() as api:
        run = known_run(api, run)
        if format == "markdown":
            put(reports.as_markdown(api, run))
            return
        body = api.get(path_of("runs", run))
        findings = api.list_all(path_of("runs", run, "findings"), _FINDINGS_SHOWN)
    said = [show(finding["detail"].get("summary")) for finding in findings]
    print_facts(body, _facts_of(body) | {"findings": "\n".join(said) or "none"}, session.how(output))


@app.command("watch")
def watch_run(
    context: typer.Context,
    run: RunArgument,
    junit: JunitOption = None,
    not_worse_than: NotWorseOption = None,
    give_up_after: GiveUpOption = "10m",
    output: OutputOption = None,
) -> None:
    """Show a run's progress until it is over. The exit status is the verdict's; Ctrl-C leaves the run running."""
    session = session_of(context)
    ending = Ending(session.how(output), True, False, junit, give_up_after, not_worse_than)
    ending.check()
    with session.client() as api:
        follow(api, known_run(api, run), ending)


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
        typer.Option(
            "--from",
            envvar="CLIFFWATCH_RUN_MARK_FROM",
            help="When it began: 1h29m of the load, or 2026-11-26T12:00:00Z.",
        ),
    ],
    to: Annotated[str, typer.Option("--to", help="When it was over.")],
    reason: Annotated[
        str, typer.Option("--reason", help="Why it is marked only now; needed once the load is over.")
    ] = "",
    output: OutputOption = None,
) -> None:
    """Mark a span in which a run was disturbed on purpose: its report draws it, and leaves it out of the judgement."""
    session = session_of(context)
    with session.client() as api:
        run = known_run(api, run)
        with named_by_flag({"text": "TEXT", "start": "--from", "end": "--to", "reason": "--reason"}):
            body = api.post(path_of("runs", run, "marks"), {"text": text, "start": start, "end": to, "reason": reason})
    say(f"run {run} is marked; a report that is made from now on has it: `cliffwatch run report {run} --anew`")
    if session.how(output) is Output.JSON:
        print_json(body)


reports.register(app)
export.register(app)
bundles.register(app)
library.register(app)


def _facts_of(run: dict[str, Any]) -> dict[str, str]:
    from cliffwatch.cli.progress import run_figures, window_figures

    figures = show(None)
    if run.get("figures"):
        figures = run_figures(run["figures"], run["engine"])
    elif run.get("last_window"):
        figures = f"last window: {window_figures(run['last_window'], run['engine'])}"
    return {
        "run": show(run.get("id")),
        "workload": workload_name(run),
        "engine": show(run.get("engine")),
        "target": target_name(run),
        "state": f"{show(run.get('state'))} since {show_time(run.get('since'))}",
        **({"waits for": ", ".join(run["waits_for"])} if run.get("waits_for") else {}),
        "phase": show(_phase(run)),
        "verdict": show(run.get("verdict")),
        **({"so far": run["standing"]} if run.get("standing") else {}),
        "reasons": "\n".join(run.get("reasons") or []),
        "created": show_time(run.get("created_at")),
        **({"imported": show_time(run["imported_at"])} if run.get("imported_at") else {}),
        "started": show_time(run.get("started_at")),
        "finished": show_time(run.get("finished_at")),
        "elapsed": f"{show_seconds(run.get('elapsed_seconds'))} of {show_seconds(run.get('planned_seconds'))}",
        "windows": show(run.get("windows")),
        "figures": figures,
        "labels": labels_text(run),
        **({"note": run["note"]} if run.get("note") else {}),
        "journal": show(run.get("directory")),
        "report": show(run.get("report")),
    }
