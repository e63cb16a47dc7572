"""`cliffwatch soak TARGET`: soak a directory, a drive, a broker or a database without a workload of one's own."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import parse_duration
from cliffwatch.cli import completion
from cliffwatch.cli.client import ApiClient
from cliffwatch.cli.following import ConfirmOption, DryRunOption, Ending, begin
from cliffwatch.cli.labels import LabelOption, labels_of
from cliffwatch.cli.output import Output, answer_to, print_json, put, say
from cliffwatch.cli.run_request import standing_objections, target_documents
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.soak_workload import Sizes, plan_lines, soak_workload


def soak(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A directory's path, device:SERIAL, broker:HOST:PORT[,…] or postgres://USER@HOST/DATABASE.",
            autocompletion=completion.targets,
        ),
    ],
    length: Annotated[
        str, typer.Option("--for", envvar="CLIFFWATCH_SOAK_FOR", help="How long the load lasts, such as 10m or 36h.")
    ] = "10m",
    save: Annotated[
        Path | None, typer.Option("--save", help="Write the workload that was chosen to this YAML file.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Start without asking.")] = False,
    confirm: ConfirmOption = None,
    dry_run: DryRunOption = False,
    label: LabelOption = None,
    output: OutputOption = None,
) -> None:
    """Soak a target with a workload chosen for it: print the plan, ask once, and show the run.

    It is light enough that the target and not the rate decides about latency: 20 MB a second, or 100 transactions.
    """
    session = session_of(context)
    how = session.how(output)
    order: dict[str, Any] = target_documents([target], confirm or [])
    if label:
        order["labels"] = labels_of("--label", label)
    seconds = _seconds(length)
    with session.client() as api:
        order["workload"], plan = _chosen(api, order, seconds)
        if save is not None:
            _save(order["workload"], save)
        if how is Output.JSON and dry_run:
            print_json(plan)
        else:
            put(*plan_lines(plan))
        if standing_objections(plan):
            raise Problem(Code.TARGET_UNSAFE, "the target is refused: the plan says what is in the way")
        if dry_run:
            return
        if not yes:
            _ask(target)
        begin(api, order, None, Ending(how, True, False, None, "10m", None), dry_run=False)


def _seconds(length: str) -> float:
    try:
        return parse_duration(length)
    except ValueError as error:
        raise Problem(Code.BAD_REQUEST, "the length is not valid", [FieldFault("--for", str(error))]) from error


def _chosen(api: ApiClient, order: dict[str, Any], seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """The workload for the target, and the run's plan with it. Raises Problem."""
    workload = soak_workload(order["target"], seconds, Sizes())
    plan = api.post("/runs/plan", order | {"workload": workload})
    fitted = soak_workload(order["target"], seconds, Sizes(plan.get("free_bytes"), plan.get("drive_bytes")))
    return fitted, plan if fitted == workload else api.post("/runs/plan", order | {"workload": fitted})


def _save(workload: dict[str, Any], path: Path) -> None:
    """Write a workload document to a new file. Raises Problem, also where the file exists."""
    try:
        with path.open("x", encoding="utf-8") as file:
            yaml.safe_dump(workload, file, sort_keys=False, allow_unicode=True)
    except OSError as error:
        remedy = "name another file" if isinstance(error, FileExistsError) else "name a file that can be written"
        fault = FieldFault("--save", f"{path}: {error.strerror}; {remedy}")
        raise Problem(Code.BAD_REQUEST, "the workload cannot be saved", [fault]) from error
    say(f"the workload was written to {path}")


def _ask(target: str) -> None:
    """Ask at the terminal whether to start; any other answer than yes, or none, ends the command. Raises Problem
    without a terminal."""
    if not sys.stdin.isatty():
        raise Problem(Code.BAD_REQUEST, f"nothing was started on {target}: there is no terminal to ask; give --yes")
    if answer_to(f"Start this soak on {target}? [y/N]").lower() not in ("y", "yes"):
        raise typer.Exit(1)
