"""`python -m cliffwatch.labs.bundle FILE RUNS_DIRECTORY NAME`: unpack a bundle into a directory of that name and make
its report.

Runs as its own process, so that the content of a bundle cannot use up the service's memory. Prints one JSON line: the
manifest without its files, or `{"problem": …}`.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.memory_limit import ENVIRONMENT, memory_errors
from cliffwatch.labs.bundle.bounds import limit_this_process, out_of_memory
from cliffwatch.labs.bundle.manifest import Manifest, taken
from cliffwatch.labs.bundle.unpack import disk_problem, unpack
from cliffwatch.report.build import build, write


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cliffwatch.labs.bundle", description="Unpack the bundle of a run.")
    parser.add_argument("file", type=Path, help="the bundle")
    parser.add_argument("runs", type=Path, help="the directory that holds the journals of runs")
    parser.add_argument("name", help="the directory below it that the journal is made in")
    given = parser.parse_args(arguments)
    limit_this_process()
    try:
        with memory_errors():
            manifest = _made(given.file, given.runs, given.name)
    except MemoryError:
        print(json.dumps({"problem": {"code": Code.BUNDLE_INVALID, "detail": out_of_memory(), "faults": []}}))
        return 1
    except Problem as problem:
        faults = [{"field": fault.field, "message": fault.message} for fault in problem.faults]
        print(json.dumps({"problem": {"code": problem.code, "detail": problem.detail, "faults": faults}}))
        return 1
    print(json.dumps(manifest.model_dump(mode="json", exclude={"files"})))
    return 0


def _made(file: Path, runs: Path, name: str) -> Manifest:
    try:
        with file.open("rb") as source:
            manifest = unpack(source, runs / name, lambda manifest: _require_new(runs, manifest))
        write(runs / name, build(runs / name))
    except OSError as error:
        raise disk_problem(runs, error) from error
    return manifest


def _require_new(runs: Path, manifest: Manifest) -> None:
    if (runs / manifest.run_id).exists():
        raise taken(manifest.run_id)


if __name__ == "__main__":
    if not ENVIRONMENT.items() <= os.environ.items():
        command = [sys.executable, "-m", "cliffwatch.labs.bundle", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **ENVIRONMENT})  # noqa: S606  itself, with what it needs
    sys.exit(main(sys.argv[1:]))
