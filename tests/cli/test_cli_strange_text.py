"""A stranger's text on the terminal: a bundle's target, a note, a reason. Nothing of it is obeyed."""

import json

import pytest

from cliffwatch.cli.output import Column, Output, plain, print_facts, print_json, print_rows, put, say

STRANGE = "a\x1b[2J\x9b31m\x07\u202eb\u2028c\x7f\udc80"
SHOWN = "a\\u001b[2J\\u009b31m\\u0007\\u202eb\\u2028c\\u007f\\udc80"


def test_control_characters_are_printed_escaped_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    put(STRANGE)
    say(STRANGE)
    print_facts({}, {"target": f"{STRANGE}\nsecond"}, Output.TABLE)
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [SHOWN, f"target  {SHOWN}", "        second"]
    assert printed.err == f"{SHOWN}\n"


def test_a_row_of_a_table_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"target": f"{STRANGE}\npass"}, {"target": "b"}]
    print_rows(rows, [Column("target", plain("target"))], Output.TABLE, "none")
    assert capsys.readouterr().out.splitlines() == ["target", f"{SHOWN}\\u000apass", "b"]


def test_json_says_the_same_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"target": STRANGE + "ünder\n"}
    print_json(value)
    printed = capsys.readouterr().out
    assert json.loads(printed) == value
    assert "ünder" in printed
    assert "\u202e" not in printed
