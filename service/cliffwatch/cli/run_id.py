"""Find the run that the user names: by its id, by a prefix of it, or as `last`.

An id that exists always means its own run, even if it is also a prefix of another id.
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
#: Maximum number of matching runs that the error about an ambiguous prefix names.
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
    """Id of the service's run that `text` names: an id, a prefix or `last`. Raises Problem."""
    try:
        return str(api.get(path_of("runs", text))["id"])
    except Problem as problem:
        # Text that cannot be an id, such as one in capitals, is refused as a bad request.
        if problem.code not in (Code.NOT_FOUND, Code.BAD_REQUEST):
            raise
    return match_run(text, [str(run["id"]) for run in api.list_all("/runs", 1 if text == LAST else None)])


def local_run(runs_directory: Path, text: str) -> Path:
    """Journal directory of the run that `text` names below `runs_directory`. Raises Problem."""
    journals = {path.parent.name: path for path in runs_directory.glob(f"*/{files.ORDER}")}
    if text not in journals:
        ids = sorted(journals, key=lambda run: _created(journals[run]), reverse=True)
        text = match_run(text, ids, f" in {runs_directory}, and no path of this name here")
    return journals[text].parent


def match_run(text: str, ids: Sequence[str], where: str = "") -> str:
    """The one of `ids` (newest first) that equals or begins with `text`; the first for `last`. Raises Problem."""
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
    # A mistyped prefix resembles the prefixes of ids, and not whole ids, which are much longer.
    hint = did_you_mean(text, [*ids, LAST]) or _like_a_beginning(text, ids)
    hint = hint or "; `cliffwatch run list` shows those there are, and `last` is the newest"
    raise Problem(Code.NOT_FOUND, f"there is no run {text!r}{where}{hint}")


def _like_a_beginning(text: str, ids: Sequence[str]) -> str:
    """Hint for a mistyped prefix of a run id. It suggests a whole id, since several runs may share a prefix."""
    newest = {run[: len(text)]: run for run in reversed(ids)}
    hint = did_you_mean(text, newest)
    return next((hint.replace(repr(start), repr(run)) for start, run in newest.items() if repr(start) in hint), hint)


def _created(order: Path) -> float:
    """Time of a run's request, from its order.json; 0 if that cannot be read, so that the run counts as the oldest."""
    try:
        return float(json.loads(order.read_text(encoding="utf-8"))["created_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
