"""Loop devices, mounts and helper processes for the tests of the gate; each is gone when its block ends."""

import errno
import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testkit.waiting import wait_until

from cliffwatch.gate import Examination, Objection
from cliffwatch.gate import hold as hold_target
from cliffwatch.model.target import DeviceTarget

MIB = 1024 * 1024
LOOP_CONTROL_ADD = 0x4C80
LOOP_CONTROL_REMOVE = 0x4C81


def command(*arguments: str | Path, text: str | None = None) -> str:
    """Run a program; returns its stdout. Raises AssertionError with its output when it fails."""
    # lvm complains of every descriptor that pytest holds.
    environment = {**os.environ, "LVM_SUPPRESS_FD_WARNINGS": "1"}
    done = subprocess.run(
        [str(each) for each in arguments], input=text, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class LoopDrive:
    """A loop device over a sparse file."""

    node: Path
    file: Path

    @property
    def name(self) -> str:
        return self.node.name

    def target(self, confirmed: bool = True) -> DeviceTarget:
        sentence = f"erase backing file {self.file}" if confirmed else ""
        return DeviceTarget(identity=str(self.file), confirmation=sentence)

    def digest(self) -> str:
        """SHA-256 of all bytes, read from the device."""
        with self.node.open("rb") as device:
            return hashlib.file_digest(device, "sha256").hexdigest()

    def make_partition(self) -> Path:
        """Write a partition table with one partition and add it to the kernel; returns the partition's node."""
        command("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", self.node, text="label: gpt\nsize=8MiB\n")
        command("partx", "--add", self.node)
        return Path(f"{self.node}p1")


@contextmanager
def loop_drive(
    file: Path, size_bytes: int = 32 * MIB, node: Path | None = None, read_only: bool = False
) -> Iterator[LoopDrive]:
    """Attach `file`, which is created when missing, to `node` or to a free loop device."""
    if not file.exists():
        with file.open("wb") as created:
            created.truncate(size_bytes)
    options = ["--read-only"] if read_only else []
    if node is None:
        node = Path(command("losetup", *options, "--find", "--show", file).strip())
    else:
        command("losetup", *options, node, file)
    try:
        yield LoopDrive(node, file)
    finally:
        if any(Path(f"/sys/block/{node.name}").glob(f"{node.name}p*")):
            command("partx", "--delete", node)
        command("losetup", "--detach", node)
        # The kernel keeps the device and its file until the last process that has the device open closes it.
        wait_until(lambda: not has_file(node, file), f"the end of {node}", seconds=30.0)


@contextmanager
def attached_at(file: Path, offset_bytes: int) -> Iterator[Path]:
    """Attach a loop device to the part of the file that begins at this offset."""
    node = Path(command("losetup", "--find", "--show", "--offset", str(offset_bytes), file).strip())
    try:
        yield node
    finally:
        command("losetup", "--detach", node)
        wait_until(lambda: not has_file(node, file), f"the end of {node}", seconds=30.0)


def has_file(node: Path, file: Path) -> bool:
    """Whether the loop device is still attached to the file."""
    try:
        backing = Path(f"/sys/block/{node.name}/loop/backing_file").read_text().rstrip("\n")
    except FileNotFoundError:
        return False
    return backing.removesuffix(" (deleted)") == str(file)


@contextmanager
def reserved_node() -> Iterator[Path]:
    """A loop device with so high a number that `losetup --find` of other programs picks it last."""
    number = 10_000 + os.getpid() % 10_000
    with Path("/dev/loop-control").open("rb") as control:
        fcntl.ioctl(control, LOOP_CONTROL_ADD, number)
        try:
            yield Path(f"/dev/loop{number}")
        finally:
            wait_until(partial(_is_removed, control.fileno(), number), f"the end of /dev/loop{number}", seconds=30.0)


def _is_removed(control: int, number: int) -> bool:
    """Remove a loop device; False while another process has it open."""
    try:
        fcntl.ioctl(control, LOOP_CONTROL_REMOVE, number)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


@contextmanager
def mounted(source: Path | str, mount_point: Path, *options: str) -> Iterator[Path]:
    mount_point.mkdir(exist_ok=True)
    command("mount", *options, source, mount_point)
    try:
        yield mount_point
    finally:
        # A process that was killed may still be on its way out.
        wait_until(lambda: _is_unmounted(mount_point), f"the end of the mount at {mount_point}", seconds=30.0)


def _is_unmounted(mount_point: Path) -> bool:
    """Unmount a file system; False while it is busy."""
    done = subprocess.run(["umount", mount_point], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "busy" in done.stderr, done.stderr
    return done.returncode == 0


@contextmanager
def helper(code: str, *arguments: str | Path, before: Iterable[str] = ()) -> Iterator[int]:
    """Start a Python process that runs `code` and then waits; yields its process id."""
    script = f"import os, sys\n{code}\nprint('ready', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        [*before, sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@contextmanager
def hold(examination: Examination) -> Iterator[Path]:
    """Claim the examined target; yields its path."""
    with hold_target(examination) as target:
        yield target.path


def message_of(examination: Examination, code: str) -> str:
    return next(each.message for each in examination.objections if each.code == code)


def codes(objections: Examination | Iterable[Objection]) -> set[str]:
    found = objections.objections if isinstance(objections, Examination) else objections
    return {objection.code for objection in found}
