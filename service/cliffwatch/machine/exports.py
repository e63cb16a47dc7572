"""Exports of this machine to others over a network or a bus: namespaces of nvmet, and storage objects of LIO.

The kernel writes to what they lie on for connected hosts. nvmet opens a drive without claiming it, and neither
opens a file as a process would, so no holder and no process shows them; configfs does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.sysfs import SYS, number_of, read_name


@dataclass(frozen=True, slots=True)
class Export:
    """Exported drive or file: `name` of the export, `path` and, for a drive, `major_minor` of what is exported."""

    name: str
    path: str
    file: FileIdentity
    major_minor: str | None = None


def exports(sys: Path = SYS) -> list[Export]:
    """Exports that can be seen from here. A path that leads nowhere exports nothing of this machine."""
    found = []
    for name, path in _attached_paths(sys / "kernel" / "config"):
        try:
            status = Path(path).stat()
        except OSError:
            continue
        found.append(Export(name, path, FileIdentity.of(status), number_of(status)))
    return found


def _attached_paths(config: Path) -> Iterator[tuple[str, str]]:
    for namespace in sorted((config / "nvmet" / "subsystems").glob("*/namespaces/*")):
        path = read_name(namespace / "device_path")
        if path is not None and path.startswith("/"):
            yield f"namespace {namespace.name} of the nvmet subsystem {namespace.parent.parent.name}", path
    for store in sorted((config / "target" / "core").glob("*/*")):
        path = read_name(store / "udev_path")
        if path is not None and path.startswith("/"):
            yield f"the LIO storage object {store.parent.name}/{store.name}", path
