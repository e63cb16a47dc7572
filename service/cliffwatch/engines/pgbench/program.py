"""The pgbench program: where it is, its command, and its log through pseudo-terminals."""

import os
import shutil
import subprocess
import tty
from collections.abc import Mapping
from pathlib import Path

from cliffwatch.base.errors import Code, Problem
from cliffwatch.engines.pgbench.load import PgbenchLoad
from cliffwatch.model.target import DATABASE_SCHEMA

_LOG = "transactions"
#: Setting of the server by which sessions time their flushes of the WAL.
TIMING = "track_wal_io_timing"
#: Arguments: PREFIX TERMINAL … -- COMMAND. pgbench's logs are PREFIX.PID, PREFIX.PID.1, …, and the shell that becomes
#: pgbench has its pid.
_LINKED = """
log=$1.$$ number=0
shift
while [ "$1" != -- ]; do
    ln -s "$1" "$log"
    number=$((number + 1)) log=${log%.$((number - 1))}.$number
    shift
done
shift
exec "$@"
"""
#: Where Debian's packages put the programs of each version.
_DEBIAN = "/usr/lib/postgresql"


def find_pgbench() -> str:
    """Path of pgbench: the newest of Debian's packages, or the one on PATH. Raises Problem(component_missing)."""
    found = sorted(Path(_DEBIAN).glob("*/bin/pgbench"), key=lambda path: _number(path.parts[-3]))
    program = str(found[-1]) if found else shutil.which("pgbench")
    if program is None:
        raise Problem(Code.COMPONENT_MISSING, "pgbench is not installed: apt-get install postgresql")
    return program


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def version_of_pgbench(program: str) -> str:
    """Version that pgbench prints, without its name; empty if it prints none."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=10)
    return done.stdout.strip().removeprefix("pgbench (PostgreSQL) ")


def initialize_command(program: str, load: PgbenchLoad) -> list[str]:
    """Command that makes the tables anew and fills them."""
    return [program, "--initialize", "--quiet", "--scale", str(load.scale)]


def load_command(program: str, load: PgbenchLoad, seconds: float, log: Path) -> list[str]:
    """Command of the load; it lasts for `seconds` at least, unless it is ended before."""
    rate = [] if load.rate is None else ["--rate", repr(load.rate)]
    return [
        program,
        "--no-vacuum",
        *("--builtin", load.script),
        *("--protocol", load.protocol),
        *("--client", str(load.clients)),
        *("--jobs", str(min(load.threads, load.clients))),
        *("--time", str(max(1, round(seconds)))),
        *rate,
        *("--log", f"--log-prefix={log}"),
    ]


def session_options(*, times_flushes: bool) -> str:
    """Options of pgbench's sessions: PGOPTIONS."""
    timing = f" -c {TIMING}=on" if times_flushes else ""
    return f"-c search_path={DATABASE_SCHEMA}{timing}"


class RunningPgbench:
    """pgbench with a pseudo-terminal for the log of each of its threads.

    pgbench writes its log in blocks of 4 KiB, so that at a low rate lines would come minutes late, and after a stall
    with it; to a terminal it writes each line at once. The log is in no file, so that it costs no space.
    """

    def __init__(self, load: PgbenchLoad, seconds: float, scratch: Path, environment: Mapping[str, str]) -> None:
        """Start it. It dies with this process. Raises Problem(component_missing)."""
        program = find_pgbench()
        threads = min(load.threads, load.clients)
        pairs = [os.openpty() for _ in range(threads)]
        self.logs = [master for master, _ in pairs]
        self._slaves = [slave for _, slave in pairs]
        for slave in self._slaves:
            tty.setraw(slave)
        names = [os.ttyname(slave) for slave in self._slaves]
        log = scratch / _LOG
        for old in scratch.glob(f"{_LOG}.*"):
            old.unlink()
        command = load_command(program, load, seconds, log)
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", "sh", "-euc", _LINKED, "sh", str(log), *names, "--", *command],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self.process.stderr is not None, "started with a pipe"
        self.errors = self.process.stderr.fileno()
        for descriptor in (*self.logs, self.errors):
            os.set_blocking(descriptor, False)

    def end(self) -> None:
        """End it, and wait for it."""
        self.process.terminate()
        try:
            self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
