"""Power that is cut under a real file system: what it is asked of, and how often it is cut.

A drive without power fails every request. What holds its file system is killed, the file system is unmounted, and power
comes back to a drive that lost any part of what it had not been asked to flush; then the file system recovers.
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

#: XFS takes no smaller one.
FLAGS = ("--capacity=384MiB", "--pages-per-block=64", "--timing=off", "--buffer-protected=false")
MAKE = {"ext4": ("mkfs.ext4", "-q"), "xfs": ("mkfs.xfs", "-q")}
#: Power is cut at one of so many writes of the drive, or when one of so many things was said to be done.
WRITES, SAYINGS = 300, 60
#: Starts processes from one that has imported what they need.
_CONTEXT = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class CutDisk:
    """A drive with a file system on it."""

    drive: ServedDrive
    point: Path

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        with attached(self.drive.file) as node, mounted(node, self.point):
            yield self.point

    def write_until_cut(self, write: Callable[..., None], seed: int, **options: Any) -> list[Any]:
        """What `write(directory, connection)`, in a process of its own, said of what it had done when power was cut."""
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
        """Take the power away after so many writes, 0 at once; it comes back when the fault is deleted."""
        self.drive.ask("PUT", "/faults", {"power_cut": {"after_writes": after_writes, "seed": seed}})


@contextmanager
def cut_disk(directory: Path, file_system: str) -> Iterator[CutDisk]:
    """A new one, of this kind."""
    with served_drive(directory, *FLAGS) as drive:
        with attached(drive.file) as node:
            command(*MAKE[file_system], node)
        yield CutDisk(drive, directory / "disk")


def _quietly(write: Callable[..., None], directory: Path, sending: Connection, **options: Any) -> None:
    """A disk that fails is what is waited for, whatever the file system, the database or the service makes of it."""
    try:
        write(directory, sending, **options)
    except Exception as error:
        sending.send(("failed", repr(error)))
