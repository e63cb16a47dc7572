"""Drives and files that this machine exports over a network or a bus: namespaces of nvmet, storage objects of LIO.

The kernel writes to them for connected hosts. nvmet opens a drive without claiming it, and neither nvmet nor LIO opens
a file as a process would, so exports appear in no list of holders or open files, only in configfs.
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
    """Exports in this machine's configfs. An export with a path that does not exist here is left out."""
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
