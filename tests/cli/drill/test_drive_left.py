"""A drive that cannot be detached, because it is in use, does not take the drill's answer with it."""

from pathlib import Path

import pytest

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.drill import command
from cliffwatch.cli.drill.judgement import VARIANTS
from cliffwatch.cli.session import Session


def test_a_drill_drive_that_cannot_be_detached_is_named_and_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def held(*arguments: object, **options: object) -> None:
        raise Problem(Code.CONFLICT, "process 7 (sh) has it mounted")

    monkeypatch.setattr(command, "attach", lambda *arguments, **options: object())
    monkeypatch.setattr(command, "detach", held)
    with command._drive(
        Session(url=None, token_file=None, state_directory=tmp_path, output=None),
        next(iter(VARIANTS.values())),
        SystemClock(),
    ):
        pass
    said = capsys.readouterr().err
    assert "the drive drill is still there: process 7 (sh) has it mounted" in said
    assert "cliffwatch drive clean" in said
