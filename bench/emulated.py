"""An emulated drive for a benchmark: served through FUSE, a loop device with direct I/O on it, gone with its block."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from testkit.checkout import STATE
from testkit.loops import command, mounted

PROGRAM = STATE / "target" / "release" / "cliffwatch-drive"


@dataclass(frozen=True, slots=True)
class EmulatedDrive:
    """A served drive and its disk."""

    node: Path
    pid: int
    url: str

    def ask(self, method: str, path: str) -> Any:
        connection = HTTPConnection(self.url.removeprefix("http://"))
        connection.request(method, path)
        answer = json.load(connection.getresponse())
        connection.close()
        return answer


def build() -> None:
    """Make the program, so that what is measured is what the sources say."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(STATE / "target")}
    arguments = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "cliffwatch-drive"]
    subprocess.run(arguments, check=True, env=environment, cwd=Path(__file__).parents[1])


@contextmanager
def emulated_drive(directory: Path, *flags: str) -> Iterator[EmulatedDrive]:
    """Serve a drive whose content lies in `directory`, with these flags of `cliffwatch-drive mount`."""
    point = directory / "flash"
    point.mkdir(parents=True)
    process = subprocess.Popen(
        [PROGRAM, "mount", "--directory", point, "--backing", directory / "content", *flags],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        ready = json.loads(process.stdout.readline())
        with attached(Path(ready["file"])) as node:
            yield EmulatedDrive(node, process.pid, ready["url"])
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@contextmanager
def attached(file: Path) -> Iterator[Path]:
    """The loop device of a file, with direct I/O."""
    node = Path(command("losetup", "--find", "--show", "--direct-io=on", file).strip())
    try:
        yield node
    finally:
        command("losetup", "--detach", node)


@contextmanager
def file_system(node: Path, point: Path) -> Iterator[Path]:
    """ext4 on the device, mounted."""
    command("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", node)
    with mounted(node, point):
        yield point


def fio_jobs(*arguments: str, before: Sequence[str] = ()) -> dict[str, Any]:
    """Run fio, by the command `before`; its JSON output, all jobs reported together."""
    common = [
        *before,
        "fio",
        "--name=load",
        "--output-format=json",
        "--group_reporting",
        "--direct=1",
        "--ioengine=libaio",
    ]
    output = command(*common, "--randrepeat=0", "--lat_percentiles=1", *arguments)
    job: dict[str, Any] = json.loads(output)["jobs"][0]
    return job
