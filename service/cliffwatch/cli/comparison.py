"""`--not-worse-than`: compare a run with earlier runs that have a label, for CI."""

from typing import Annotated, Any

import typer

from cliffwatch.analysis.comparison import Outcome
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.labels import check_choices
from cliffwatch.cli.output import say

FLAG = "--not-worse-than"
_PREFIX = "label:"
NotWorseOption = Annotated[
    str | None,
    typer.Option(
        FLAG,
        metavar="label:NAME[=VALUE]",
        help="Compare the run with earlier runs of the same load that have this label; exit status 1 unless it is not "
        "worse.",
    ),
]


def label_of(text: str) -> str:
    """The label in `label:release=26.1` or `label:release`. Raises Problem(bad_request)."""
    if not text.startswith(_PREFIX):
        fault = FieldFault(FLAG, f"{text!r} names no label; write {_PREFIX}NAME or {_PREFIX}NAME=VALUE")
        raise Problem(Code.BAD_REQUEST, "no runs to compare with are named", [fault])
    label = text.removeprefix(_PREFIX)
    check_choices(FLAG, [label])
    return label


def require_comparable(api: ApiClient, order: dict[str, Any], label: str) -> None:
    """Check that there are runs to compare a run with, before it is started, and say where they will not be conclusive.
    Raises Problem(bad_request)."""
    found = api.post("/runs/comparable", order, label=label)
    if found["objection"] is None:
        if found["doubt"] is not None:
            say(f"note: {found['doubt']}")
        return
    left_out = "".join(f"; run {each['run']} has it, and {each['reason']}" for each in found["left_out"][:5])
    remedy = f"label some: `cliffwatch run label RUN {label if '=' in label else f'{label}=VALUE'}`"
    fault = FieldFault(FLAG, f"{found['objection']}{left_out}; {remedy}")
    raise Problem(Code.BAD_REQUEST, "there are too few runs to compare with", [fault])


def comparison_with(api: ApiClient, run_id: str, label: str) -> dict[str, Any]:
    """The comparison of a finished run, as the API has it."""
    compared: dict[str, Any] = api.get(path_of("runs", run_id, "comparison"), label=label)
    return compared


def comparison_lines(compared: dict[str, Any]) -> list[str]:
    """The outcome, each figure, and the runs that were compared with or left out."""
    lines = [f"compared: {compared['summary']}"]
    lines += [f"          {figure['summary']}" for figure in compared["figures"]]
    if compared["runs"]:
        lines.append(f"          with {', '.join(compared['runs'])}")
    return lines + [f"          not with {each['run']}: {each['reason']}" for each in compared["left_out"]]


def is_not_worse(compared: dict[str, Any]) -> bool:
    return bool(compared["outcome"] == Outcome.NOT_WORSE)
