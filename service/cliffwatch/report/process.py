"""Make a report in a separate process, whose memory is freed when it ends: at a run's end, and on request."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.logs import last_line
from cliffwatch.base.memory_limit import ENVIRONMENT
from cliffwatch.base.units import format_size
from cliffwatch.journal.conclusion import Conclusion

TIMEOUT_SECONDS = 600.0
#: Memory limit on top of what a process needs to start: a report of 36 h with six latencies takes some hundreds of MiB.
MEMORY_LIMIT_BYTES = 4 * 1024**3
#: The process's exit status when the disk is full, and when it cannot be written for another reason.
DISK_FULL, UNWRITABLE = 4, 5


@dataclass(frozen=True, slots=True)
class ReportOutcome:
    """Result of making a report: `conclusion`, None if none was reached; `failure`, why the files are absent, or empty.

    `disk_full`: there was no room for the files, perhaps only for now. `unwritable`: the disk cannot be written,
    because it is full, fails, or was made read-only.
    """

    conclusion: Conclusion | None
    failure: str = ""
    disk_full: bool = False
    unwritable: bool = False


def make_report(directory: Path, to: Path | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> ReportOutcome:
    """Make the report of the run whose journal is in `directory`, into that directory or into `to`.

    The process prints the verdict before it writes the files, so it is not lost when they cannot be written.
    """
    place = [] if to is None else ["--to", str(to)]
    # Killed when its parent ends: the next process that needs the report makes it anew.
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "--",
        sys.executable,
        "-m",
        "cliffwatch.report",
        str(directory),
        *place,
    ]
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            stdin=subprocess.DEVNULL,
            env=os.environ | ENVIRONMENT,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return ReportOutcome(None, f"it took longer than {timeout_seconds:g} s")
    except OSError as error:
        return ReportOutcome(None, f"its process cannot be started: {error.strerror}")
    failure = "" if done.returncode == 0 else _failure(done.returncode, done.stderr)
    full, unwritable = done.returncode == DISK_FULL, done.returncode in (DISK_FULL, UNWRITABLE)
    try:
        conclusion = Conclusion.of(json.loads(done.stdout))
    except (ValueError, KeyError, TypeError):
        return ReportOutcome(None, failure or "it printed no verdict", full, unwritable)
    return ReportOutcome(conclusion, failure, full, unwritable)


def out_of_memory() -> str:
    return (
        f"it takes more than {format_size(MEMORY_LIMIT_BYTES)} of memory (RLIMIT_AS); a longer `window` makes a "
        "smaller journal"
    )


def _failure(status: int, errors: str) -> str:
    if status < 0:
        return f"its process was killed by signal {-status}"
    return last_line(errors)[-500:] or f"its process ended with status {status}"
