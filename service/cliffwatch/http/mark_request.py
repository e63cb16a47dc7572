"""Request body that marks a span of a run, for the API and for pages."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from cliffwatch.analysis.marks import Mark
from cliffwatch.base.storable import check_text
from cliffwatch.base.units import parse_duration
from cliffwatch.model.document import Strict
from cliffwatch.model.trigger import Moment

_MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)
_CLOCK = re.compile(r"([0-9]{1,5}):([0-5][0-9]):([0-5][0-9])")


def _seconds(text: str, load_start: float) -> float:
    """Seconds since the epoch of a time with its zone, or of a time since `load_start`: `1h29m`, or `1:29:00` as pages
    and reports show it. Raises ValueError with what would be right."""
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = map(int, clock.groups())
        return load_start + hours * 3600 + minutes * 60 + seconds
    try:
        return load_start + parse_duration(text)
    except ValueError:
        pass
    try:
        return _MOMENT.validate_python(text).timestamp()
    except ValidationError as error:
        right = "a time with its zone, such as 2026-11-26T12:00:00Z, or a time since the load began, such as 1h29m"
        raise ValueError(f"{text[:40]!r} is neither; write {right}") from error


def _check(text: str) -> str:
    _seconds(text, 0.0)
    return text


class MarkRequest(Strict):
    """A disturbance of the run, such as `pulled a drive`, with its start and end: each a time with its zone, or a time
    since the load began, such as `1h29m` or `1:29:00`. Reports made afterwards show it.

    `reason` says why it is marked only now; it is required once the load is over.
    """

    text: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_text)]
    start: Annotated[str, Field(max_length=100), AfterValidator(_check)]
    end: Annotated[str, Field(max_length=100), AfterValidator(_check)]
    reason: Annotated[str, Field(max_length=200), AfterValidator(check_text)] = ""

    def mark(self, load_start: float) -> Mark:
        """The mark, in a run whose load began at `load_start` (seconds since the epoch)."""
        start, end = (_seconds(text, load_start) for text in (self.start, self.end))
        return Mark(start, end, self.text, reason=self.reason.strip())
