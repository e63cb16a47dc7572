"""The safety gate in front of directories: on real file systems, full, read-only, foreign and without a drive."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, attached_at, codes, command, hold, loop_drive, mounted

from cliffwatch.base.errors import Code, Problem
from cliffwatch.gate import (
    Examination,
    confirmation_sentence,
    examine,
    notes_on_plan,
    objections_to_plan,
    require_clear,
    targets_overlap,
)
from cliffwatch.model.plan import LoadPlan, PlannedWrite
from cliffwatch.model.target import DirectoryTarget, SyntheticTarget


def examined(path: Path, run_id: str = "r1") -> Examination:
    return examine(DirectoryTarget(path=str(path)), run_id)


def plan_of(*writes: tuple[Path, int], direct: bool = True) -> LoadPlan:
    return LoadPlan(writes=tuple(PlannedWrite(path, size) for path, size in writes), command=("true",), direct=direct)


@pytest.fixture
def directory_of_root() -> Iterator[Path]:
    """A directory that everybody may look into and only root may write to."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def test_a_directory_on_a_drive_passes_and_nothing_is_made_in_it(volume: Path) -> None:
    before = sorted(volume.iterdir())
    examination = examined(volume)
    assert examination.objections == ()
    assert examination.path == volume / "cliffwatch-r1"
    assert examination.volume is not None
    assert (examination.volume.mount_point, examination.volume.file_system) == (volume, "ext4")
    assert [drive.backing_file for drive in examination.drives] == [volume.parent / "volume.img"]
    assert examination.target_key.split("+")[0] == f"drive:{examination.drives[0].major_minor}"
    assert any("loop device" in note for note in examination.notes)
    assert sorted(volume.iterdir()) == before
    assert confirmation_sentence(examination) == ""


def test_two_directories_of_one_drive_overlap(volume: Path, tmp_path: Path) -> None:
    (volume / "below").mkdir()
    one, other = examined(volume), examined(volume / "below", "r2")
    assert targets_overlap(one.target_key, other.target_key)


def test_a_directory_and_a_loop_device_whose_file_is_in_it_overlap(volume: Path, tmp_path: Path) -> None:
    """What is written to the device is written into the directory's file system."""
    (volume / "below").mkdir()
    with loop_drive(volume / "below" / "inner.img", 8 * MIB) as inner, loop_drive(tmp_path / "other.img") as other:
        keys = [examine(each.target(), "r2").target_key for each in (inner, other)]
        assert targets_overlap(examined(volume).target_key, keys[0])
        # Through both devices.
        assert targets_overlap(keys[0], examined(tmp_path).target_key)
        # Two files on one drive are two drives to test with.
        assert not targets_overlap(*keys)
    with mounted("tmpfs", tmp_path / "memory", "-t", "tmpfs") as memory, loop_drive(memory / "a.img", 8 * MIB) as drive:
        assert targets_overlap(examine(drive.target(), "r3").target_key, examined(memory).target_key)


def test_keys_of_arrays_overlap_in_one_common_drive() -> None:
    assert targets_overlap("drive:8:0+8:16", "drive:8:16")
    assert not targets_overlap("drive:8:1", "drive:8:16")
    assert targets_overlap("drive:7:0+on:8:0", "drive:8:0")
    assert targets_overlap("file_system:0:24", '["drive:7:0+on:file_system:0:24","synthetic:shm"]')
    assert not targets_overlap("drive:7:0+on:8:0", "drive:7:1+on:8:0")
    assert not targets_overlap("file_system:0:24", "synthetic:shm")


