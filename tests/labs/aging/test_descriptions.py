"""A description that was changed by hand, or is damaged, costs no file that is on the drive."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.labs.aging.machine import CLOCK, SMALL, State

from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.aging.description import FileSystem
from cliffwatch.labs.aging.lifecycle import AttachRequest, clean


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("formatted", "null", "formatted: null is not yes or no"),
        ("formatted", "0", "formatted: 0 is not yes or no"),
        ("unpartitioned", "5", "unpartitioned: 5 is out of range; write at most 0.9"),
        ("unpartitioned", "1e999", "unpartitioned: "),
        ("serial", '"--help"', "serial: '--help'"),
        ("serial", '"a\\u0000"', "serial: "),
        ("serial", '"\\ud800"', "serial: "),
        ("file_system", '"btrfs"', "file_system: 'btrfs' is not one of ext4, xfs, none"),
        ("keeper", '"x"', "keeper: 'x' is not a mapping"),
        ("keeper", "[" * 100_000, "it is not JSON"),
    ],
)
def test_a_description_that_no_drive_can_have_is_refused(state: State, field: str, value: str, reason: str) -> None:
    drive = state.attach(AttachRequest(SMALL))
    assert drive.mount_point is not None
    (drive.mount_point / "keep").write_text("precious")
    state.detach()
    description = state.place().description
    good = description.read_text()
    description.write_text(good.replace(re.findall(rf'"{field}": [^,\n]*', good)[0], f'"{field}": {value}'))
    for attempt in (state.attach, lambda: state.attach(AttachRequest(SMALL)), lambda: clean(state.directory, CLOCK)):
        with pytest.raises(Problem) as refused:
            attempt()
        assert refused.value.code is Code.DRIVE_INVALID
        assert f"drive.json cannot be used ({reason}" in refused.value.detail
    listed = state.command("drive", "aging")
    assert "drive.json cannot be used" in listed.stderr
    description.write_text(good)
    assert (state.attach().mount_point or Path()).joinpath("keep").read_text() == "precious"


def test_a_file_system_that_was_not_written_down_is_not_made_anew(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    assert drive.mount_point is not None
    (drive.mount_point / "keep").write_text("precious")
    state.detach()
    place = state.place()
    place.write(replace(place.read(), formatted=False, file_system=FileSystem.XFS))
    with pytest.raises(Problem, match="no file system was made, and the drive holds ext4") as refused:
        state.attach()
    assert refused.value.code is Code.DRIVE_INVALID
    place.write(replace(place.read(), file_system=FileSystem.EXT4))
    assert (state.attach().mount_point or Path()).joinpath("keep").read_text() == "precious"
    assert place.read().formatted


def test_data_without_a_signature_is_not_overwritten_by_a_file_system(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL, file_system=FileSystem.NONE))
    with Path(f"/dev/{drive.device}").open("r+b") as device:
        device.seek(1 << 20)
        device.write(b"precious")
    state.detach()
    place = state.place()
    place.write(replace(place.read(), file_system=FileSystem.EXT4))
    before = place.content.read_bytes()
    with pytest.raises(Problem, match="and the drive holds data of an unknown kind") as refused:
        state.attach()
    assert refused.value.code is Code.DRIVE_INVALID
    assert place.content.read_bytes() == before


def test_a_drive_that_was_never_written_to_gets_the_file_system_that_its_description_asks_for(state: State) -> None:
    state.attach(AttachRequest(SMALL, file_system=FileSystem.NONE))
    state.detach()
    place = state.place()
    place.write(replace(place.read(), file_system=FileSystem.EXT4))
    assert state.attach().mount_point == place.files
