"""/sys and /proc trees for hardware that a test machine lacks, with the kernel's own layout and links."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tree:
    """`sys` and `proc` stand for the directories of these names. Attributes are given as the kernel prints them."""

    sys: Path
    proc: Path

    def disk(
        self,
        name: str,
        major_minor: str,
        size_bytes: int = 0,
        bus: str = "virtual",
        attributes: dict[str, str] | None = None,
        hardware: dict[str, str] | None = None,
    ) -> Path:
        """A whole device; with `hardware`, below a device of the bus that has these attributes."""
        parent = self.sys / "devices" / bus
        directory = parent / "block" / name if hardware is None else parent / name
        standard = {
            "dev": major_minor,
            "size": str(size_bytes // 512),
            "ro": "0",
            "hidden": "0",
            "diskseq": "7",
            "queue/logical_block_size": "512",
            "queue/rotational": "0",
            "queue/scheduler": "[none] mq-deadline kyber",
            "queue/nr_requests": "1023",
            "queue/discard_max_bytes": "2199023255040",
        }
        for attribute, value in (standard | (attributes or {})).items():
            write(directory / attribute, value)
        for kind in ("holders", "slaves"):
            (directory / kind).mkdir()
        if hardware is not None:
            for attribute, value in hardware.items():
                write(parent / attribute, value)
            (directory / "device").symlink_to(parent)
        self._link(self.sys / "block" / name, directory)
        self._link(self.sys / "dev" / "block" / major_minor, directory)
        return directory

    def partition(self, disk: Path, number: int, major_minor: str) -> Path:
        directory = disk / f"{disk.name}p{number}"
        write(directory / "dev", major_minor)
        write(directory / "partition", str(number))
        (directory / "holders").mkdir()
        self._link(self.sys / "dev" / "block" / major_minor, directory)
        return directory

    def stack(self, upper: Path, lowers: Iterable[Path]) -> None:
        """`upper`, an array or a mapped device, lies on `lowers`."""
        for lower in lowers:
            self._link(upper / "slaves" / lower.name, lower)
            self._link(lower / "holders" / upper.name, upper)

    def mount(
        self,
        mount_id: int,
        major_minor: str,
        mount_point: str,
        file_system: str,
        source: str,
        options: str = "rw,discard",
    ) -> None:
        """One more line of mountinfo; `options` are the file system's own."""
        line = f"{mount_id} 1 {major_minor} / {mount_point} rw,noatime shared:9 - {file_system} {source} {options}\n"
        with (self.proc / "self" / "mountinfo").open("a") as mountinfo:
            mountinfo.write(line)

    @staticmethod
    def _link(link: Path, target: Path) -> None:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)


def empty_tree(root: Path) -> Tree:
    """A machine without drives, mounts and swap."""
    tree = Tree(root / "sys", root / "proc")
    (tree.sys / "block").mkdir(parents=True)
    write(tree.proc / "self" / "mountinfo", "", end="")
    write(tree.proc / "swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority")
    return tree


def nvme(tree: Tree, number: int, serial: str, firmware: str = "GDC5602Q", model: str = "SAMSUNG MZQL21T9HCJR") -> Path:
    """The first namespace of an NVMe controller, 1.9 TB."""
    return tree.disk(
        f"nvme{number}n1",
        f"259:{number * 4}",
        1_920_383_410_176,
        bus=f"pci0000:00/nvme{number}",
        attributes={"wwid": f"eui.36344730540{number}00250025384100000001"},
        hardware={"model": model.ljust(40), "serial": serial.ljust(20), "firmware_rev": firmware},
    )


def write(path: Path, text: str, end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + end)


def mount_id_of(path: Path) -> int:
    """The kernel's number of the mount that `path` is on."""
    descriptor = os.open(path, os.O_PATH)
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    os.close(descriptor)
    return next(int(line.split()[1]) for line in lines if line.startswith("mnt_id:"))
