"""Second try for failed tests of the gate: if each passes twice by itself, all are flaky; they are printed, and pass.

A flaky test is fixed, or moved to another set with its reason, in the next change (CONTRIBUTING.md).
"""

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from testkit.outcomes import Outcome

#: When more tests failed, the change or the machine is at fault, and none is tried again.
FAILURES_LIMIT = 3
TRIES = 2
#: Tests never tried again: a forbidden write, or a lost, repeated or corrupted record, is a fault however rare.
NEVER = (
    "tests/durability/",
    "tests/engines/kafka/",
    "tests/engines/storage/",
    "tests/gate/",
    "tests/journal/",
    "tests/labs/bundle/",
    "tests/machine/",
    "tests/simulation/",
    "tests/upgrade/",
)


@dataclass(frozen=True, slots=True)
class Flaky:
    """A test that failed beside others and passed each time by itself."""

    test: str
    failure: str

    def __str__(self) -> str:
        return f"FLAKY {self.test}: failed beside others, passed {TRIES} times by itself\n{self.failure}"


def tried_again(
    outcomes: Iterable[Outcome], status: int, touched: Iterable[str], passes: Callable[[str], bool]
) -> list[Flaky] | None:
    """Run failed tests again; returns them as flaky if all pass each time, else None.

    `status` is pytest's exit status. `touched` are the files of the change, whose tests are not tried again. `passes`
    runs one test in a process of its own.
    """
    failed = [outcome for outcome in outcomes if outcome.failure]
    files = set(touched)
    # Exit status 1: tests failed, and pytest ran to its end.
    if status != 1 or not 0 < len(failed) <= FAILURES_LIMIT:
        return None
    for outcome in failed:
        if outcome.test.startswith(NEVER) or outcome.module in files or "::" not in outcome.test:
            return None
    if not all(passes(outcome.test) for outcome in failed for _ in range(TRIES)):
        return None
    return [Flaky(outcome.test, outcome.failure) for outcome in failed]


def touched_files(root: Path) -> list[str]:
    """Files changed by commits of the day up to HEAD; a clone's branches do not show the present change any better."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout

    day_before = int(git("log", "-1", "--format=%ct")) - 86_400
    return sorted(
        {line for line in git("log", f"--since={day_before}", "--format=", "--name-only").splitlines() if line}
    )
