"""The process that becomes fio: waits for the load's start, then replaces itself with fio.

It knows the time only when it runs, so it is here that fio learns how long it may run: until the load's planned end.
Being replaced, it costs the load nothing.

    python -m cliffwatch.engines.fio.run START STOP COMMAND…

START and STOP in seconds since the epoch.
"""

import os
import signal
import sys
import time

#: What fio itself exits with when a signal ends it.
STOPPED_STATUS = 128
#: fio needs about this long before its jobs run; it is taken off, so that the jobs end with the load.
STARTUP_SECONDS = 0.1


def main(arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    start, stop = map(float, arguments[:2])
    command = arguments[2:]
    time.sleep(max(0.0, start - time.time()))
    milliseconds = round((stop - max(time.time(), start) - STARTUP_SECONDS) * 1000)
    if milliseconds <= 0:
        return
    os.execvpe(command[0], command, os.environ | runtime_environment(milliseconds))  # noqa: S606 (no shell wanted)


def runtime_environment(milliseconds: int) -> dict[str, str]:
    """The variable that the job file's `runtime` refers to."""
    return {"CLIFFWATCH_RUNTIME": f"{milliseconds}ms"}


if __name__ == "__main__":
    main(sys.argv[1:])
