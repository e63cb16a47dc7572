"""Modules that the command imports before it knows what to do: all of them would take a second of each call."""

import subprocess
import sys

import pytest

from cliffwatch.cli.main import COMMANDS
from cliffwatch.cli.reference import commands

LISTED = """
import sys
from cliffwatch.cli.main import main
sys.argv = ["cliffwatch", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print("imported:", *sys.modules)
"""
SLOW = {"fastapi", "httpx", "numpy", "pydantic", "sqlalchemy", "uvicorn"}


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        # Typer reads a command's parameters with pydantic.
        (["version"], {"pydantic"}),
        (["run", "list", "--help"], {"httpx", "pydantic"}),
        (["drive", "--help"], {"httpx", "pydantic"}),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_command_imports_its_own_modules_alone(arguments: list[str], needed: set[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LISTED, *arguments], capture_output=True, text=True, check=True)
    imported = set(done.stdout.splitlines()[-1].split()[1:])
    assert imported & SLOW <= needed
    assert "cliffwatch.cli.main" in imported


def test_every_command_of_the_root_is_listed_or_for_programs_alone() -> None:
    found = {words.split()[1]: command for words, command in commands() if len(words.split()) == 2}
    assert list(found) == list(COMMANDS)
    assert {name for name, each in COMMANDS.items() if not each.help} == {"part", "index"}
    assert all(command.help for command in found.values())
