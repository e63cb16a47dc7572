"""The file behind a loop device: which it is, by whichever name, and what the device shows of it."""

import os
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, codes, command, loop_drive, message_of, mounted
from tests.machine.trees import Tree, empty_tree

from cliffwatch.base.errors import Problem
from cliffwatch.gate import examine
from cliffwatch.machine.mounts import shown
from cliffwatch.machine.sysfs import number_of
from cliffwatch.model.target import DeviceTarget


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return empty_tree(tmp_path)


def messages_of(tree: Tree, file: Path) -> list[str]:
    """What is objected to in the device of that tree that the file is behind."""
    target = DeviceTarget(identity=str(file), confirmation=f"erase backing file {file}")
    return [each.message for each in examine(target, "r1", sys=tree.sys, proc=tree.proc).objections]


def test_a_loop_device_whose_backing_file_cannot_be_determined_is_an_objection(tree: Tree, tmp_path: Path) -> None:
    tree.disk("loop90001", "7:90001", MIB, attributes={"loop/backing_file": str(tmp_path / "one.img")})
    tree.disk("loop90002", "7:90002", MIB, attributes={"loop/backing_file": str(tmp_path / "other.img")})
    messages = messages_of(tree, tmp_path / "one.img")
    assert any("what loop90002 lies on cannot be determined" in message for message in messages)


@pytest.mark.parametrize("node", ["missing", "another device's"])
def test_a_loop_device_without_a_node_of_its_own_may_lie_on_any_file(
    tree: Tree, drive: LoopDrive, tmp_path: Path, node: str
) -> None:
    number = number_of(drive.node.stat())
    assert number is not None
    tree.disk(drive.name, number, 32 * MIB, attributes={"loop/backing_file": str(drive.file)})
    with loop_drive(tmp_path / "other.img", MIB) as other:
        name = "loop90001" if node == "missing" else other.name
        tree.disk(name, "7:90001", MIB, attributes={"loop/backing_file": str(other.file)})
        for target, word in ((drive, "may be what"), (other, "cannot be determined")):
            messages = messages_of(tree, target.file)
            assert any(each.startswith(f"what {name} lies on") and word in each for each in messages)


def test_a_file_is_not_named_by_what_its_name_begins_with(tmp_path: Path) -> None:
    (tmp_path / "drive.img").touch()
    with loop_drive(tmp_path / "drive.img ") as drive:
        assert examine(drive.target(), "r1").objections == ()
        with pytest.raises(Problem, match="no drive is named"):
            examine(DeviceTarget(identity=str(tmp_path / "drive.img"), confirmation=""), "r1")


@pytest.mark.parametrize("change", ["covered", "no text"])
def test_a_file_that_its_name_does_not_lead_to_is_not_overwritten(tmp_path: Path, change: str) -> None:
    file = tmp_path / "drive.img"
    if change == "no text":
        # What is shown of it, and so confirmed, may be another file's name.
        file = tmp_path / os.fsdecode(b"drive\xff.img")
        Path(shown(str(file))).touch()
    with loop_drive(file) as drive:
        if change == "covered":
            with mounted("none", tmp_path / "over", "-t", "tmpfs") as over:
                (over / "drive.img").touch()
                command("mount", "--bind", over, tmp_path)
                try:
                    examination = examine(drive.target(), "r1")
                finally:
                    command("umount", tmp_path)
        else:
            text = shown(str(file))
            examination = examine(DeviceTarget(identity=text, confirmation=f"erase backing file {text}"), "r1")
    assert codes(examination) == {"backing_unknown"}


def test_another_part_of_the_same_file_is_not_what_was_confirmed(tmp_path: Path) -> None:
    file = tmp_path / "drive.img"
    file.write_bytes(bytes(64 * MIB))
    blocks = []
    for begin in (0, 32):
        place = ["--offset", str(begin * MIB), "--sizelimit", str(32 * MIB)]
        node = Path(command("losetup", *place, "--find", "--show", file).strip())
        try:
            blocks.append(examine(DeviceTarget(identity=str(file), confirmation=""), "r1").blocks)
        finally:
            command("losetup", "--detach", node)
    first, second = blocks
    assert first is not None
    assert second == first.replace(" 33554432 bytes", " from byte 33554432 33554432 bytes")


@pytest.mark.parametrize("is_limited", [True, False])
def test_a_signature_in_the_file_behind_the_end_of_the_device_is_found(tmp_path: Path, is_limited: bool) -> None:
    file = tmp_path / "drive.img"
    file.touch()
    os.truncate(file, 64 * MIB if is_limited else 48 * MIB)
    limit = ["--sizelimit", str(48 * MIB)] if is_limited else []
    node = Path(command("losetup", *limit, "--find", "--show", file).strip())
    try:
        os.truncate(file, 64 * MIB)
        target = LoopDrive(node, file).target()
        assert examine(target, "r1").objections == ()
        command("sfdisk", "--quiet", file, text="label: gpt\nsize=8MiB\n")
        with file.open("r+b") as table:
            # Of the two copies the one at the end remains.
            table.write(bytes(MIB))
        examination = examine(target, "r1")
    finally:
        command("losetup", "--detach", node)
    assert codes(examination) == {"partition_table"}
    assert "the file behind" in message_of(examination, "partition_table")
