"""Shared by the types of report.json: constrained numbers and texts, and a configuration without unknown fields."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, with_config

#: RFC 3339 in UTC, to the millisecond.
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
CountFromOne = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]


def constrained(schema: dict[str, Any] | None = None) -> ConfigDict:
    """Pydantic configuration: unknown fields are refused, docstrings below fields describe them, `schema` is added."""
    return ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_extra=schema)


#: Decorator of a type with no JSON Schema besides that of its fields.
document = with_config(constrained())
