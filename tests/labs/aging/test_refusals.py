"""Bad input and machines that cannot: one clear sentence, and nothing half-mounted remains."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testkit.checkout import PROGRAMS
from testkit.loops import command
from tests.labs.aging.machine import SMALL, State

from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.aging.description import FileSystem
from cliffwatch.labs.aging.lifecycle import AttachRequest

pytestmark = pytest.mark.alone(
    why="a namespace that copies all mounts keeps the drives of other tests from being detached"
)

UNSHARED = ("unshare", "--mount", "--propagation", "private", "sh", "-c")


def nothing_remains(state: State) -> bool:
    directory = state.directory / "drives"
    return state.remains() == [] and (not directory.exists() or list(directory.iterdir()) == [])


@pytest.mark.parametrize(
    ("order", "reported"),
    [
        (AttachRequest(SMALL | {"channels": 0}), "--channels: must be between 1 and 256"),
        (
            AttachRequest(SMALL | {"over-provisioning": -0.1}),
            "--over-provisioning: -0.1 is out of range: give a share in [0, 1)",
        ),
        (
            AttachRequest(SMALL | {"over-provisioning": 1.5}),
            "--over-provisioning: 1.5 is out of range: give a share in [0, 1)",
        ),
        (AttachRequest(SMALL | {"capacity": "1KiB"}), "--"),
        (AttachRequest(SMALL | {"chanels": 2}), "cannot be served: unknown field `chanels` at line"),
        (AttachRequest(SMALL | {"capacity": "many"}), "many"),
        (AttachRequest(SMALL, unpartitioned=1.0), "--unpartitioned: 1 is not a share of the drive; give 0 to 0.9"),
        (AttachRequest(SMALL, unpartitioned=-0.1), "--unpartitioned: -0.1 is not a share of the drive; give 0 to 0.9"),
    ],
)
def test_a_drive_that_cannot_be_is_refused(state: State, order: AttachRequest, reported: str) -> None:
    with pytest.raises(Problem) as refused:
        state.attach(order)
    assert refused.value.code is Code.DRIVE_INVALID
    assert reported in refused.value.detail
    assert len(refused.value.detail.splitlines()) == 1
    assert nothing_remains(state)


@pytest.mark.parametrize("name", ["", "Big", "-x", "a/b", "..", "x" * 41])
def test_an_invalid_drive_name_is_refused(state: State, name: str) -> None:
    with pytest.raises(Problem, match="cannot be a drive's name"):
        state.attach(AttachRequest(SMALL), name)


def test_a_drive_too_small_for_its_file_system_is_refused(state: State) -> None:
    with pytest.raises(Problem, match=r"no file system can be made on /dev/loop.*; make the drive larger") as refused:
        state.attach(AttachRequest(SMALL, FileSystem.XFS))
    assert refused.value.code is Code.DRIVE_UNAVAILABLE
    assert nothing_remains(state)


def test_a_drive_that_is_there_is_not_made_again_and_one_that_is_not_is_not_attached(state: State) -> None:
    with pytest.raises(Problem, match="there is no aging drive 'one'; say what it is to be like"):
        state.attach()
    state.attach(AttachRequest(SMALL))
    with pytest.raises(Problem, match="the drive one already exists"):
        state.attach(AttachRequest(SMALL))
    assert state.drive().url is not None


def test_a_setting_without_a_value_is_refused(state: State) -> None:
    done = state.command("drive", "attach", "one", "--set", "channels")
    assert done.returncode == 2
    assert "--set: 'channels' has no value; write KEY=VALUE" in done.stderr


@contextmanager
def small_file_system(directory: Path) -> Iterator[None]:
    directory.mkdir(exist_ok=True)
    command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", directory)
    try:
        yield
    finally:
        command("umount", directory)


def test_a_file_system_without_room_is_named(state: State) -> None:
    drives = state.directory / "drives"
    with small_file_system(drives):
        with pytest.raises(Problem) as refused:
            state.attach(AttachRequest(SMALL))
        assert "the file system has no room" in refused.value.detail
        assert "use another, or a smaller --capacity" in refused.value.detail
        assert nothing_remains_but_the_mount(state)


def nothing_remains_but_the_mount(state: State) -> bool:
    return state.remains() == [str(state.directory / "drives")] and not list((state.directory / "drives").iterdir())


def attempt(state: State, before: str) -> "subprocess.CompletedProcess[str]":
    """`drive attach` on a machine that `before` has changed, for that command alone."""
    return state.command("drive", "attach", "one", before=(*UNSHARED, f'{before} && exec "$@"', "sh"))


#: A /dev of one's own, with what every program needs.
BARE = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9"


def test_a_missing_program_is_named_with_how_to_build_it(state: State) -> None:
    places = {PROGRAMS, Path(sys.prefix).parent / "programs"}
    hidden = [f"mount -t tmpfs none {place}" for place in places if place.is_dir()]
    done = attempt(state, " && ".join([*hidden, "export PATH=/usr/bin:/bin"]))
    assert done.returncode == 3
    assert "cliffwatch-drive is neither in" in done.stderr
    assert "builds it" in done.stderr


def test_without_fuse_the_module_is_named(state: State) -> None:
    done = attempt(state, BARE)
    assert done.returncode == 3
    assert "/dev/fuse does not exist; `modprobe fuse`" in done.stderr
    assert nothing_remains(state)


def test_a_fuse_that_does_not_work_is_reported(state: State) -> None:
    done = attempt(state, "mount --bind /dev/null /dev/fuse")
    assert done.returncode == 3
    assert "mounting on" in done.stderr
    assert "run as root on a kernel with FUSE" in done.stderr
    assert nothing_remains(state)


def test_without_a_free_loop_device_the_remedy_is_named(state: State) -> None:
    done = attempt(state, f"{BARE} && mknod /dev/fuse c 10 229")
    assert done.returncode == 3
    assert "no loop device can be attached" in done.stderr
    assert "`losetup --list` shows them" in done.stderr
    assert nothing_remains(state)


def test_only_root_may(state: State) -> None:
    # May read everything, so that it is not a file's mode that refuses.
    capability = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    unprivileged = ("setpriv", "--euid=65534", *capability)
    done = state.command("drive", "attach", "one", before=unprivileged)
    assert done.returncode == 3
    assert "only root may attach drives: run the command with sudo" in done.stderr
    assert nothing_remains(state)
