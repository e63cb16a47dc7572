"""Holding a target: exclusive, and refused when it is no longer what was examined."""

import errno
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, codes, command, helper, hold, loop_drive, mounted, reserved_node

from cliffwatch.base.errors import Code, Problem
from cliffwatch.gate import Examination, device_objections, examine, remove_run_directory
from cliffwatch.gate import hold as hold_target
from cliffwatch.gate.device_gate import open_exclusively
from cliffwatch.machine.inventory import drive_at
from cliffwatch.machine.sysfs import device_number
from cliffwatch.model.target import DeviceTarget, DirectoryTarget


def examined(path: Path, run_id: str = "r1") -> Examination:
    return examine(DirectoryTarget(path=str(path)), run_id)


def refusal_to_hold(examination: Examination) -> str:
    with pytest.raises(Problem) as refusal, hold(examination):
        raise AssertionError("the target was held")
    assert refusal.value.code is Code.TARGET_UNSAFE
    return refusal.value.faults[0].message


def test_a_held_drive_is_exclusive_until_it_is_let_go(drive: LoopDrive) -> None:
    with hold(examine(drive.target(), "r1")) as path:
        assert path == drive.node
        with pytest.raises(OSError, match="busy") as refusal:
            os.open(drive.node, os.O_RDONLY | os.O_EXCL)
        assert refusal.value.errno == errno.EBUSY
        assert codes(examine(drive.target(), "r2")) == {"in_use"}
        # The engine, which does not ask for a claim, can work.
        path.open("r+b").close()
    assert examine(drive.target(), "r2").objections == ()


def test_a_drive_that_was_taken_after_the_examination_is_not_held(drive: LoopDrive) -> None:
    examination = examine(drive.target(), "r1")
    with helper("os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)", drive.node):
        assert "stop what uses it" in refusal_to_hold(examination)
    with hold(examination):
        pass


def test_a_drive_that_another_process_looks_at_is_held_an_instant_later(drive: LoopDrive) -> None:
    examination = examine(drive.target(), "r1")
    script = "import threading\ndescriptor = os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)\n"
    with (
        helper(f"{script}threading.Timer(0.2, os.close, [descriptor]).start()", drive.node),
        hold(examination) as path,
    ):
        assert path == drive.node


def test_a_file_system_that_was_made_after_the_examination_is_seen(drive: LoopDrive) -> None:
    examination = examine(drive.target(), "r1")
    command("mkfs.ext4", "-q", drive.node)
    before = drive.digest()
    assert "ext4" in refusal_to_hold(examination)
    assert drive.digest() == before


def test_an_examination_with_objections_cannot_be_held(drive: LoopDrive) -> None:
    assert "to confirm" in refusal_to_hold(examine(drive.target(confirmed=False), "r1"))


def test_a_node_that_became_another_drive_is_not_held(tmp_path: Path) -> None:
    with reserved_node() as node:
        with loop_drive(tmp_path / "examined.img", node=node) as drive:
            examination = examine(drive.target(), "r1")
        with loop_drive(tmp_path / "other.img", node=node):
            assert "is not now" in refusal_to_hold(examination)


def test_an_identity_that_moved_to_another_node_is_not_held(tmp_path: Path) -> None:
    with reserved_node() as node:
        with loop_drive(tmp_path / "examined.img", node=node) as drive:
            examination = examine(drive.target(), "r1")
        with loop_drive(tmp_path / "other.img", node=node), loop_drive(tmp_path / "examined.img"):
            assert "is not now" in refusal_to_hold(examination)


def test_an_identity_that_was_reused_on_the_same_node_is_not_held(tmp_path: Path) -> None:
    file = tmp_path / "drive.img"
    with reserved_node() as node:
        with loop_drive(file, node=node) as drive:
            examination = examine(drive.target(), "r1")
        file.unlink()
        # Same path, same size, same node: only the kernel's sequence number differs.
        with loop_drive(file, node=node):
            assert "is not now" in refusal_to_hold(examination)


def test_a_drive_that_went_away_is_not_held(tmp_path: Path) -> None:
    with reserved_node() as node:
        with loop_drive(tmp_path / "drive.img", node=node) as drive:
            examination = examine(drive.target(), "r1")
        assert "is not now" in refusal_to_hold(examination)


def test_an_identity_that_names_a_second_drive_by_now_is_not_held(drive: LoopDrive) -> None:
    examination = examine(drive.target(), "r1")
    with loop_drive(drive.file):
        assert "the one drive" in refusal_to_hold(examination)


