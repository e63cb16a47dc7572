"""A report made by a process of its own, whose memory ends with it: at a run's end, and whenever somebody asks."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.runs.states import VerdictName

TIMEOUT_SECONDS = 600.0
#: The process's exit status when the disk had no room.
DISK_FULL = 4


@dataclass(frozen=True, slots=True)
class Made:
    """What became of it: the verdict (None: it was not found), and why the files are not there (empty: they are).

    `disk_full`: there was no room for them, which may be over in a while.
    """

    verdict: VerdictName | None
    reasons: tuple[str, ...]
    failure: str = ""
    disk_full: bool = False


def make_report(directory: Path, to: Path | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> Made:
    """Make the report of the run whose journal is in `directory`, into that directory or into `to`.

    The verdict is printed before the files are written: files that cannot be written do not cost it.
    """
    place = [] if to is None else ["--to", str(to)]
    # It dies with whoever waits for it: the next one makes a report of its own.
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
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return Made(None, (), f"it took longer than {timeout_seconds:g} s")
    except OSError as error:
        return Made(None, (), f"its process cannot be started: {error.strerror}")
    failure = "" if done.returncode == 0 else _failure(done.returncode, done.stderr)
    try:
        body = json.loads(done.stdout)
        verdict, reasons = VerdictName(body["verdict"]), tuple(str(reason) for reason in body["reasons"])
    except (ValueError, KeyError, TypeError):
        return Made(None, (), failure or "it printed no verdict", done.returncode == DISK_FULL)
    return Made(verdict, reasons, failure, done.returncode == DISK_FULL)


def _failure(status: int, errors: str) -> str:
    if status < 0:
        return f"its process was killed by signal {-status}"
    said = errors.strip().splitlines()[-1:]
    return "".join(said)[-500:] or f"its process ended with status {status}"
