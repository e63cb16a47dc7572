"""The machine's NVMe controllers, as /sys shows them."""

import re
from dataclasses import dataclass
from pathlib import Path

SYS = Path("/sys")
_CONTROLLER = re.compile(r"nvme\d+")
#: A namespace, or one path to it: `nvme0c1n1` is the path of controller 1 to what is known as `nvme0n1`.
_NAMESPACE = re.compile(r"(nvme\d+)(?:c\d+)?(n\d+)")


@dataclass(frozen=True, slots=True)
class Controller:
    """An NVMe controller. `name` is its own (nvme0), `device` the kernel's name of its disk (nvme0n1), as in other
    exporters.

    With several disks, `device` is the first of them, since the controller's logs cover all together; without any, it
    is the controller's name. `serial` and `model` are empty if unknown.
    """

    name: str
    device: str
    serial: str
    model: str = ""


def find_controllers(sys: Path = SYS) -> list[Controller]:
    """All NVMe controllers, by name; of several that lead to the same disk, only the first."""
    directory = sys / "class" / "nvme"
    names = [entry.name for entry in directory.iterdir()] if directory.is_dir() else []
    found: dict[tuple[str, str], Controller] = {}
    for name in sorted(filter(_CONTROLLER.fullmatch, names), key=lambda name: int(name[4:])):
        place = directory / name
        controller = Controller(name, _device(place) or name, _read(place / "serial"), _read(place / "model"))
        found.setdefault((controller.device, controller.serial), controller)
    return list(found.values())


def _device(directory: Path) -> str | None:
    try:
        names = [entry.name for entry in directory.iterdir()]
    except OSError:
        return None
    disks = {match[1] + match[2] for name in names if (match := _NAMESPACE.fullmatch(name))}
    return min(disks, key=lambda disk: int(disk.rpartition("n")[2])) if disks else None


def _read(attribute: Path) -> str:
    """Text of an attribute; empty if it cannot be read, as when a drive is being unplugged but is still listed."""
    try:
        return attribute.read_text(errors="replace").strip(" \n\0")
    except OSError:
        return ""