def test_a_symbolic_link_is_followed_once_and_said(volume: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(volume)
    examination = examined(link)
    assert examination.path == volume / "cliffwatch-r1"
    assert f"{link} leads to {volume} through symbolic links" in examination.notes


@pytest.mark.parametrize("kind", ["missing", "dangling", "circular"])
def test_a_directory_that_is_not_there_is_missing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "path"
    if kind != "missing":
        path.symlink_to("nowhere" if kind == "dangling" else "path")
    with pytest.raises(Problem) as refusal:
        examined(path)
    assert refusal.value.code is Code.TARGET_MISSING
    assert refusal.value.faults[0].field == "target.path"


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert codes(examined(tmp_path / "file")) == {"not_a_directory"}


@pytest.mark.parametrize("path", ["/", "/etc", "/usr/share", "/bin", "/dev", "/proc/self", "/sys/fs/cgroup"])
def test_a_directory_of_the_system_is_refused(path: str) -> None:
    assert codes(examined(Path(path))) == {"system_directory"}


def test_a_volume_that_is_mounted_in_a_directory_of_the_system_is_none_of_it(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/run") as name, mounted("tmpfs", Path(name), "-t", "tmpfs") as place:
        assert codes(examined(place)) == set()


def test_a_directory_that_this_user_may_not_write_to(directory_of_root: Path) -> None:
    os.seteuid(65534)
    try:
        examination = examined(directory_of_root)
    finally:
        os.seteuid(0)
    assert codes(examination) == {"not_writable"}
    assert examined(directory_of_root).objections == ()


def test_a_read_only_mount_of_a_writable_file_system(volume: Path, tmp_path: Path) -> None:
    with mounted(volume, tmp_path / "again", "--bind", "--read-only") as mount_point:
        assert codes(examined(mount_point)) == {"read_only"}


def test_a_directory_in_memory_has_no_drive_and_says_so(tmp_path: Path) -> None:
    with mounted("tmpfs", tmp_path / "memory", "-t", "tmpfs") as mount_point:
        examination = examined(mount_point)
    assert examination.objections == ()
    assert examination.drives == ()
    assert examination.target_key.startswith("file_system:0:")
    assert examination.notes == (f"no drive is known below {mount_point} (tmpfs): no drive is measured",)


def test_the_mount_on_top_counts_and_not_the_longest_mount_point(drive: LoopDrive, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", drive.node)
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    with mounted(drive.node, inner), mounted("tmpfs", tmp_path / "outer", "-t", "tmpfs") as outer:
        inner.mkdir()
        volume = examined(inner).volume
    assert volume is not None
    assert (volume.mount_point, volume.file_system) == (outer, "tmpfs")


def test_the_reserve_stays_free_to_the_byte(volume: Path) -> None:
    examination = examined(volume)
    space = os.statvfs(volume)
    total, available = space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize
    file = examination.path / "data"
    # Small, because the volume that the image is on keeps its reserve too, and may be fairly full.
    reserve_ratio = 0.05
    fits = int(available - reserve_ratio * total)
    assert objections_to_plan(examination, plan_of((file, fits)), reserve_ratio) == []
    objections = objections_to_plan(examination, plan_of((file, fits + 1)), reserve_ratio)
    assert codes(objections) == {"reserve"}
    with pytest.raises(Problem) as refusal:
        require_clear(objections)
    assert refusal.value.code is Code.SPACE_INSUFFICIENT
    assert str(volume) in refusal.value.faults[0].message


def test_the_planned_files_count_together(volume: Path) -> None:
    examination = examined(volume)
    files = [(examination.path / f"data{number}", 20 * MIB) for number in range(3)]
    assert objections_to_plan(examination, plan_of(*files[:2]), 0.0) == []
    assert codes(objections_to_plan(examination, plan_of(*files), 0.0)) == {"reserve"}


def test_the_volume_of_a_backing_file_keeps_its_reserve_too(volume: Path, tmp_path: Path) -> None:
    with loop_drive(volume / "inner.img", 200 * MIB) as inner:
        command("mkfs.ext4", "-q", "-m", "0", inner.node)
        with mounted(inner.node, tmp_path / "inner") as mount_point:
            examination = examined(mount_point)
            file = examination.path / "data"
            assert objections_to_plan(examination, plan_of((file, 8 * MIB)), 0.05) == []
            objections = objections_to_plan(examination, plan_of((file, 100 * MIB)), 0.05)
    assert codes(objections) == {"reserve"}
    assert f"written to {volume}," in objections[0].message


@pytest.mark.parametrize("place", ["../data", "../cliffwatch-r2/data", "link/data", "/etc/passwd", "relative"])
def test_a_write_outside_the_run_s_own_directory_is_objected_to(volume: Path, place: str) -> None:
    examination = examined(volume)
    with hold(examination) as path:
        (path / "link").symlink_to("/tmp")
        write = Path(place) if place == "relative" else path / place
        assert codes(objections_to_plan(examination, plan_of((write, 1)), 0.0)) == {"outside_target"}


def test_files_are_new_unless_the_run_is_resumed(volume: Path) -> None:
    examination = examined(volume)
    with hold(examination) as path:
        (path / "data").write_bytes(bytes(30 * MIB))
        os.sync()
        plan = plan_of((path / "data", 40 * MIB))
        assert codes(objections_to_plan(examination, plan, 0.0)) == {"file_exists"}
        # What the file has already is not needed again: 30 and 40 MiB do not fit on 64.
        assert objections_to_plan(examination, plan, 0.0, resumed=True) == []


@pytest.mark.parametrize("kind", ["link", "second name", "pipe"])
def test_a_file_that_leads_elsewhere_is_objected_to_even_when_resumed(volume: Path, kind: str) -> None:
    (volume / "precious").write_text("data")
    examination = examined(volume)
    with hold(examination) as path:
        if kind == "link":
            (path / "data").symlink_to(volume / "precious")
        elif kind == "second name":
            (path / "data").hardlink_to(volume / "precious")
        else:
            os.mkfifo(path / "data")
        plan = plan_of((path / "data", 1))
        assert codes(objections_to_plan(examination, plan, 0.0, resumed=True)) == {"outside_target"}


def test_a_synthetic_target_has_a_key_of_its_own_and_nowhere_to_write() -> None:
    examination = examine(SyntheticTarget(name="demo"), "r1")
    assert (examination.target_key, examination.objections, examination.drives) == ("synthetic:demo", (), ())
    assert objections_to_plan(examination, plan_of(), 0.05) == []
    assert codes(objections_to_plan(examination, plan_of((Path("/tmp/data"), 1)), 0.0)) == {"outside_target"}
    with hold(examination) as path:
        assert path == examination.path


def test_files_that_fit_into_memory_are_noted_where_the_page_cache_is_used(volume: Path) -> None:
    examination = examined(volume)
    write = (examination.path / "data", 8 * MIB)
    assert len(notes_on_plan(examination, plan_of(write, direct=False), memory_bytes=8 * MIB)) == 1
    assert notes_on_plan(examination, plan_of(write, direct=False), memory_bytes=4 * MIB) == []
    assert notes_on_plan(examination, plan_of(write, direct=True), memory_bytes=8 * MIB) == []


def test_a_file_system_that_is_mounted_twice_is_one_target(tmp_path: Path) -> None:
    with (
        mounted("tmpfs", tmp_path / "memory", "-t", "tmpfs") as once,
        mounted(once, tmp_path / "again", "--bind") as again,
        mounted("tmpfs", tmp_path / "other", "-t", "tmpfs") as other,
    ):
        assert targets_overlap(examined(once).target_key, examined(again, "r2").target_key)
        assert not targets_overlap(examined(once).target_key, examined(other, "r2").target_key)


def test_a_file_system_that_another_loop_device_shows_too_is_refused_while_that_is_used(tmp_path: Path) -> None:
    """Neither knows of the other: what one of them writes, the other overwrites."""
    file, second = tmp_path / "drive.img", tmp_path / "second"
    with loop_drive(file) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, tmp_path / "first") as place, attached_at(file, 0) as node:
            target = DirectoryTarget(path=str(place))
            assert examine(target, "r1").objections == ()
            with mounted(node, second, "-o", "ro,noload"):
                (objection,) = examine(target, "r1").objections
                assert objection.code == "mounted"
                assert "are loop devices over one file" in objection.message
                assert f"is mounted at {second}; unmount it" in objection.message
            with node.open("r+b"):
                (objection,) = examine(target, "r1").objections
                assert "has" in objection.message
                assert "open for writing; end it" in objection.message


def test_the_directory_of_a_run_is_no_target_for_another(volume: Path) -> None:
    with hold(examined(volume)) as held:
        (held / "below").mkdir()
        for inside in (held, held / "below"):
            assert codes(examined(inside, "r2")) == {"foreign_directory"}
        assert examined(volume, "r2").objections == ()


def test_the_journals_are_no_target_where_one_is_mounted_elsewhere(volume: Path, tmp_path: Path) -> None:
    journals = volume / "runs"
    (journals / "a-run").mkdir(parents=True)
    with mounted(journals / "a-run", tmp_path / "elsewhere", "--bind") as elsewhere:
        examination = examine(DirectoryTarget(path=str(elsewhere)), "r1", journals=journals)
    assert "journals" in codes(examination)
    assert "journals" not in codes(examine(DirectoryTarget(path=str(volume)), "r1", journals=journals))


def test_a_directory_whose_name_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"x\xff")
    place.mkdir()
    link = tmp_path / "link"
    link.symlink_to(place)
    with pytest.raises(Problem) as refusal:
        examined(link)
    assert "no text in UTF-8" in refusal.value.faults[0].message
