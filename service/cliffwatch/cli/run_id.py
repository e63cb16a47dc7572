"""The run that the user names: by its id, by the beginning of it, or as the `last` one.

An id that exists always means its own run, also where it is the beginning of another's.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.cli import completion
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.journal import files

LAST = "last"
#: As many of the runs that a beginning fits are named.
_NAMED = 5

RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's id, the beginning of one, or `last`; `cliffwatch run list` shows them.",
        autocompletion=completion.runs,
    ),
]
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN|DIRECTORY",
        help="A run of this machine (its id, the beginning of it, or `last`), or a journal.",
        autocompletion=completion.runs,
    ),
]


def known_run(api: ApiClient, text: str) -> str:
    """The id of the run that the service knows by `text`. Raises Problem."""
    try:
        return str(api.get(path_of("runs", text))["id"])
    except Problem as problem:
        # What cannot be an id at all, such as one in capitals, is refused as a bad request.
        if problem.code not in (Code.NOT_FOUND, Code.BAD_REQUEST):
            raise
    return match_run(text, [str(run["id"]) for run in api.list_all("/runs", 1 if text == LAST else None)])


def local_run(runs_directory: Path, text: str) -> Path:
    """The journal of the run that `text` names in this directory. Raises Problem."""
    journals = {path.parent.name: path for path in runs_directory.glob(f"*/{files.ORDER}")}
    if text not in journals:
        ids = sorted(journals, key=lambda run: _created(journals[run]), reverse=True)
        text = match_run(text, ids, f" in {runs_directory}, and no path of this name here")
    return journals[text].parent


def match_run(text: str, ids: Sequence[str], where: str = "") -> str:
    """The one of `ids` (newest first) that `text` is, or is the beginning of. Raises Problem."""
    if text in ids:
        return text
    if text == LAST:
        if not ids:
            raise Problem(Code.NOT_FOUND, f"there is no run{where} yet; start one with `cliffwatch run start`")
        return ids[0]
    found = [run for run in ids if text and run.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        named = ", ".join(found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
        detail = f"run {text!r} could be any of {len(found)} runs: {named}; use a longer prefix of the id"
        raise Problem(Code.BAD_REQUEST, detail)
    # A beginning that was mistyped is like the beginnings of ids, and not like ids, which are much longer.
    hint = did_you_mean(text, [*ids, LAST]) or _like_a_beginning(text, ids)
    hint = hint or "; `cliffwatch run list` shows those there are, and `last` is the newest"
    raise Problem(Code.NOT_FOUND, f"there is no run {text!r}{where}{hint}")


def _like_a_beginning(text: str, ids: Sequence[str]) -> str:
    """The hint names the run, since a beginning of an id may be that of several."""
    newest = {run[: len(text)]: run for run in reversed(ids)}
    hint = did_you_mean(text, newest)
    return next((hint.replace(repr(start), repr(run)) for start, run in newest.items() if repr(start) in hint), hint)


def _created(order: Path) -> float:
    """When a run was asked for; one whose order cannot be read is the oldest."""
    try:
        return float(json.loads(order.read_text(encoding="utf-8"))["created_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
