"""Emulated drives: a file served through FUSE with a loop device on it (direct I/O), removed when the block ends."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from testkit.checkout import PROGRAMS, ROOT, STATE
from testkit.loops import command, mounted

#: Signals at a second's distance, after which a drive that is to end is stuck.
_SIGNALS = 60


@dataclass(frozen=True, slots=True)
class ServedDrive:
    """An emulated drive as a file; `url` is that of its HTTP interface."""

    file: Path
    pid: int
    url: str

    def ask(self, method: str, path: str, body: object = None) -> Any:
        connection = HTTPConnection(self.url.removeprefix("http://"))
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = json.load(connection.getresponse())
        connection.close()
        return answer


@dataclass(frozen=True, slots=True)
class EmulatedDrive(ServedDrive):
    """A served drive with the loop device on its file."""

    node: Path


def build() -> None:
    """Build the release binaries from the sources, so that tests measure the present sources."""
    subprocess.run([ROOT / "setup" / "binaries", "release"], check=True, env={**os.environ, "STATE": str(STATE)})


@contextmanager
def served_drive(directory: Path, *flags: str) -> Iterator[ServedDrive]:
    """Serve a drive whose content lies in `directory`, with these flags of `cliffwatch-drive mount`."""
    point = directory / "flash"
    point.mkdir(parents=True)
    process = subprocess.Popen(
        [PROGRAMS / "cliffwatch-drive", "mount", "--directory", point, "--backing", directory / "content", *flags],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        ready = json.loads(process.stdout.readline())
        yield ServedDrive(Path(ready["file"]), process.pid, ready["url"])
    finally:
        if _ended(process) == -signal.SIGKILL:
            command("umount", "--lazy", point)
        process.stdout.close()


def _ended(process: "subprocess.Popen[str]") -> int:
    """End a drive; returns its exit status. One that anything on the machine looks into at that moment goes on serving,
    and asks to be signalled again."""
    for _ in range(_SIGNALS):
        process.terminate()
        try:
            return process.wait(1)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"the drive of process {process.pid} is in use, and did not end after {_SIGNALS} signals")


@contextmanager
def emulated_drive(directory: Path, *flags: str) -> Iterator[EmulatedDrive]:
    """Serve a drive as `served_drive` does, with a loop device on its file."""
    with served_drive(directory, *flags) as drive, attached(drive.file) as node:
        yield EmulatedDrive(drive.file, drive.pid, drive.url, node)


@contextmanager
def attached(file: Path) -> Iterator[Path]:
    """Attach a loop device to a file, with direct I/O."""
    node = Path(command("losetup", "--find", "--show", "--direct-io=on", file).strip())
    try:
        yield node
    finally:
        command("losetup", "--detach", node)


@contextmanager
def file_system(node: Path, point: Path) -> Iterator[Path]:
    """Make an ext4 file system on the device and mount it."""
    command("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", node)
    with mounted(node, point):
        yield point
