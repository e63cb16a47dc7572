"""`--set` of the modelled drive: what is wrong is said with what was typed."""

from pathlib import Path

import pytest
from tests.cli.command_tree import cliffwatch

ATTACH = ("drive", "attach", "any")
WHAT_IF = ("drive", "what-if", "field-report")


@pytest.mark.parametrize(
    ("command", "assignment", "reported"),
    [
        (ATTACH, "chanels=2", "--set chanels=2: unknown setting 'chanels'; did you mean 'channels'?"),
        (ATTACH, "over_provisoning=7%", "did you mean 'over-provisioning'?"),
        (ATTACH, "channels=two", "--set channels=two: 'two' is not a whole number"),
        (
            ATTACH,
            "capacity=4 gigs",
            '--set capacity=4 gigs: "4 gigs" is not a size: write a number of bytes, or one with',
        ),
        (ATTACH, "channels", "--set: 'channels' has no value; write KEY=VALUE"),
        (WHAT_IF, "rat=1GB", "--set rat=1GB: unknown setting 'rat'; did you mean 'rate'?"),
        (WHAT_IF, "xyz=1", "unknown setting 'xyz'; docs/drive.md names those there are"),
    ],
)
def test_a_setting_that_is_wrong_is_named_as_it_was_typed(
    command: tuple[str, ...], assignment: str, reported: str, tmp_path: Path
) -> None:
    done = cliffwatch(*command, "--set", assignment, CLIFFWATCH_STATE_DIRECTORY=str(tmp_path))
    assert (done.returncode, done.stdout, reported in done.stderr) == (2, "", True), done.stderr
    assert cliffwatch("drive", "aging", CLIFFWATCH_STATE_DIRECTORY=str(tmp_path)).stdout == ""
