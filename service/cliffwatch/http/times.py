"""Times on the API: RFC 3339 in UTC, to the millisecond; seconds since the epoch everywhere else."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema

#: 0001-01-01 and 9999-12-31, the first and the last day that can be written; NaN lies outside.
FIRST_MOMENT, LAST_MOMENT = -62_135_596_800.0, 253_402_300_799.0


def moment_of(seconds: float) -> datetime:
    """Convert seconds since the epoch to a UTC time. An impossible value, from a damaged row, becomes the first or the
    last time that can be written, so that its list can still be shown."""
    if not FIRST_MOMENT <= seconds <= LAST_MOMENT:
        seconds = LAST_MOMENT if seconds > LAST_MOMENT else FIRST_MOMENT
    return datetime.fromtimestamp(seconds, UTC)


def format_time(seconds: float) -> str:
    """Format seconds since the epoch as RFC 3339: 1790000000.25 → `2026-09-21T14:13:20.250Z`."""
    return moment_of(seconds).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


#: A field that holds seconds since the epoch and is shown as RFC 3339.
Time = Annotated[
    float,
    PlainSerializer(format_time, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
