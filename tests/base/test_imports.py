"""Large libraries that a process does not use are not imported: matplotlib alone delays its start by a second."""

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
def test_a_process_does_not_import_large_libraries_it_does_not_use(module: str, without: list[str]) -> None:
    code = f"import sys, {module}; print([name for name in {without} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
