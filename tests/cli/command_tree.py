"""The tree of commands, and the command itself."""

import os
import subprocess
import sys

import typer

from cliffwatch.cli.reference import commands

COMMANDS = dict(commands())


def cliffwatch(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
    return subprocess.run(
        [sys.executable, "-m", "cliffwatch.cli.main", *arguments],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def context_of(words: str) -> typer.Context:
    """The context in which a command reads its flags."""
    context: typer.Context | None = None
    names = words.split()
    for count, name in enumerate(names, 1):
        command = COMMANDS[" ".join(names[:count])]
        settings = command.context_settings
        context = typer.Context(command, parent=context, info_name=name, **settings)
    assert context is not None
    return context
