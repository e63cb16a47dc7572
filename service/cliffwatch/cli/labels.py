"""Labels on the command line: those that a run gets, and those by which runs are chosen."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.cli.output import show
from cliffwatch.model.annotations import Labels, parse_choice, parse_label

_LABELS: TypeAdapter[dict[str, str]] = TypeAdapter(Labels)
LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="A label, such as release=26.1; may be given again."),
]


def labels_of(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """Parse labels such as `release=26.1`. Raises Problem(bad_request) that names the flag."""
    try:
        pairs = list(map(parse_label, texts))
        _require_different(name for name, _ in pairs)
        return _LABELS.validate_python(dict(pairs))
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "a label is not valid", faults_of(error, flag)) from error
    except ValueError as error:
        raise Problem(Code.BAD_REQUEST, "a label is not valid", [FieldFault(flag, str(error))]) from error


def check_choices(flag: str, texts: Sequence[str]) -> None:
    """Check labels by which runs are chosen, such as `release=26.1` or `release`. Raises Problem(bad_request)."""
    try:
        _require_different(name for name, _ in map(parse_choice, texts))
    except ValueError as error:
        raise Problem(Code.BAD_REQUEST, "a label is not valid", [FieldFault(flag, str(error))]) from error


def labels_text(run: Mapping[str, Any]) -> str:
    """Labels of a run or of a schedule as text, after `pinned` if the run is pinned."""
    labels = [f"{name}={value}" for name, value in (run.get("labels") or {}).items()]
    return ", ".join([*(["pinned"] if run.get("pinned") else []), *labels]) or show(None)


def _require_different(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{name!r} is given twice; give it once")
        seen.add(name)