def test_a_drive_whose_node_became_another_s_is_noticed_before_the_next_engine(tmp_path: Path) -> None:
    with (
        reserved_node() as node,
        loop_drive(tmp_path / "examined.img", node=node) as drive,
        loop_drive(tmp_path / "other.img") as other,
        hold_target(examine(drive.target(), "r1")) as target,
    ):
        target.check()
        moved = node.rename(node.with_name(f"{node.name}-moved"))
        try:
            os.mknod(node, 0o600 | stat.S_IFBLK, other.node.stat().st_rdev)
            with pytest.raises(Problem, match="is no longer the drive") as refusal:
                target.check()
            assert refusal.value.code is Code.TARGET_MISSING
        finally:
            moved.rename(node)
        target.check()


def test_a_part_of_the_path_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    place, precious = tmp_path / "above" / "target", tmp_path / "precious"
    place.mkdir(parents=True)
    (precious / "target").mkdir(parents=True)
    examination = examined(place)
    (tmp_path / "above").rename(tmp_path / "moved")
    (tmp_path / "above").symlink_to(precious)
    assert "name the directory again" in refusal_to_hold(examination)
    assert list((precious / "target").iterdir()) == []


def test_another_directory_of_the_same_name_is_not_held(tmp_path: Path) -> None:
    place = tmp_path / "target"
    place.mkdir()
    examination = examined(place)
    place.rename(tmp_path / "moved")
    place.mkdir()
    assert "is not the directory that was examined" in refusal_to_hold(examination)
    assert list(place.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_objection(tmp_path: Path) -> None:
    with mounted("none", tmp_path / "full", "-t", "tmpfs", "-o", "nr_inodes=1") as full:
        message = refusal_to_hold(examined(full))
    assert f"{full / 'cliffwatch-r1'} cannot be made: No space left on device; make room, of inodes too" in message


def test_the_run_s_own_directory_is_private_and_marked(tmp_path: Path) -> None:
    with hold(examined(tmp_path)) as path:
        assert path == tmp_path / "cliffwatch-r1"
        assert path.stat().st_mode & 0o777 == 0o700
        assert (path / ".cliffwatch-run").read_text() == "r1\n"
        assert [entry.name for entry in path.iterdir()] == [".cliffwatch-run"]
    assert path.is_dir()


def test_a_run_takes_its_directory_up_again(tmp_path: Path) -> None:
    with hold(examined(tmp_path)) as path:
        (path / "data").write_text("of the first engine")
    with hold(examined(tmp_path)) as again:
        assert (again / "data").read_text() == "of the first engine"


def test_a_directory_is_held_once_at_a_time(tmp_path: Path) -> None:
    with hold(examined(tmp_path)):
        assert "a living process holds" in refusal_to_hold(examined(tmp_path))
        with hold(examined(tmp_path, "r2")):
            pass


@pytest.mark.parametrize(
    "kind",
    [
        *("files", "another run's", "file", "link", "another user's", "writable"),
        *("directory for the mark", "long file for the mark", "hard link for the mark"),
    ],
)
def test_a_directory_that_is_not_this_run_s_is_neither_held_nor_removed(tmp_path: Path, kind: str) -> None:
    clean = examined(tmp_path)
    path, precious = tmp_path / "cliffwatch-r1", tmp_path / "elsewhere" / "precious"
    precious.parent.mkdir()
    precious.write_text("data")
    if kind == "files":
        path.mkdir()
        (path / "precious").write_text("data")
    elif kind == "another run's":
        with hold(examined(tmp_path, "r2")) as other:
            (other / "precious").write_text("data")
        other.rename(path)
    elif kind == "file":
        path.write_text("data")
    elif kind == "link":
        (precious.parent / ".cliffwatch-run").write_text("r1\n")
        path.symlink_to(precious.parent)
    elif kind == "writable":
        # Put there under this name by the owner of the directory above, who may put links into it later.
        path.mkdir()
        path.chmod(0o777)
    elif kind == "directory for the mark":
        (path / ".cliffwatch-run.new").mkdir(parents=True)
        (path / ".cliffwatch-run.new" / "precious").write_text("data")
        path.chmod(0o700)
    elif kind == "long file for the mark":
        path.mkdir(mode=0o700)
        (path / ".cliffwatch-run.new").write_bytes(bytes(4097))
    elif kind == "hard link for the mark":
        path.mkdir(mode=0o700)
        (path / ".cliffwatch-run.new").hardlink_to(precious)
    else:
        path.mkdir()
        os.chown(path, 65534, 65534)
    before = sorted(tmp_path.rglob("*"))
    assert codes(examined(tmp_path)) == {"foreign_directory"}
    assert "this run's mark" in refusal_to_hold(clean)
    with pytest.raises(Problem) as refusal:
        remove_run_directory(path, "r1")
    assert refusal.value.code is Code.TARGET_UNSAFE
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("left", [[], [".cliffwatch-run.new"]])
def test_a_claim_that_was_cut_short_is_completed(tmp_path: Path, left: list[str]) -> None:
    path = tmp_path / "cliffwatch-r1"
    path.mkdir(mode=0o700)
    for name in left:
        (path / name).touch()
    with hold(examined(tmp_path)):
        assert [(entry.name, entry.read_text()) for entry in path.iterdir()] == [(".cliffwatch-run", "r1\n")]


@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_mount_over_the_run_directory_is_neither_held_nor_removed(tmp_path: Path, kind: str) -> None:
    """The file system there was never examined: nothing of the target's examination holds for it."""
    place, other = tmp_path / "cliffwatch-r1", tmp_path / "other"
    clean = examined(tmp_path)
    other.mkdir(mode=0o700)
    source, options = ("tmpfs", ["-t", "tmpfs", "-o", "mode=700"]) if kind == "tmpfs" else (str(other), ["--bind"])
    with mounted(source, place, *options) as mount_point:
        assert codes(examined(tmp_path)) == {"mounted"}
        assert f"something is mounted at {place}" in refusal_to_hold(clean)
        assert list(mount_point.iterdir()) == []
        (mount_point / ".cliffwatch-run").write_text("r1\n")
        with pytest.raises(Problem, match="something is mounted at"):
            remove_run_directory(place, "r1")
        assert (mount_point / ".cliffwatch-run").exists()


def test_a_mount_within_the_run_s_directory_is_not_held(tmp_path: Path) -> None:
    clean = examined(tmp_path)
    with hold(clean) as path:
        pass
    with mounted("tmpfs", path / "data", "-t", "tmpfs"):
        assert "unmount it" in refusal_to_hold(clean)


def test_a_volume_that_was_unmounted_after_the_examination_is_noticed(drive: LoopDrive, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", drive.node)
    with mounted(drive.node, tmp_path / "volume") as mount_point:
        examination = examined(mount_point)
    assert "when it was examined" in refusal_to_hold(examination)
    assert list(mount_point.iterdir()) == []


def test_a_held_volume_cannot_be_unmounted(drive: LoopDrive, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", drive.node)
    with (
        mounted(drive.node, tmp_path / "volume") as mount_point,
        hold(examined(mount_point)),
        pytest.raises(AssertionError, match="busy"),
    ):
        command("umount", mount_point)


def test_removal_takes_the_run_s_files_and_follows_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("data")
    with hold(examined(tmp_path)) as path:
        (path / "sub").mkdir()
        (path / "sub" / "data").write_text("data")
        (path / "sub" / "link").symlink_to(precious)
        (path / "link").symlink_to(precious)
    remove_run_directory(path, "r1")
    assert not path.exists()
    assert (precious / "data").read_text() == "data"
    remove_run_directory(path, "r1")


def test_a_directory_that_is_held_or_mounted_into_is_not_removed(tmp_path: Path) -> None:
    with hold(examined(tmp_path)) as path:
        (path / "data").write_text("data")
        with pytest.raises(Problem, match="a living process holds"):
            remove_run_directory(path, "r1")
    with mounted("tmpfs", path / "volume", "-t", "tmpfs") as volume:
        (volume / "data").write_text("data")
        with pytest.raises(Problem, match="unmount it"):
            remove_run_directory(path, "r1")
        assert (volume / "data").exists()
    assert (path / "data").exists()


def test_a_directory_of_the_wrong_name_is_not_removed(tmp_path: Path) -> None:
    with hold(examined(tmp_path)) as path:
        pass
    moved = path.rename(tmp_path / "moved")
    with pytest.raises(Problem):
        remove_run_directory(moved, "r1")
    assert moved.is_dir()


def test_a_node_that_leads_to_another_device_claims_nothing(drive: LoopDrive, tmp_path: Path) -> None:
    number = device_number(drive.node)
    assert number is not None
    with loop_drive(tmp_path / "other.img", MIB) as other:
        with pytest.raises(OSError, match="does not lead to the device"):
            open_exclusively(other.node, number)
        astray = replace(drive_at(number), node=other.node)
        for held in ((), (number,)):
            messages = [each.message for each in device_objections(astray, held=held)]
            assert [each for each in messages if "does not lead to the device" in each] == messages
            assert len(messages) == 1


def test_holding_leaks_no_descriptor(drive: LoopDrive, tmp_path: Path) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 a list is counted, nothing is joined

    device = examine(drive.target(), "r1")
    unconfirmed = examine(DeviceTarget(identity=str(drive.file)), "r1")
    before = open_descriptors()
    for _ in range(3):
        with hold(device), hold(examined(tmp_path)):
            pass
        refusal_to_hold(unconfirmed)
    assert open_descriptors() == before
