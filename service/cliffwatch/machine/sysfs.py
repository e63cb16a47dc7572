"""Read attributes and device numbers from /sys."""

import os
import stat
from pathlib import Path

SYS = Path("/sys")
PROC = Path("/proc")


def read_text(attribute: Path) -> str | None:
    """Text of an attribute; None when it is missing, empty, or the driver does not answer: each means not known."""
    try:
        return attribute.read_text(errors="replace").strip(" \n\0") or None
    except OSError:
        return None


def read_name(attribute: Path) -> str | None:
    """File name in an attribute, of any bytes, decoded with os.fsdecode; None when it is missing or empty.

    The kernel ends it with a newline; everything before that, blanks too, belongs to the name.
    """
    try:
        return os.fsdecode(attribute.read_bytes().removesuffix(b"\n")) or None
    except OSError:
        return None


def read_number(attribute: Path) -> int | None:
    """Number in an attribute; None when it is not known or not a number."""
    text = read_text(attribute)
    return int(text) if text is not None and text.isdecimal() else None


def device_directory(major_minor: str, sys: Path = SYS) -> Path:
    """The directory below /sys/devices of a block device or partition. Raises OSError when there is none."""
    return (sys / "dev" / "block" / major_minor).resolve(strict=True)


def kernel_name(directory: Path) -> str:
    """Kernel name of a block device from its directory or link in sysfs, as in /proc, /dev and exporters: sysfs writes
    cciss/c0d0 as cciss!c0d0."""
    return directory.name.replace("!", "/")


def disk_directory(directory: Path) -> Path:
    """Directory of the whole drive, from the directory of the drive or of one of its partitions."""
    return directory.parent if (directory / "partition").exists() else directory


def device_number(path: Path | str) -> str | None:
    """major:minor of the block device node at `path`; None when there is none."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return number_of(status)


def number_of(status: os.stat_result) -> str | None:
    """major:minor of the block device that was statted; None when it is something else."""
    if not stat.S_ISBLK(status.st_mode):
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def major_minor_order(major_minor: str) -> tuple[int, ...]:
    """Sort key of a device number, by which 8:2 comes before 8:16."""
    return tuple(int(number) for number in major_minor.split(":"))
