"""Growing pause between retries."""

#: After this many doublings one second is 136 years, above any longest pause; more would overflow.
_DOUBLINGS_AT_MOST = 32


def growing_pause_seconds(failures: int, first_seconds: float, longest_seconds: float) -> float:
    """Pause after a number of failures in a row: `first_seconds` after one, doubled each time, up to the longest."""
    return min(longest_seconds, first_seconds * 2.0 ** min(failures - 1, _DOUBLINGS_AT_MOST))
