"""Files that a file system only passes on: the one that is kept elsewhere may be the target's."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testkit.loops import MIB, codes, command, helper, loop_drive, message_of, mounted
from tests.gate.fuse import fuse_file

from cliffwatch.gate import examine

#: Each test has a size that no other has: beside these files, any drive of the same size is refused.
OPEN = "os.open(sys.argv[1], os.O_RDWR)"


@contextmanager
def overlay(directory: Path) -> Iterator[Path]:
    """Mounted at `both`, of `below` and `above`, which are made unless they are there. The block may unmount it."""
    below, above, work, both = (directory / name for name in ("below", "above", "work", "both"))
    for each in (below, above, work, both):
        each.mkdir(exist_ok=True)
    layers = f"lowerdir={below},upperdir={above},workdir={work}"
    command("mount", "-t", "overlay", "-o", layers, "none", both)
    try:
        yield both
    finally:
        if both.is_mount():
            command("umount", both)


def test_a_writer_through_an_overlay_counts_after_that_was_unmounted(tmp_path: Path) -> None:
    size_bytes = 43 * MIB
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "one.img").write_bytes(bytes(size_bytes))
    with (
        overlay(tmp_path) as both,
        helper(OPEN, both / "one.img") as process_id,
        loop_drive(tmp_path / "above" / "one.img") as drive,
    ):
        command("umount", "--lazy", both)
        examination = examine(drive.target(), "r1")
        assert codes(examination) == {"in_use"}
        assert f"process {process_id} " in message_of(examination, "in_use")
        assert "may be" in message_of(examination, "in_use")


def test_a_writer_to_the_file_below_the_overlay_that_the_target_is_on_counts(tmp_path: Path) -> None:
    with overlay(tmp_path) as both, loop_drive(both / "one.img", 44 * MIB) as drive:
        with helper(OPEN, tmp_path / "above" / "one.img") as process_id:
            examination = examine(drive.target(), "r1")
            assert codes(examination) == {"in_use"}
            assert f"process {process_id} " in message_of(examination, "in_use")
        assert examine(drive.target(), "r1").objections == ()


@pytest.mark.parametrize("is_mounted", [True, False])
def test_a_writer_through_fuse_counts(tmp_path: Path, is_mounted: bool) -> None:
    size_bytes = 45 * MIB
    with (
        loop_drive(tmp_path / "drive.img", size_bytes) as drive,
        fuse_file(tmp_path / "fuse", size_bytes) as file,
        helper(OPEN, file) as process_id,
    ):
        if not is_mounted:
            command("umount", "--lazy", tmp_path / "fuse")
        examination = examine(drive.target(), "r1")
        assert codes(examination) == {"in_use"}
        assert f"process {process_id} " in message_of(examination, "in_use")
        assert "on FUSE" in message_of(examination, "in_use")


def test_a_writer_to_memory_has_nothing_to_do_with_another_drive(tmp_path: Path) -> None:
    size_bytes = 46 * MIB
    code = f"{OPEN}\nos.truncate(os.memfd_create('other'), {size_bytes})"
    (tmp_path / "other.img").touch()
    with loop_drive(tmp_path / "drive.img", size_bytes) as drive, helper(code, tmp_path / "other.img"):
        assert examine(drive.target(), "r1").objections == ()
    with (
        mounted("none", tmp_path / "memory", "-t", "tmpfs") as memory,
        loop_drive(memory / "drive.img", size_bytes) as drive,
        helper(OPEN, tmp_path / "drive.img"),
    ):
        assert examine(drive.target(), "r1").objections == ()


def test_a_twin_on_an_overlay_that_was_unmounted_is_doubted_whatever_its_name_leads_to(tmp_path: Path) -> None:
    # The kernel names it by its path below the root of what is mounted nowhere: another file's, outside.
    inside = tmp_path.relative_to("/") / "one.img"
    (tmp_path / "above" / inside).parent.mkdir(parents=True)
    with overlay(tmp_path) as both, loop_drive(both / inside, 47 * MIB) as twin:
        command("umount", "--lazy", both)
        (tmp_path / "one.img").touch()
        assert Path(f"/sys/block/{twin.name}/loop/backing_file").read_text() == f"{tmp_path / 'one.img'}\n"
        with loop_drive(tmp_path / "above" / inside) as drive:
            messages = [each.message for each in examine(drive.target(), "r1").objections]
    assert any(each.startswith(f"{twin.name} lies on") for each in messages)
