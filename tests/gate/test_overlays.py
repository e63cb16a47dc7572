"""A file that an overlay shows is one, whatever number it shows it by."""

import mmap
from pathlib import Path

from testkit.loops import MIB, codes, loop_drive, message_of, mounted

from cliffwatch.gate import examine

#: Like no other drive of the tests: beside these, any of the same size may be a file on the overlay, and is refused.
SIZE_BYTES = 37 * MIB


def test_a_file_that_is_mounted_by_its_name_on_an_overlay_is_not_overwritten(tmp_path: Path) -> None:
    below, above, work = (tmp_path / name for name in ("below", "above", "work"))
    for directory in (below, above, work):
        directory.mkdir()
    layers = f"lowerdir={below},upperdir={above},workdir={work}"
    with (
        loop_drive(above / "one.img", SIZE_BYTES) as drive,
        mounted("none", tmp_path / "both", "-t", "overlay", "-o", layers) as both,
    ):
        with loop_drive(both / "one.img") as twin:
            for each in (drive, twin):
                examination = examine(each.target(), "r1")
                assert codes(examination) == {"in_use"}
                assert "on an overlay" in message_of(examination, "in_use")
        with (both / "one.img").open("r+b"):
            assert "open for writing" in message_of(examine(drive.target(), "r1"), "in_use")
        with (both / "one.img").open("rb"):
            assert examine(drive.target(), "r1").objections == ()
        # Of another size it is another file.
        with loop_drive(both / "other.img", SIZE_BYTES - MIB):
            assert examine(drive.target(), "r1").objections == ()


def test_a_file_that_an_overlay_copied_up_and_a_process_writes_to_is_not_overwritten(tmp_path: Path) -> None:
    """The overlay gives it the inode number that it had in the lower layer."""
    below, above, work = (tmp_path / name for name in ("below", "above", "work"))
    for directory in (below, above, work):
        directory.mkdir()
    (below / "one.img").write_bytes(bytes(SIZE_BYTES))
    layers = f"lowerdir={below},upperdir={above},workdir={work}"
    with mounted("none", tmp_path / "both", "-t", "overlay", "-o", layers) as both:
        with (both / "one.img").open("r+b") as file:
            assert (both / "one.img").stat().st_ino != (above / "one.img").stat().st_ino
            with loop_drive(above / "one.img") as drive:
                assert "open for writing" in message_of(examine(drive.target(), "r1"), "in_use")
                with mmap.mmap(file.fileno(), MIB):
                    file.close()
                    assert "open for writing" in message_of(examine(drive.target(), "r1"), "in_use")
                assert examine(drive.target(), "r1").objections == ()
        with loop_drive(both / "one.img"), loop_drive(above / "one.img") as drive:
            assert codes(examine(drive.target(), "r1")) == {"in_use"}
