"""`python -m cliffwatch.engines.pgbench ACTION JOB`: one action of a pgbench load; JOB is a PgbenchJob as JSON.

check     print as JSON whether the load could begin, and change nothing
prepare   make the tables and fill them, and write facts of the server into the scratch directory
load      execute the load, and print the lines of the engine contract
clear     drop the tables
"""

import argparse
import json
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import psycopg

from cliffwatch.base.errors import Problem
from cliffwatch.engines.pgbench.load import FACTS_FILE, PgbenchJob
from cliffwatch.engines.pgbench.process import execute
from cliffwatch.engines.pgbench.program import find_pgbench, initialize_command, session_options
from cliffwatch.engines.pgbench.server import (
    check,
    connect,
    drop_schema,
    libpq_environment,
    make_schema,
    may_time_flushes,
    note_complete,
    settings_of,
    warnings_of,
    write_back,
)
from cliffwatch.model.target import DATABASE_SCHEMA

#: How long a server that does not answer is waited for at the end of a run.
_CLEAR_SECONDS = 60


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cliffwatch.engines.pgbench", description="Load a database.")
    parser.add_argument("action", choices=("check", "prepare", "load", "clear"))
    parser.add_argument("job")
    given = parser.parse_args(arguments)
    job = PgbenchJob.model_validate_json(given.job)
    if given.action == "check":
        print(json.dumps(asdict(check(job))))
        return 0
    if given.action == "load":
        return execute(job)
    try:
        return _clear(job) if given.action == "clear" else _prepare(job)
    except (Problem, psycopg.Error, OSError, ValueError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1


def _prepare(job: PgbenchJob) -> int:
    with connect(job, f"{job.application_name} prepare"[:63]) as connection:
        version = str(connection.execute("SHOW server_version").fetchall()[0][0])
        facts = {
            "version": version,
            "settings": settings_of(connection),
            "times_flushes": may_time_flushes(connection),
            "warnings": warnings_of(job, connection),
        }
        Path(job.scratch, FACTS_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        if make_schema(job, connection):
            return 0
    environment = {**libpq_environment(job), "PGOPTIONS": session_options(times_flushes=False)}
    command = ["setpriv", "--pdeathsig", "KILL", "--", *initialize_command(find_pgbench(), job.load)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as process:
        signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
        status = process.wait()
    if status == 0:
        with connect(job, f"{job.application_name} prepare"[:63]) as connection:
            note_complete(job, connection)
            write_back(connection)
    return 1 if status else 0


def _clear(job: PgbenchJob) -> int:
    # Who stops the service's unit asks every process of it to end; the tables are dropped all the same.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _overdue)
    signal.alarm(_CLEAR_SECONDS)
    with connect(job, f"{job.application_name} clear"[:63]) as connection:
        drop_schema(job, connection)
    return 0


def _overdue(number: int, frame: object) -> None:
    raise TimeoutError(f"the server did not drop the schema {DATABASE_SCHEMA} within {_CLEAR_SECONDS} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
