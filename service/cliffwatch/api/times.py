"""Times on the API: RFC 3339 in UTC, to the millisecond; seconds since the epoch everywhere else."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema


def format_time(seconds: float) -> str:
    """1790000000.25 → `2026-09-21T14:13:20.250Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


#: A field that holds seconds since the epoch and is shown as RFC 3339.
Time = Annotated[
    float,
    PlainSerializer(format_time, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
