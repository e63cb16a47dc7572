"""Run one of the three test sets (testkit/sets.py): each part is timed, and the slowest tests are listed.

python -m testkit.suite gate     every check, and what must hold before a change is merged
python -m testkit.suite real     the rest on real components
python -m testkit.suite timing   what compares times, one at a time

Further arguments are passed to pytest.
"""

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from testkit.checkout import ROOT, STATE
from testkit.killed_sessions import clear_killed_sessions
from testkit.machine_lock import machine_lock
from testkit.outcomes import read_outcomes
from testkit.second_try import Flaky, touched_files, tried_again
from testkit.sets import SETS, Set

SLOWEST = 10
PYTEST = (sys.executable, "-m", "pytest", "-o", f"cache_dir={STATE / 'cache' / 'pytest'}")
#: The line that cargo prints before a test program, and the line that the program prints at its end.
_PROGRAM = re.compile(r"Running .*\((?P<path>\S+)\)$|Doc-tests (?P<crate>\S+)$")
_FINISHED = re.compile(r"test result: .* finished in (?P<seconds>[\d.]+)s")


@dataclass(slots=True)
class Part:
    """Result of a part of a set; `durations` in seconds, by test."""

    name: str
    seconds: float = 0.0
    status: int = 0
    durations: dict[str, float] = field(default_factory=dict)
    flaky: list[Flaky] = field(default_factory=list)


def checks(name: str, *command: str | Path) -> Part:
    """Run a check program, which prints its own errors."""
    return _timed(Part(name), command)


def rust(name: str, *arguments: str) -> Part:
    """Run setup/rust with these arguments; durations are of whole test programs, since cargo reports no others."""
    part = Part(name)
    begun = time.monotonic()
    command = [str(ROOT / "setup" / "rust"), *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
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
    """Duration of each test program, read from cargo's output."""
    found: dict[str, float] = {}
    program = ""
    for line in lines:
        if begins := _PROGRAM.search(line.rstrip()):
            crate, path = begins["crate"], begins["path"]
            program = f"documentation of {crate}" if crate else Path(path).name.rpartition("-")[0]
        elif ends := _FINISHED.search(line):
            found[f"cargo: {program}"] = float(ends["seconds"])
    return found


def python(name: str, *options: str, second_try: bool = False, root: Path = ROOT) -> Part:
    """Run pytest with these options in `root`; with `second_try`, failed tests that pass by themselves are flaky."""
    part = Part(name)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "outcomes"
        _timed(part, (*PYTEST, "-p", "testkit.outcomes", f"--outcomes={file}", *options), root)
        outcomes = read_outcomes(file)
    part.durations = {outcome.test: outcome.seconds for outcome in outcomes}
    if second_try and part.status:
        flaky = tried_again(outcomes, part.status, touched_files(root), functools.partial(passes, root))
        if flaky is not None:
            part.status, part.flaky = 0, flaky
    return part


def passes(root: Path, test: str) -> bool:
    """Whether a test passes in a process of its own."""
    return subprocess.run((*PYTEST, test), cwd=root, check=False).returncode == 0


def parts_of(chosen: Set, options: list[str]) -> Iterable[Part]:
    """Run the chosen set, part by part; yields the result of each part."""
    side_by_side = ("-n", str(len(os.sched_getaffinity(0))), "--no-loadscope-reorder")
    match chosen:
        case "gate":
            yield checks("lint", "make", "--no-print-directory", "lint")
            yield rust("Rust", "check", "gate")
            with machine_lock(exclusive=False):
                yield python("Python", "--set=gate", *side_by_side, *options, second_try=True)
        case "real":
            with machine_lock(exclusive=False):
                yield python("Python, side by side", "--set=real", "-m", "not alone", *side_by_side, *options)
            with machine_lock(exclusive=True):
                yield python("Python, one at a time", "--set=real", "-m", "alone", *options)
        case "timing":
            with machine_lock(exclusive=True):
                yield rust("Rust", "timing")
                yield python("Python", "--set=timing", "-p", "testkit.quiet_machine", *options)


def summary(parts: list[Part]) -> str:
    durations = [(seconds, test) for part in parts for test, seconds in part.durations.items()]
    lines = [f"the {SLOWEST} slowest:"]
    lines += [f"{seconds:8.1f} s  {test}" for seconds, test in sorted(durations, reverse=True)[:SLOWEST]]
    lines += [f"{part.seconds:8.1f} s  {part.name}{' FAILED' if part.status else ''}" for part in parts]
    total = sum(part.seconds for part in parts)
    lines += [str(flaky) for part in parts for flaky in part.flaky]
    return "\n".join([*lines, f"{total:8.1f} s  in all: {int(total // 60)} min {total % 60:.0f} s"])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m testkit.suite")
    parser.add_argument("set", choices=SETS)
    given, options = parser.parse_known_args(arguments)
    for removed in clear_killed_sessions():
        print(f"left by tests that were killed: {removed}", flush=True)
    parts = list(parts_of(given.set, options))
    print(summary(parts), flush=True)
    return 1 if any(part.status for part in parts) else 0


def _timed(part: Part, command: Iterable[str | Path], root: Path = ROOT) -> Part:
    begun = time.monotonic()
    part.status = subprocess.run(list(command), cwd=root, check=False).returncode
    part.seconds = time.monotonic() - begun
    return part


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
