"""Run clock inside an engine: the worker passes its offset, since the wall clock may be set during the run."""

import os
import time

#: Environment variable: nanoseconds from the monotonic clock to run time. The Rust engines use the same name.
OFFSET_VARIABLE = "CLIFFWATCH_RUN_TIME_OFFSET_NANOSECONDS"


def run_time_variable(ahead_of_monotonic: float) -> dict[str, str]:
    """Environment variable that passes the run clock's offset to an engine."""
    return {OFFSET_VARIABLE: str(round(ahead_of_monotonic * 1e9))}


def run_time() -> float:
    """Run time in seconds since the epoch; the wall clock's time if no offset is passed."""
    offset = os.environ.get(OFFSET_VARIABLE)
    return time.time() if offset is None else time.monotonic() + int(offset) / 1e9
