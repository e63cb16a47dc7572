"""What a process does not need is not imported by it: matplotlib alone takes a second, before a run's first window."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("cliffwatch.cli.main", ["matplotlib", "sqlalchemy"]),
        ("cliffwatch.coordinator.__main__", ["matplotlib", "sqlalchemy"]),
        ("cliffwatch.server.app", ["matplotlib"]),
    ],
)
def test_a_process_starts_without_what_it_does_not_need(module: str, without: list[str]) -> None:
    code = f"import sys, {module}; print([name for name in {without} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
