"""The run's time as an engine has it: what its worker says. The wall clock may have been set since the run began."""

import os
import time

#: How many nanoseconds it is ahead of the machine's monotonic clock; the Rust engines know the same name.
OFFSET_VARIABLE = "CLIFFWATCH_RUN_TIME_OFFSET_NANOSECONDS"


def run_time_variable(ahead_of_monotonic: float) -> dict[str, str]:
    """For an engine's environment."""
    return {OFFSET_VARIABLE: str(round(ahead_of_monotonic * 1e9))}


def run_time() -> float:
    """Seconds since the epoch; the wall clock's where no worker says anything."""
    offset = os.environ.get(OFFSET_VARIABLE)
    return time.time() if offset is None else time.monotonic() + int(offset) / 1e9
