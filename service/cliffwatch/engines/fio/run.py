"""The process that becomes fio: lays files out before the clock starts, then replaces itself with fio.

It knows the time only when it runs, so it is here that fio learns how long it may run: until the load's planned end,
whatever laying out (or a restart) took. Being replaced, it costs the load nothing.

    python -m cliffwatch.engines.fio.run START STOP WINDOW DIRECTORY JOB LAYOUT|- COMMAND…

START and STOP in seconds since the epoch, WINDOW in seconds; DIRECTORY is where files go.
"""

import os
import signal
import subprocess
import sys
import time

#: The line on stdout that says that files were laid out; the translator makes it an event.
LAID_OUT = "cliffwatch: laid out in seconds: "
#: What fio itself exits with when a signal ends it.
STOPPED_STATUS = 128
#: fio needs about this long before its jobs run; it is taken off, so that the jobs end with the load.
STARTUP_SECONDS = 0.1


def main(arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    start, stop, window_seconds = map(float, arguments[:3])
    directory, job, layout, *command = arguments[3:]
    os.chdir(directory)
    if layout != "-":
        status = _lay_out([*command[:1], layout])
        if status != 0:
            sys.exit(status)
    _wait_for_line(start, window_seconds)
    milliseconds = round((stop - max(time.time(), start) - STARTUP_SECONDS) * 1000)
    if milliseconds <= 0:
        return
    os.execvpe(command[0], [*command, job], os.environ | runtime_environment(milliseconds))  # noqa: S606 (no shell wanted)


def runtime_environment(milliseconds: int) -> dict[str, str]:
    """The variable that the job file's `runtime` refers to."""
    return {"CLIFFWATCH_RUNTIME": f"{milliseconds}ms"}


def _lay_out(command: list[str]) -> int:
    """Let fio create files and pass on what it says of errors. Returns its exit status; a signal to stop reaches it."""
    begun = time.monotonic()
    environment = os.environ | runtime_environment(1)
    # Whoever kills this process outright must not leave a fio behind.
    command = ["setpriv", "--pdeathsig", "KILL", "--", *command]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stdout, env=environment)
    signal.signal(signal.SIGINT, lambda number, frame: process.send_signal(number))
    status = process.wait()
    stopped = status == STOPPED_STATUS or status < 0
    if not stopped:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print(f"{LAID_OUT}{time.monotonic() - begun:.3f}", flush=True)
    return STOPPED_STATUS if stopped else status


def _wait_for_line(start: float, window_seconds: float) -> None:
    """When a line was missed by more than a quarter window, wait for the next: fio's snapshots follow soon after it."""
    passed = (time.time() - start) % window_seconds
    if passed > window_seconds / 4:
        time.sleep(window_seconds - passed)


if __name__ == "__main__":
    main(sys.argv[1:])
