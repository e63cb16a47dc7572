"""What `make test` runs once everything is there: each part timed, the slowest tests named.

python -m testkit.suite              every check, and every test but those marked `long`
python -m testkit.suite long         the tests marked `long`; with --until=EPOCH those that will be over by then
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from testkit.checkout import ROOT, STATE

SLOWEST = 10
PYTEST = (sys.executable, "-m", "pytest", "-o", f"cache_dir={STATE / 'cache' / 'pytest'}")
#: Most tests wait for something most of the time.
WORKERS_PER_PROCESSOR = 2
#: What cargo prints of a test program, and this of its end.
_PROGRAM = re.compile(r"Running .*\((?P<path>\S+)\)$|Doc-tests (?P<crate>\S+)$")
_FINISHED = re.compile(r"test result: .* finished in (?P<seconds>[\d.]+)s")


@dataclass(slots=True)
class Part:
    """What was run together; `durations` in seconds, by test."""

    name: str
    seconds: float = 0.0
    status: int = 0
    durations: dict[str, float] = field(default_factory=dict)


def checks(name: str, *command: str | Path) -> Part:
    """A program that says itself what is wrong."""
    return _timed(Part(name), command)


def rust(name: str) -> Part:
    """Format, lint and tests of the Rust parts; a duration is a whole test program's, since cargo reports no other."""
    part = Part(name)
    begun = time.monotonic()
    process = subprocess.Popen([ROOT / "setup" / "rust"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    lines = []
    for raw in process.stdout:
        lines.append(raw.decode(errors="replace"))
        print(lines[-1], end="", flush=True)
    part.status = process.wait()
    part.seconds = time.monotonic() - begun
    part.durations = program_seconds(lines)
    return part


def program_seconds(lines: Iterable[str]) -> dict[str, float]:
    """How long each test program took, of what cargo prints."""
    found: dict[str, float] = {}
    program = ""
    for line in lines:
        if begins := _PROGRAM.search(line.rstrip()):
            crate, path = begins["crate"], begins["path"]
            program = f"documentation of {crate}" if crate else Path(path).name.rpartition("-")[0]
        elif ends := _FINISHED.search(line):
            found[f"cargo: {program}"] = float(ends["seconds"])
    return found


def python(name: str, *options: str) -> Part:
    """pytest with these options."""
    part = Part(name)
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results.xml"
        _timed(part, (*PYTEST, *options, f"--junitxml={results}"))
        # Where it could not even collect there are no results.
        if results.exists():
            for case in ElementTree.parse(results).iter("testcase"):  # noqa: S314 # pytest wrote it just now
                test = f"{case.get('classname')}::{case.get('name')}".partition("@")[0]
                part.durations[test] = float(case.get("time", "0"))
    return part


def quick(options: list[str]) -> Iterable[Part]:
    workers = str(WORKERS_PER_PROCESSOR * len(os.sched_getaffinity(0)))
    yield checks("lint", "make", "--no-print-directory", "lint")
    yield rust("Rust")
    side_by_side = ("-m", "not long and not alone", "-n", workers, "--no-loadscope-reorder")
    yield python("Python, side by side", *side_by_side, *options)
    yield python("Python, one at a time", "-m", "not long and alone", *options)


def long(options: list[str]) -> Iterable[Part]:
    yield python("Python, long", "-m", "long", *options)


def summary(parts: list[Part]) -> str:
    durations = [(seconds, test) for part in parts for test, seconds in part.durations.items()]
    lines = [f"the {SLOWEST} slowest:"]
    lines += [f"{seconds:8.1f} s  {test}" for seconds, test in sorted(durations, reverse=True)[:SLOWEST]]
    lines += [f"{part.seconds:8.1f} s  {part.name}{' FAILED' if part.status else ''}" for part in parts]
    total = sum(part.seconds for part in parts)
    return "\n".join([*lines, f"{total:8.1f} s  in all: {int(total // 60)} min {total % 60:.0f} s"])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m testkit.suite")
    parser.add_argument("which", nargs="?", choices=("quick", "long"), default="quick")
    which, options = parser.parse_known_args(arguments)
    parts = list((long if which.which == "long" else quick)(options))
    print(summary(parts), flush=True)
    return 1 if any(part.status for part in parts) else 0


def _timed(part: Part, command: Iterable[str | Path]) -> Part:
    begun = time.monotonic()
    part.status = subprocess.run(list(command), cwd=ROOT, check=False).returncode
    part.seconds = time.monotonic() - begun
    return part


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
