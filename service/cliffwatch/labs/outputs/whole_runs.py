"""Outputs with figures of a whole run alone (wrk, wrk2): known by their lines, and refused by name."""

import re
from collections.abc import Sequence

_WRK = re.compile(r" *Running \S+ test @ \S+")
_WRK_SIZE = re.compile(r" *\d{1,9} threads and \d{1,9} connections")


def why_without_windows(head: Sequence[str]) -> str | None:
    """Refusal of the output of wrk or wrk2, which has no windows; None for other files."""
    if any(_WRK.match(line) for line in head) and any(_WRK_SIZE.match(line) for line in head):
        return (
            "is of wrk or wrk2, which print figures of the whole run and no windows; vegeta and k6 write the time of"
            " each request, and `wrk -d1m --latency`, run again and again, makes rows of elapsed_seconds,p50,p90,p99"
        )
    return None
