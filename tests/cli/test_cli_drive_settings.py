"""`--set` of the modelled drive: what is wrong is said with what was typed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.command_tree import cliffwatch

ATTACH = ("drive", "attach", "any")
WHAT_IF = ("drive", "what-if", "field-report")


@pytest.fixture
def state_directory(tmp_path: Path) -> Iterator[str]:
    """Where a drive that is attached against expectation goes with the test."""
    yield str(tmp_path)
    cliffwatch("drive", "detach", "any", "--delete", CLIFFWATCH_STATE_DIRECTORY=str(tmp_path))


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
        (ATTACH, "channels=0", "cannot be served: --set channels=0: must be between 1 and 256"),
        (ATTACH, "capacity=1", "cannot be served: --set capacity=1: too small: give at least 8KiB, which is two pages"),
        (ATTACH, "blocks=0", "cannot be served: --set blocks=0: the drive has no pages"),
        (ATTACH, "channels=3", "cannot be served: pages-per-block in the profile: 1024 is not a multiple of"),
        (WHAT_IF, "rat=1GB", "--set rat=1GB: unknown setting 'rat'; did you mean 'rate'?"),
        (WHAT_IF, "xyz=1", "unknown setting 'xyz'; docs/drive.md names those there are"),
    ],
)
def test_a_setting_that_is_wrong_is_named_as_it_was_typed(
    command: tuple[str, ...], assignment: str, reported: str, state_directory: str
) -> None:
    done = cliffwatch(*command, "--set", assignment, CLIFFWATCH_STATE_DIRECTORY=state_directory)
    assert (done.returncode, done.stdout, reported in done.stderr) == (2, "", True), done.stderr
    assert cliffwatch("drive", "aging", CLIFFWATCH_STATE_DIRECTORY=state_directory).stdout == ""


@pytest.mark.parametrize(
    ("command", "flags", "reported"),
    [
        (
            ATTACH,
            "--set capacity=1GiB --set capacity=3GiB",
            "capacity was given twice: --set capacity=1GiB and --set capacity=3GiB",
        ),
        (
            ATTACH,
            "--capacity 1GiB --set capacity=3GiB",
            "capacity was given twice: --capacity 1GiB and --set capacity=3GiB",
        ),
        (
            ATTACH,
            "--unpartitioned 0.1 --set unpartitioned=0.3",
            "unpartitioned was given twice: --unpartitioned 0.1 and --set unpartitioned=0.3",
        ),
        (
            ATTACH,
            "--set over_provisioning=0.1 --set over-provisioning=0.2",
            "over-provisioning was given twice: --set over_provisioning=0.1 and --set over-provisioning=0.2",
        ),
        (WHAT_IF, "--set rate=1GB --set rate=2GB", "rate was given twice: --set rate=1GB and --set rate=2GB"),
        (WHAT_IF, "--scale 64 --set scale=32", "scale was given twice: --scale 64 and --set scale=32"),
        (
            ATTACH,
            "--capacity 1GiB --set blocks=64",
            "capacity and blocks both say how large the drive is; give one of them",
        ),
        (
            ATTACH,
            "--capacity 1KiB",
            "cannot be served: --capacity 1KiB: too small: give at least 8KiB, which is two pages",
        ),
        (ATTACH, "--capacity 64KiB", "make the drive larger (ext4 needs 256KiB, xfs 300MiB)"),
        (ATTACH, "--unpartitioned a-quarter", "--unpartitioned: 'a-quarter' is not a share; write 0.25 or 25%"),
        (ATTACH, "--unpartitioned 95%", "--unpartitioned: 0.95 is not a share of the drive; give 0 to 0.9"),
        (WHAT_IF, "--unpartitioned a-quarter", "'a-quarter' is not a share from 0 to below 1; write 0.1 or 10%"),
    ],
)
def test_flags_that_contradict_or_cannot_be_are_refused(
    command: tuple[str, ...], flags: str, reported: str, state_directory: str
) -> None:
    done = cliffwatch(*command, *flags.split(" "), CLIFFWATCH_STATE_DIRECTORY=state_directory)
    assert (done.returncode in (2, 3), done.stdout, reported in done.stderr) == (True, "", True), done.stderr
    assert cliffwatch("drive", "aging", CLIFFWATCH_STATE_DIRECTORY=state_directory).stdout == ""


def test_a_share_is_a_number_or_a_percentage(state_directory: str) -> None:
    flags = ("--unpartitioned", "25%", "--set", "blocks=16", "--set", "timing=off")
    done = cliffwatch("drive", "attach", "any", *flags, CLIFFWATCH_STATE_DIRECTORY=state_directory)
    assert done.returncode == 0, done.stderr
    assert "size     57.1 MiB" in done.stdout, "the blocks that were typed, and not the capacity of the profile"
    written = (Path(state_directory) / "drives" / "any" / "drive.json").read_text()
    assert '"unpartitioned": 0.25' in written
