"""Power is cut after an emulated drive has ended: its age is that of its end."""

import json
from pathlib import Path

from testkit.emulated import served_drive
from testkit.power_cuts import cut_disk

MIB = 1 << 20


def test_the_age_that_was_saved_is_there_after_a_power_cut(tmp_path: Path) -> None:
    with cut_disk(tmp_path, "ext4") as disk:
        with disk.mounted() as directory:
            flags = ("--capacity=64MiB", "--pages-per-block=64", "--timing=off")
            with served_drive(directory / "emulated", *flags) as drive, drive.file.open("r+b") as file:
                file.write(bytes(MIB))
            disk.cut(0, seed=1)
        disk.drive.ask("DELETE", "/faults")
        with disk.mounted() as directory, (directory / "emulated" / "content.state").open("rb") as state:
            assert json.loads(state.readline())["host_bytes"] == MIB
