"""Facts collected before the run: machine, drives, file system, versions; facts.json of the journal.

    version          1; a key never changes its meaning
    kernel, architecture, distribution, clock_source
    processor        model; count of processors that this process may use
    memory_bytes
    dirty_pages      vm.dirty_*: when the page cache is written back
    cgroup           controllers of version 2 (null: not mounted) and of version 1
    target           kind, key (its physical drives), path
    file_system      mount point, type, options, source; null for a device or no drive
    device           the block device below the file system or under test, with its members; null when there are several
    drives           the physical drives below it, with all that the kernel reports of each
    engine           the methods that the engine chose on this machine, such as `io` of the storage engine
    versions         cliffwatch, Python and what the engine runs
    warnings         sentences to consider when the result is read

No host name, address or user name is in it, so that a report can be shown to others.
"""

import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cliffwatch.base.version import VERSION
from cliffwatch.engines.contract import EngineFacts
from cliffwatch.gate import Examination
from cliffwatch.machine.inventory import Drive, Volume
from cliffwatch.machine.mounts import read_mounts
from cliffwatch.machine.sysfs import PROC, SYS, read_number, read_text
from cliffwatch.model.target import WITHOUT_DRIVE

_DIRTY_PAGES = (
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_ratio",
    "dirty_writeback_centisecs",
)


def collect_facts(
    examination: Examination, engine: EngineFacts, *, sys: Path = SYS, proc: Path = PROC
) -> dict[str, Any]:
    """Collect facts.json: the keys listed at the top of this module, in that order; null where not available."""
    examined = examination.drives[0] if examination.is_device else None
    volume = examination.volume
    device = volume.device if volume else examined
    leaves = examined.leaves if examined else examination.drives
    return {
        "version": 1,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": _distribution(),
        "clock_source": read_text(sys / "devices/system/clocksource/clocksource0/current_clocksource"),
        "processor": {"model": _processor_model(proc), "count": len(os.sched_getaffinity(0))},
        "memory_bytes": memory_bytes(proc),
        "dirty_pages": {name: read_number(proc / "sys/vm" / name) for name in _DIRTY_PAGES},
        "cgroup": _cgroup(proc),
        "target": {
            "kind": examination.target.kind,
            "key": examination.target_key,
            "path": None if examination.target.kind in WITHOUT_DRIVE else str(examination.path),
        },
        "file_system": _file_system_facts(volume) if volume else None,
        "device": _drive_facts(device) if device else None,
        "drives": [_drive_facts(drive) for drive in leaves],
        "engine": engine.ways,
        "versions": {"cliffwatch": VERSION, "python": platform.python_version(), **engine.versions},
        "warnings": [*examination.notes, *engine.warnings],
    }


def memory_bytes(proc: Path = PROC) -> int | None:
    """Total memory of the machine, in bytes; None if the kernel does not report it."""
    return _memory_row("MemTotal", proc)


def available_memory_bytes(proc: Path = PROC) -> int | None:
    """Memory that is available without swapping, in bytes; None if the kernel does not report it."""
    return _memory_row("MemAvailable", proc)


def _memory_row(name: str, proc: Path) -> int | None:
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def _drive_facts(drive: Drive) -> dict[str, Any]:
    facts = asdict(drive)
    facts["node"] = str(drive.node)
    facts["backing_file"] = None if drive.backing_file is None else str(drive.backing_file)
    facts["members"] = [_drive_facts(member) for member in drive.members]
    return facts


def _file_system_facts(volume: Volume) -> dict[str, Any]:
    # Without a drive, the source and the options with values may name servers, users and directories of others.
    is_local = bool(volume.drives)
    options = [option for option in volume.mount_options if is_local or "=" not in option]
    return {
        "mount_point": str(volume.mount_point),
        "type": volume.file_system,
        "mount_options": options,
        "source": volume.source if is_local else None,
        "major_minor": volume.major_minor,
    }


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _processor_model(proc: Path) -> str | None:
    for line in (proc / "cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return None


def _cgroup(proc: Path) -> dict[str, Any]:
    """Control group controllers by cgroup version; null if version 2 is not mounted. Many machines have both."""
    unified = [mount.mount_point for mount in read_mounts(proc) if mount.file_system == "cgroup2"]
    controllers = read_text(unified[0] / "cgroup.controllers") if unified else None
    # Name, number of the version 1 hierarchy (0: none), and two more columns: cgroups(7).
    rows = [line.split() for line in (proc / "cgroups").read_text().splitlines() if not line.startswith("#")]
    return {
        "version_2": (controllers or "").split() if unified else None,
        "version_1": sorted(row[0] for row in rows if row[1] != "0"),
    }
