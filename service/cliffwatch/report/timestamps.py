"""Timestamps of report.json: RFC 3339, UTC."""

from datetime import UTC, datetime

_LAST_MOMENT = 253_402_300_799.0


def timestamp(moment: float) -> str:
    """RFC 3339, UTC, to the millisecond. A moment outside 1970 to 9999, from a damaged journal, is clamped to it."""
    return (
        datetime.fromtimestamp(min(max(0.0, moment), _LAST_MOMENT), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
