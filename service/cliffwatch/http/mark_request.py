"""Request body that marks a span of a run, for the API and for pages."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from cliffwatch.analysis.marks import Mark
from cliffwatch.base.storable import check_text
from cliffwatch.model.document import Strict
from cliffwatch.model.trigger import Moment


class MarkRequest(Strict):
    """A disturbance of the run, such as `pulled a drive`, with its start and end. Reports made afterwards show it.

    `reason` says why it is marked only now; it is required once the load is over.
    """

    text: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_text)]
    start: Moment
    end: Moment
    reason: Annotated[str, Field(max_length=200), AfterValidator(check_text)] = ""

    @model_validator(mode="after")
    def _ends_after_its_start(self) -> Self:
        if self.end <= self.start:
            raise ValueError("`end`: it is not after `start`; give a later time")
        return self

    def mark(self) -> Mark:
        return Mark(self.start.timestamp(), self.end.timestamp(), self.text, reason=self.reason.strip())
