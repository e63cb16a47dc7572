"""Generate docs/cli.md from the commands: `python -m cliffwatch.cli.reference` prints it."""

from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from cliffwatch.cli.main import PROGRAM, app

_INTRODUCTION = f"""\
# The `{PROGRAM}` command

    {PROGRAM} --help
    {PROGRAM} run start --help

`make docs` writes this page from the commands themselves.

| exit status | meaning |
|---|---|
| 0 | a pass, or done as asked |
| 1 | a run that was watched or waited for ended with any other verdict |
| 2 | the request is not valid; the message names the flag or field |
| 3 | the service, or something that it needs, is unavailable |
| 4 | the database is of a newer version of Cliffwatch; nothing was changed |
| 130 | Ctrl-C; a run that was watched continues |

Data goes to stdout, as a table or with `--output json`; messages go to stderr. `NO_COLOR` is
respected. `{PROGRAM} --install-completion` adds completion to your shell.

Every flag is also an environment variable, given with it below; a flag that is given wins. `CLIFFWATCH_TOKEN` holds a
token itself, and wins over `--token-file`. docs/settings.md has the variables of the service.
"""
#: Flags for use in a shell, which make no sense as environment variables.
_SHELL_FLAGS = frozenset({"--help", "--version", "--install-completion", "--show-completion"})


def commands() -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    """Every group and command with its full name, in the order of `--help`."""
    root = typer.main.get_command(app)
    yield from _walk(PROGRAM, root)


def _walk(words: str, command: object) -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    assert isinstance(command, TyperCommand | TyperGroup)
    yield words, command
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from _walk(f"{words} {name}", child)


def options_of(command: TyperCommand | TyperGroup) -> list[TyperOption]:
    """The flags of a command except `--help`, `--version` and those of shell completion."""
    options = [parameter for parameter in command.params if isinstance(parameter, TyperOption)]
    return [option for option in options if not _SHELL_FLAGS.intersection(option.opts)]


def variable_of(words: str, option: TyperOption) -> str:
    """Environment variable of a flag, such as CLIFFWATCH_RUN_START_SOAK."""
    path = [*words.split()[1:], option.opts[0].removeprefix("--")]
    return "_".join(["CLIFFWATCH", *path]).upper().replace("-", "_")


def reference() -> str:
    """Text of docs/cli.md."""
    return "\n".join(
        [_INTRODUCTION, *(section for words, command in commands() for section in _section(words, command))]
    )


def _section(words: str, command: TyperCommand | TyperGroup) -> Iterator[str]:
    arguments = [parameter for parameter in command.params if isinstance(parameter, TyperArgument)]
    options = options_of(command)
    if isinstance(command, TyperGroup) and words != PROGRAM:
        return
    usage = [words, *(str(argument.metavar or argument.name.upper()) for argument in arguments)]
    title = "Flags of every command" if words == PROGRAM else f"`{' '.join(usage)}`"
    yield f"## {title}\n"
    if words != PROGRAM:
        yield f"{(command.help or '').strip()}\n"
    if arguments:
        yield "".join(f"- `{argument.metavar}`: {argument.help}\n" for argument in arguments)
    if options:
        yield "| flag | variable | meaning |\n|---|---|---|\n" + "".join(
            f"| {_names(option)} | `{variable_of(words, option)}` | {_meaning(option)} |\n" for option in options
        )


def _names(option: TyperOption) -> str:
    return ", ".join(f"`{name}`" for name in (option.opts[0], *option.secondary_opts))


def _meaning(option: TyperOption) -> str:
    parts = [option.help or ""]
    if option.required:
        parts.append("Required.")
    elif isinstance(option.default, str | int) and not isinstance(option.default, bool):
        parts.append(f"Default: `{option.default}`.")
    return " ".join(parts).replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
