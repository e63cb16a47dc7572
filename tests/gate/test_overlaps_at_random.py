"""Overlap of two targets, on random trees of file systems, loop devices in their files, and mounts of those."""

import random
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, command, loop_drive, mounted

from cliffwatch.gate import examine, targets_overlap
from cliffwatch.model.target import DirectoryTarget

STEPS = 9
#: A file system in a file of another one is smaller than that.
MIB_BY_DEPTH = (96, 40, 14)


@dataclass(frozen=True)
class Store:
    """Place for bytes, a file system or a loop device. `on`: stores that writes to it reach, too."""

    name: str
    on: frozenset[str]
    key: str

    def overlaps(self, other: "Store") -> bool:
        """Two stores that are side by side on a third do not overlap."""
        return self.name == other.name or self.name in other.on or other.name in self.on


@dataclass(frozen=True)
class Directory:
    path: Path
    name: str
    on: frozenset[str]

    def examined(self, run_id: str) -> Store:
        return Store(self.name, self.on, examine(DirectoryTarget(path=str(self.path)), run_id).target_key)


class Forest:
    """Directories and loop devices, made at random."""

    def __init__(self, base: Path, seed: int, stack: ExitStack) -> None:
        self.chance, self.stack, self.base = random.Random(seed), stack, base
        self.directories = [self._in_memory(0)]
        self.drives: list[tuple[LoopDrive, Store]] = []

    def grow(self, step: int) -> None:
        parent = self.chance.choice(self.directories)
        match self.chance.choice(["memory", "below", "bound", "drive", "drive", "mount", "mount", "twin"]):
            case "memory":
                self.directories.append(self._in_memory(step))
            case "below":
                (parent.path / f"below{step}").mkdir()
                self.directories.append(Directory(parent.path / f"below{step}", parent.name, parent.on))
            case "bound":
                bound = self.stack.enter_context(mounted(parent.path, self.base / f"bound{step}", "--bind"))
                self.directories.append(Directory(bound, parent.name, parent.on))
            case "twin" if self.drives:
                drive, store = self.chance.choice(self.drives)
                linked = drive.file.with_name(f"twin{step}")
                linked.hardlink_to(drive.file)
                self._keep(self.stack.enter_context(loop_drive(linked)), store.name, store.on)
            case kind if len(parent.on) < len(MIB_BY_DEPTH):
                size = MIB_BY_DEPTH[len(parent.on)] * MIB
                drive = self.stack.enter_context(loop_drive(parent.path / f"file{step}", size))
                on = parent.on | {parent.name}
                if kind == "mount":
                    command("mkfs.ext4", "-q", "-F", drive.node)
                    mount_point = self.stack.enter_context(mounted(drive.node, self.base / f"mounted{step}"))
                    self.directories.append(Directory(mount_point, drive.name, on))
                else:
                    self._keep(drive, drive.name, on)

    def stores(self) -> list[Store]:
        devices = [store for _, store in self.drives]
        return [*devices, *(each.examined(f"r{index}") for index, each in enumerate(self.directories))]

    def _in_memory(self, step: int) -> Directory:
        place = mounted("tmpfs", self.base / f"memory{step}", "-t", "tmpfs")
        return Directory(self.stack.enter_context(place), f"memory{step}", frozenset())

    def _keep(self, drive: LoopDrive, name: str, on: frozenset[str]) -> None:
        self.drives.append((drive, Store(name, on, examine(drive.target(), f"d{len(self.drives)}").target_key)))


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(s, marks=pytest.mark.real(why="many trees")) for s in range(2, 42))]
)
def test_two_targets_overlap_if_one_is_written_to_by_writing_to_the_other(tmp_path: Path, seed: int) -> None:
    with ExitStack() as stack:
        forest = Forest(tmp_path, seed, stack)
        for step in range(1, STEPS + 1):
            forest.grow(step)
        stores = forest.stores()
        assert len(stores) > 1
        for one, other in combinations(stores, 2):
            found = targets_overlap(one.key, other.key)
            assert found == targets_overlap(other.key, one.key) == one.overlaps(other), (one, other)
