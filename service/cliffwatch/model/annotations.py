"""Annotations of a run, which users add and change at any time: labels, a note, and whether it is pinned."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import NAME_PATTERN
from cliffwatch.base.storable import check_text
from cliffwatch.model.document import Name, Strict

LABELS_LIMIT = 32
_NO_LABEL = "{!r} is not a label; write name=value, such as release=26.1"
_NO_CHOICE = f"{_NO_LABEL}, or a name alone for any value of it"
#: Longest note, and longest value of a label, in characters.
NOTE_LIMIT, VALUE_LIMIT = 4000, 100


def _check_value(value: str) -> str:
    if not value.isprintable():
        raise ValueError("a label's value has letters, digits, signs and spaces, and no line breaks")
    if value != value.strip():
        raise ValueError("a label's value begins and ends with no space; leave it out")
    return value


LabelValue = Annotated[str, Field(min_length=1, max_length=VALUE_LIMIT), AfterValidator(_check_value)]
#: Pattern of a choice of runs by a label: `release=26.1`, or `release` for any value of it.
LABEL_CHOICE_PATTERN = NAME_PATTERN.removesuffix("$") + rf"(=.{{1,{VALUE_LIMIT}}})?$"


def _check_choice(text: object) -> object:
    """Check a choice before pydantic checks its pattern, since pydantic's message is the pattern itself."""
    if isinstance(text, str) and not re.fullmatch(LABEL_CHOICE_PATTERN, text):
        raise ValueError(_NO_CHOICE.format(text[:60]))
    return text


#: A second label on the line of a first, as lists print them: `release=26.1, kernel=6.1`.
_ANOTHER = re.compile(r",\s*[\w.-]+=")
LabelChoice = Annotated[str, Field(pattern=LABEL_CHOICE_PATTERN), BeforeValidator(_check_choice)]
Labels = Annotated[dict[Name, LabelValue], Field(max_length=LABELS_LIMIT)]
Note = Annotated[str, Field(max_length=NOTE_LIMIT), BeforeValidator(check_text)]


class Annotations(Strict):
    """Labels by name, a note in plain text, and `pinned`: a run that is never deleted."""

    labels: Labels = Field(default={})
    note: Note = ""
    pinned: bool = False


class AnnotationsChange(Strict):
    """Changes of a run's annotations; fields that are left out stay. A label that is null is removed."""

    labels: Annotated[dict[Name, LabelValue | None], Field(max_length=2 * LABELS_LIMIT)] = Field(default={})
    note: Note | None = None
    pinned: bool | None = None

    def applied_to(self, before: Annotations) -> Annotations:
        """The annotations after this change. Raises Problem(bad_request) for more labels than a run may have."""
        merged: dict[str, str | None] = {**before.labels, **self.labels}
        labels = {name: value for name, value in merged.items() if value is not None}
        if len(labels) > LABELS_LIMIT:
            fault = FieldFault("labels", f"a run takes {LABELS_LIMIT}, and these would be {len(labels)}; remove some")
            raise Problem(Code.BAD_REQUEST, "too many labels", [fault])
        given: dict[str, Any] = {"note": self.note, "pinned": self.pinned}
        changed = {name: value for name, value in given.items() if value is not None}
        return before.model_copy(update={"labels": labels, **changed})


def parse_labels(lines: str) -> dict[str, str]:
    """Labels, one on each line; blank lines are left out. Raises ValueError."""
    labels: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, value = parse_label(line)
        if name in labels:
            raise ValueError(f"{name!r} is given twice; give it once")
        if _ANOTHER.search(value):
            raise ValueError(f"{line!r} holds more than one label; write each on a line of its own")
        labels[name] = value
    return labels


def parse_label(text: str) -> tuple[str, str]:
    """Name and value of `name=value`. Raises ValueError."""
    name, separator, value = text.partition("=")
    if not (separator and name and value):
        raise ValueError(_NO_LABEL.format(text))
    return name, value


def parse_choice(text: str) -> tuple[str, str | None]:
    """Name and value of a choice of runs by a label; None for any value. Raises ValueError."""
    _check_choice(text)
    name, separator, value = text.partition("=")
    return name, value if separator else None
