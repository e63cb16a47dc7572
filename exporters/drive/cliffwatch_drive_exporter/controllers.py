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
    """`name` is the controller's (nvme0), `device` the kernel's name of the disk (nvme0n1), as other exporters have it.

    A controller with several disks goes by the first of them, since its logs are about all together; one without any
    goes by its own name. `model` is empty where it is not known.
    """

    name: str
    device: str
    serial: str
    model: str = ""


def find_controllers(sys: Path = SYS) -> list[Controller]:
    """All of them, by name; of two that lead to the same disk, the first."""
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
    """Empty where it is not known: a drive that is being unplugged still has a name."""
    try:
        return attribute.read_text(errors="replace").strip(" \n\0")
    except OSError:
        return ""
