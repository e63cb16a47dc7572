"""A flag that holds one value is given once, whichever command it belongs to."""

import pytest
from tests.cli.command_tree import COMMANDS, cliffwatch, context_of
from typer.core import TyperCommand, TyperGroup, TyperOption

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.reference import options_of

OPTIONS = [(words, command, option) for words, command in COMMANDS.items() for option in options_of(command)]
ONCE = [pytest.param(*each, id=f"{each[0]} {each[2].opts[0]}") for each in OPTIONS if not each[2].multiple]
REPEATABLE = [each for each in OPTIONS if each[2].multiple]


def twice(option: TyperOption) -> list[str]:
    if option.is_flag:
        return [option.opts[0], (option.secondary_opts or option.opts)[0]]
    return [option.opts[0], "1", f"{option.opts[0]}=2"]


@pytest.mark.parametrize(("words", "command", "option"), ONCE)
def test_a_flag_of_one_value_that_is_given_twice_is_refused_with_both(
    words: str, command: TyperCommand | TyperGroup, option: TyperOption
) -> None:
    with pytest.raises(Problem) as refused:
        command.parse_args(context_of(words), twice(option))
    assert refused.value.code is Code.BAD_REQUEST
    reported = " and ".join(twice(option)) if option.is_flag else "'1' and '2'"
    assert refused.value.detail == f"{option.opts[0]} was given twice: {reported}; give it once"


@pytest.mark.parametrize(("words", "command", "option"), REPEATABLE)
def test_a_flag_of_several_values_takes_them_all(
    words: str, command: TyperCommand | TyperGroup, option: TyperOption
) -> None:
    context = context_of(words)
    needed = [each.opts[0] for each in options_of(command) if each.required and each is not option]
    arguments = ["any" for each in command.params if each.param_type_name == "argument"]
    command.parse_args(context, [*arguments, *twice(option), *(word for name in needed for word in (name, "any"))])
    assert list(context.params[option.name]) == ["1", "2"]


def test_two_ids_start_nothing() -> None:
    done = cliffwatch("run", "start", "quick-soak", "--target", "directory:/a", "--id", "one", "--id", "two")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cliffwatch: --id was given twice: 'one' and 'two'; give it once\n"
    done = cliffwatch("--output", "json", "--output", "table", "version")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_flag_before_the_command_and_one_after_it_are_two() -> None:
    assert cliffwatch("--output", "json", "version", "--output", "table").returncode == 0
