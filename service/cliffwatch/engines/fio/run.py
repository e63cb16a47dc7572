"""Launcher process of fio: wait for the load's start, then exec fio.

The remaining time is known only when this runs, so it is here that fio gets its runtime (until the load's planned end)
and the remaining delays of sections that begin later. fio replaces this process, so it costs the load nothing.

    python -m cliffwatch.engines.fio.run START STOP BEGUN DELAYS COMMAND…

START, STOP and BEGUN in seconds since the epoch: when this engine's load begins and ends, and when the run's load
began. The run's first engine lasts as long as planned, however late it begins; a later one ends at STOP.
DELAYS are seconds after BEGUN, joined by commas; `-` for none.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable

from cliffwatch.engines.run_time import run_time

#: Exit status of fio itself when a signal ends it.
STOPPED_STATUS = 128
#: fio needs about this long before its jobs run; it is subtracted, so that the jobs of a resumed load end in time.
STARTUP_SECONDS = 0.1
NO_DELAYS = "-"


def main(arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    start, stop, begun = map(float, arguments[:3])
    delays = [] if arguments[3] == NO_DELAYS else [int(delay) for delay in arguments[3].split(",")]
    command = arguments[4:]
    time.sleep(max(0.0, start - run_time()))
    now = max(run_time(), start)
    if begun == start:
        environment = runtime_environment(round((stop - start) * 1000), 0.0, delays)
    else:
        milliseconds = round((stop - now - STARTUP_SECONDS) * 1000)
        environment = runtime_environment(milliseconds, now - begun, delays)
        if milliseconds <= 0:
            # The status of a stopped fio: no time is left.
            sys.exit(STOPPED_STATUS)
    os.execvpe(command[0], command, os.environ | environment)  # noqa: S606 (no shell wanted)


def runtime_environment(milliseconds: int, passed_seconds: float = 0.0, delays: Iterable[int] = ()) -> dict[str, str]:
    """Environment variables of the job file: the runtime, and for each delay its remainder and the runtime after it.

    `milliseconds`: how long the load still lasts. `passed_seconds`: how long ago the run's load began.
    """
    environment = {"CLIFFWATCH_RUNTIME": f"{milliseconds}ms"}
    for delay in delays:
        waits = max(0, round((delay - passed_seconds) * 1000))
        environment[f"CLIFFWATCH_DELAY_{delay}"] = f"{waits}ms"
        # fio takes 0 for no limit at all.
        environment[f"CLIFFWATCH_RUNTIME_{delay}"] = f"{max(1, milliseconds - waits)}ms"
    return environment


if __name__ == "__main__":
    main(sys.argv[1:])
