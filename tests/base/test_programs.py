"""What is asked of a program of ours is asked with an end."""

from pathlib import Path

import pytest
from testkit.storage_engine import context_of, load_of

from cliffwatch.base import programs
from cliffwatch.base.errors import Code, Problem
from cliffwatch.engines.contract import EngineFacts
from cliffwatch.engines.storage import engine
from cliffwatch.engines.storage.engine import StorageEngine


def silent(directory: Path) -> Path:
    """A program that starts and says nothing, until the test is over."""
    program = directory / "silent"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    return program


def test_a_program_that_does_not_answer_is_as_good_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = silent(tmp_path)
    monkeypatch.setattr(programs, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(engine, "find_program", lambda name, state_directory: program)
    with pytest.raises(Problem, match=r"silent --version did not answer within 0\.2 s") as raised:
        programs.version_of(program)
    assert raised.value.code is Code.COMPONENT_MISSING
    # What is to be known of the load before it begins lacks what the program would say.
    assert StorageEngine().plan(load_of(), context_of(tmp_path, 60)).command[0] == programs.LOAD
    assert StorageEngine().facts(load_of(), context_of(tmp_path, 60)) == EngineFacts()
