"""Base classes of commands and groups: a flag that holds one value is refused when it is given twice.

The modules of the root's commands are imported when they are used (`DeferredGroup`), since all of them take a second.
"""

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.suggestion import did_you_mean


class OnceCommand(TyperCommand):
    """A command that refuses a flag which was given twice, where the second value would silently win. Help is short:
    docs/cli.md has the environment variable of each flag."""

    def format_options(self, context: Any, formatter: Any) -> None:
        _leave_out_variables(self)
        super().format_options(context, formatter)

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        _refuse_repeated(self, context, arguments)
        with _choices_in_our_words():
            return super().parse_args(context, arguments)


class OnceGroup(TyperGroup):
    """Group that refuses a flag of its own which was given twice, with a help as short as a command's."""

    def format_options(self, context: Any, formatter: Any) -> None:
        _leave_out_variables(self)
        super().format_options(context, formatter)

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        _refuse_repeated(self, context, arguments)
        with _choices_in_our_words():
            return super().parse_args(context, arguments)


@dataclass(frozen=True, slots=True)
class Deferred:
    """Command or group of the root: `name` in `module`, a function or a CommandTree. `help`: the beginning of its help,
    for the list of commands; empty for a command that is not listed there."""

    module: str
    name: str
    help: str = ""


class DeferredGroup(OnceGroup):
    """Group whose commands are imported when they are used, and not for `--help`."""

    def defer(self, deferred: Mapping[str, Deferred]) -> None:
        self.commands = _Imported(deferred)

    def list_commands(self, context: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, context: Any, formatter: Any) -> None:
        assert isinstance(self.commands, _Imported), "its commands are deferred"
        rows = [(name, each.help) for name, each in self.commands.deferred.items() if each.help]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class _Imported(MutableMapping[str, Any]):
    """Commands by name, each imported when it is looked up."""

    def __init__(self, deferred: Mapping[str, Deferred]) -> None:
        self.deferred = deferred
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            one = self.deferred[name]
            self._known[name] = command_of(getattr(import_module(one.module), one.name), name)
        return self._known[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.deferred)

    def __len__(self) -> int:
        return len(self.deferred)


def command_of(source: Any, name: str) -> TyperCommand | TyperGroup:
    """Command of that name, from a CommandTree or a function."""
    around = CommandTree()
    if isinstance(source, CommandTree):
        around.add_typer(source, name=name)
    else:
        around.command(name)(source)
    command = typer.main.get_group(around).commands[name]
    assert isinstance(command, TyperCommand | TyperGroup)
    return command


class CommandTree(typer.Typer):
    """Command group that applies OnceGroup, or a class given as `cls`, to itself and OnceCommand to its commands."""

    def __init__(self, *, cls: type[OnceGroup] = OnceGroup, **settings: Any) -> None:
        # Plain help: boxes are cut off in narrow terminals and cannot be searched.
        super().__init__(cls=cls, no_args_is_help=True, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        return super().command(name, cls=OnceCommand, **settings)


def _leave_out_variables(command: TyperCommand | TyperGroup) -> None:
    for parameter in command.params:
        if isinstance(parameter, TyperOption | TyperArgument):
            parameter.show_envvar = False


@contextmanager
def _choices_in_our_words() -> Iterator[None]:
    """Reword Typer's errors about invalid values as this program words faults; for a mistyped choice, suggest one."""
    try:
        yield
    except typer.BadParameter as error:
        text = error.message.removeprefix("Value error, ")
        if " is not one of " in text:
            typed, *choices = re.findall(r"'([^']*)'", text)
            text = text.removesuffix(".") + did_you_mean(typed, choices)
        error.message = text
        raise


def _refuse_repeated(command: TyperCommand | TyperGroup, context: typer.Context, arguments: list[str]) -> None:
    """Refuse a flag that was given twice. Raises Problem(bad_request) with the flag and all its values."""
    if context.resilient_parsing:
        return
    # Parse the same command line, keeping every value; other errors are raised as usual.
    parser = type(command.make_parser(context))(context)
    for parameter in command.get_params(context):
        if not isinstance(parameter, TyperOption):
            parameter.add_to_parser(parser, context)
            continue
        for names in (parameter.opts, parameter.secondary_opts):
            if names:
                action = "append_const" if parameter.is_flag else "append"
                parser.add_option(parameter, names, parameter.name, action, parameter.nargs, names[0])
    values, _, _ = parser.parse_args(list(arguments))
    for option in command.get_params(context):
        given = values.get(option.name or "")
        if not isinstance(option, TyperOption) or option.multiple or option.count or not given or len(given) < 2:
            continue
        raise given_repeatedly(option.opts[0], given if option.is_flag else [repr(value) for value in given])


def given_repeatedly(name: str, typed: list[str]) -> Problem:
    """Problem for a flag or setting that takes one value but was given several; `typed` lists what was typed."""
    times = "twice" if len(typed) == 2 else f"{len(typed)} times"
    return Problem(Code.BAD_REQUEST, f"{name} was given {times}: {' and '.join(typed)}; give it once")
