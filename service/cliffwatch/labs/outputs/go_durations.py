"""Durations as Go programs print them: `1h2m3.5s`, `4.8ms`, `917µs`, `0s`."""

import re

#: A duration of digits that a clock can have; longer ones are damage. The micro sign has two code points.
GO_DURATION = r"-?(?:\d{1,7}h)?(?:\d{1,2}m)?\d{1,9}(?:\.\d{1,9})?(?:ns|us|µs|μs|ms|s)"
_PARTS = re.compile(r"(?P<sign>-?)(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?P<number>[\d.]+)(?P<unit>\D+)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}


def go_seconds(text: str) -> float:
    """Seconds of a duration. Raises ValueError for other text."""
    if re.fullmatch(GO_DURATION, text) is None or (parts := _PARTS.fullmatch(text)) is None:
        raise ValueError(f"{text[:40]!r} is no duration")
    whole = 3600 * int(parts["h"] or 0) + 60 * int(parts["m"] or 0)
    seconds = whole + float(parts["number"]) * _SECONDS[parts["unit"]]
    return -seconds if parts["sign"] else seconds
