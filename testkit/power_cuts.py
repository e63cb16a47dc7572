"""Power cuts of an emulated drive under a real file system that a process writes to.

A drive without power fails every request. The writing process ends or is killed, the file system is unmounted, and
power comes back to a drive that lost any part of what was not flushed; then the file system recovers.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from testkit.emulated import ServedDrive, attached, served_drive
from testkit.loops import command, mounted

#: Options of the drive; XFS accepts no smaller capacity.
FLAGS = ("--capacity=384MiB", "--pages-per-block=64", "--timing=off", "--buffer-protected=false")
MAKE = {"ext4": ("mkfs.ext4", "-q"), "xfs": ("mkfs.xfs", "-q")}
#: Power is cut at a random one of the drive's first WRITES writes, or of the first SAYINGS messages of the process.
WRITES, SAYINGS = 300, 60
#: Forks processes from a server that has already imported the modules that they need.
_CONTEXT = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class CutDisk:
    """An emulated drive with a file system on it, whose power can be cut."""

    drive: ServedDrive
    point: Path

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        with attached(self.drive.file) as node, mounted(node, self.point):
            yield self.point

    def write_until_cut(self, write: Callable[..., None], seed: int, **options: Any) -> list[Any]:
        """Run `write(directory, connection)` in a process until power is cut; returns the messages that it sent."""
        random = Random(seed)
        said: list[Any] = []
        last = random.randint(1, SAYINGS)
        with self.mounted() as directory:
            self.cut(random.randint(1, WRITES), seed)
            _CONTEXT.set_forkserver_preload([write.__module__])
            receiving, sending = _CONTEXT.Pipe(duplex=False)
            process = _CONTEXT.Process(target=_quietly, args=(write, directory, sending), kwargs=options)
            process.start()
            sending.close()
            try:
                while True:
                    said.append(receiving.recv())
                    if len(said) == last:
                        self.cut(0, seed)
                        process.kill()
            except EOFError:
                process.join()
        self.drive.ask("DELETE", "/faults")
        return said

    def cut(self, after_writes: int, seed: int) -> None:
        """Cut the power after this number of writes, 0 for at once; it comes back on `DELETE /faults` to the drive."""
        self.drive.ask("PUT", "/faults", {"power_cut": {"after_writes": after_writes, "seed": seed}})


@contextmanager
def cut_disk(directory: Path, file_system: str) -> Iterator[CutDisk]:
    """Serve a new drive with a file system of this kind: ext4 or xfs."""
    with served_drive(directory, *FLAGS) as drive:
        with attached(drive.file) as node:
            command(*MAKE[file_system], node)
        yield CutDisk(drive, directory / "disk")


def _quietly(write: Callable[..., None], directory: Path, sending: Connection, **options: Any) -> None:
    """Call `write` and send its exception as a message: a failing disk is expected, with whatever error it causes."""
    try:
        write(directory, sending, **options)
    except Exception as error:
        sending.send(("failed", repr(error)))
