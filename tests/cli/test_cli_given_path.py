"""Names and paths that the system cannot look at: a sentence, and no traceback."""

import pytest
from tests.cli.machine import Machine

from cliffwatch.cli.run_request import target_document

#: Longer than a name in any directory may be.
TOO_LONG = "n" * 300


@pytest.mark.parametrize("words", ["run export", "run bundle", "run report", "analyze"])
def test_a_name_too_long_for_a_file_is_a_run_that_is_not_there(idle: Machine, words: str) -> None:
    done = idle.run(*words.split(), TOO_LONG)
    assert done.returncode in (2, 3)
    assert done.stderr.startswith("cliffwatch: ")


def test_a_directory_that_cannot_be_looked_at_here_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/tmp/" + TOO_LONG
    assert target_document(f"directory:{path}", None) == {"kind": "directory", "path": path}
    assert "is not a directory on this machine" in capsys.readouterr().err
