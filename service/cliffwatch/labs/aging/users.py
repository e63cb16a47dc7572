"""Users that keep an aging drive from being detached: processes, mounts of other namespaces, stacked devices."""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.mounts import foreign_mounts
from cliffwatch.machine.sysfs import PROC, SYS, device_number, number_of, read_text

#: Arguments that start a run's worker; the second form is of versions before parts, whose workers may still run.
_WORKERS = (["-m", "cliffwatch.coordinator"], ["-m", "cliffwatch.worker"])


@dataclass(frozen=True, slots=True)
class Users:
    """Users that keep a drive from being detached: the ids of Cliffwatch runs, and all others as text."""

    runs: tuple[str, ...]
    others: tuple[str, ...]

    def remedy(self) -> str:
        """How to end the use of the drive, as the end of an error message."""
        others = ", ".join(self.others) or ("" if self.runs else "whatever uses it")
        runs = [f"run {run} works on it; stop it with: cliffwatch run stop {run}" for run in self.runs]
        return "; ".join([*([f"end {others}, then detach again"] if others else []), *runs])


def users_of(path: Path) -> Users:
    """Processes that have a file at or below `path` open, or their working directory there."""
    return _users(
        process for process in _processes() if any(each == path or path in each.parents for each in _opened(process))
    )


def process_ids_of(path: Path) -> list[int]:
    """Ids of the processes that have exactly the file `path` open."""
    return [int(process.name) for process in _processes() if path in _opened(process)]


def users_of_device(node: Path) -> Users:
    """Users that keep a block device from being detached: processes that have it or a file on it open, in any mount
    namespace, devices stacked on it, and mounts of it that this process does not see."""
    number = device_number(node)
    if number is None:
        return Users((), ())
    holders = sorted((SYS / "dev" / "block" / number / "holders").glob("*"))
    local = processes_on([number])
    others = (
        *local.others,
        *(f"{holder.name}, which lies on it" for holder in holders),
        *(f"what is mounted at {each}" for each in foreign_mounts(PROC) if each.mount.major_minor == number),
    )
    return Users(local.runs, others)


def processes_on(numbers: Iterable[str]) -> Users:
    """Processes that have one of these block devices (major:minor), or a file on it, open in any mount namespace."""
    wanted = set(numbers)
    return _users(process for process in _processes() if not wanted.isdisjoint(_devices(process)))


def mounts_elsewhere(numbers: Collection[str]) -> list[str]:
    """Mounts of the file systems with these numbers (major:minor) that only processes of other namespaces see.

    A new namespace starts as a copy of all mounts, so a mount that is unmounted here stays mounted there.
    """
    return [str(each) for each in foreign_mounts(PROC) if each.mount.major_minor in numbers]


def _processes() -> list[Path]:
    return sorted(PROC.glob("[0-9]*"), key=lambda entry: int(entry.name))


def _name(process: Path) -> str:
    return f"process {process.name} ({read_text(process / 'comm') or 'unknown'})"


def _users(processes: Iterable[Path]) -> Users:
    """Users from processes: a run's worker and the engine that it started are one user, the run."""
    runs: dict[str, None] = {}
    others = []
    for process in processes:
        run = _run_of(process)
        if run is None:
            others.append(_name(process))
        else:
            runs[run] = None
    return Users(tuple(runs), tuple(others))


def _run_of(process: Path) -> str | None:
    """Id of the run whose worker is the process or an ancestor of it, from the worker's last argument, the run's
    directory. None if no worker is found."""
    while True:
        try:
            arguments = (process / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
            parent = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
        except OSError:
            # The process ended.
            return None
        if arguments[-3:-1] in _WORKERS:
            return Path(arguments[-1]).name
        if parent == "0":
            return None
        process = PROC / parent


def _links(process: Path) -> list[Path]:
    try:
        return [process / "cwd", process / "root", *(process / "fd").iterdir()]
    except OSError:
        # The process ended, or is a kernel thread.
        return []


def _opened(process: Path) -> Iterator[Path]:
    for link in _links(process):
        try:
            yield link.readlink()
        except OSError:
            continue


def _devices(process: Path) -> Iterator[str]:
    """Numbers (major:minor) of the block devices that the process has open, or that its open files are on."""
    for link in _links(process):
        try:
            status = link.stat()
        except OSError:
            continue
        yield number_of(status) or f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
