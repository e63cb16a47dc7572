"""Upper end of an engine's latency scale: longer latencies are counted at it, so a percentile there is a minimum."""

#: By engine; an engine that is not listed measures each latency individually.
SCALE_ENDS_NANOSECONDS = {"fio": 17_112_760_320}


def at_least(engine: str, seconds: float | None) -> str:
    """`at least ` before a percentile that lies at the end of the engine's scale, else empty."""
    end = SCALE_ENDS_NANOSECONDS.get(engine)
    return "at least " if end is not None and seconds is not None and seconds * 1e9 >= end else ""
