"""Base classes of commands and groups: a flag that holds one value is refused when it is given twice."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.suggestion import did_you_mean


class OnceCommand(TyperCommand):
    """A command that refuses a flag which was given twice, where the second value would silently win."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        _refuse_repeated(self, context, arguments)
        with _choices_in_our_words():
            return super().parse_args(context, arguments)


class OnceGroup(TyperGroup):
    """Group that refuses a flag of its own which was given twice."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        _refuse_repeated(self, context, arguments)
        with _choices_in_our_words():
            return super().parse_args(context, arguments)


class CommandTree(typer.Typer):
    """Command group that applies OnceGroup to itself and OnceCommand to its commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=OnceGroup, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        return super().command(name, cls=OnceCommand, **settings)


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
