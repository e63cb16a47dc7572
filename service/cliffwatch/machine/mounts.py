"""The mounts that this process sees, and the one that a path is on."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.sysfs import read_text

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo.

    `major_minor` is the kernel's device number of the file system; a major of 0 (`0:36`) stands for no device, or for
    one that only `source` names (btrfs). `root` is the part of the file system that the mount point shows. `options`
    are those of the mount, then those of the file system. `parent_id` is the mount that this one is mounted on.
    """

    mount_id: int
    major_minor: str
    root: Path
    mount_point: Path
    options: tuple[str, ...]
    file_system: str
    source: str
    parent_id: int

    @property
    def is_anonymous(self) -> bool:
        return self.major_minor.startswith("0:")


def unescape(text: str) -> str:
    """Decode octal escapes: the kernel writes a space in a path as `\\040`, and tab, newline, backslash and # alike."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def read_mounts(proc: Path = Path("/proc"), process: str = "self") -> list[Mount]:
    """All mounts that the process sees, in the kernel's order (proc_pid_mountinfo(5)). Raises OSError."""
    return [_mount(line) for line in lines_of(proc / process / "mountinfo")]


def lines_of(table: Path) -> list[str]:
    """Lines of a kernel table that contains file names, which may have any bytes but a newline. Raises OSError.

    The names can be used to open the files; make text of a name with `shown` before it is displayed.
    """
    return [os.fsdecode(line) for line in table.read_bytes().split(b"\n") if line]


def shown(text: str) -> str:
    """File name for display, with bytes that are not UTF-8 replaced."""
    return text.encode(errors="surrogatepass").decode(errors="replace")


@dataclass(frozen=True, slots=True)
class ForeignMount:
    """A mount in another mount namespace; `process_id` and `command` are those of a process in that namespace."""

    mount: Mount
    namespace: str
    process_id: int
    command: str

    def __str__(self) -> str:
        """Such as `/data in the mount namespace mnt:[4026532201] of process 12 (postgres)`."""
        process = f"process {self.process_id} ({self.command})"
        return f"{self.mount.mount_point} in the mount namespace {self.namespace} of {process}"


def foreign_mounts(proc: Path = Path("/proc")) -> list[ForeignMount]:
    """Mounts of the other mount namespaces, as far as this user may read these."""
    seen = {_namespace(proc / "self")}
    found = []
    for process in sorted(proc.glob("[0-9]*"), key=lambda entry: int(entry.name)):
        namespace = _namespace(process)
        if namespace is None or namespace in seen:
            continue
        try:
            mounts = read_mounts(proc, process.name)
        except OSError:
            # The process ended; another one may show the same namespace.
            continue
        seen.add(namespace)
        command = read_text(process / "comm") or "unknown"
        found += [ForeignMount(mount, namespace, int(process.name), command) for mount in mounts]
    return found


def _namespace(process: Path) -> str | None:
    try:
        return str((process / "ns" / "mnt").readlink())
    except OSError:
        return None


def _mount(line: str) -> Mount:
    # The number of optional fields before the lone dash varies.
    before, _, after = line.partition(" - ")
    mount_id, parent_id, major_minor, root, mount_point, options = before.split(" ")[:6]
    file_system, source, super_options = after.split(" ")[:3]
    return Mount(
        mount_id=int(mount_id),
        major_minor=major_minor,
        root=Path(unescape(root)),
        mount_point=Path(unescape(mount_point)),
        options=tuple(dict.fromkeys([*options.split(","), *super_options.split(",")])),
        file_system=file_system,
        source=unescape(source),
        parent_id=int(parent_id),
    )


def mount_of(path: Path, proc: Path = Path("/proc")) -> Mount:
    """The mount that `path` is on. Raises OSError when the path cannot be reached.

    The mount is read from an open descriptor, since comparing paths can fail: the longest mount point that `path`
    begins with is hidden when something was mounted over its parent.
    """
    descriptor = os.open(path, os.O_PATH)
    try:
        mount_id = _mount_id(descriptor)
    finally:
        os.close(descriptor)
    for mount in read_mounts(proc):
        if mount.mount_id == mount_id:
            return mount
    raise OSError(f"{path} is on a mount (number {mount_id}) that /proc/self/mountinfo does not list")


def is_mounted(descriptor: int) -> bool:
    """Whether the mount through which a descriptor was opened still exists, without accessing its file system."""
    mount_id = _mount_id(descriptor)
    return any(mount.mount_id == mount_id for mount in read_mounts())


def on_one_mount(one: int, other: int) -> bool:
    """Whether two descriptors were opened through one mount; without accessing file systems."""
    return _mount_id(one) == _mount_id(other)


def _mount_id(descriptor: int) -> int:
    lines = lines_of(Path(f"/proc/self/fdinfo/{descriptor}"))
    return next(int(line.split()[1]) for line in lines if line.startswith("mnt_id:"))
