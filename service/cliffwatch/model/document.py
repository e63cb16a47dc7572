"""Base model of documents from users: an unknown key is an error, and names have one form."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cliffwatch.base.faults import NAME_PATTERN

Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class Strict(BaseModel):
    """A document in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
