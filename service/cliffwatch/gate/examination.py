"""Examine a target without writing: what it is, what is below it, and every reason not to write to it."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.gate.device_gate import lasting_objections, second_uses
from cliffwatch.gate.journal_directories import directory_with_journals, drive_with_journals, notes_on_journals
from cliffwatch.gate.objections import Objection
from cliffwatch.gate.run_directory import objections_to_own, ownership, run_directory, within_a_run
from cliffwatch.gate.sameness import UNKNOWN_BIRTH
from cliffwatch.gate.target_keys import key_of_drives, key_of_volume, siblings_of
from cliffwatch.machine.backing import FileIdentity, read_loops
from cliffwatch.machine.births import birth_of, described, file_system_of
from cliffwatch.machine.inventory import (
    Drive,
    Volume,
    drive_at,
    drives_by_identity,
    member_differences,
    names_instead,
    volume_of,
)
from cliffwatch.machine.mounts import shown
from cliffwatch.machine.sysfs import PROC, SYS, device_directory, device_number
from cliffwatch.model.target import AnyTarget, BrokerTarget, DeviceTarget, DirectoryTarget, PostgresTarget

#: Directories of the operating system (Filesystem Hierarchy Standard 3.0, chapter 3); and those that the kernel makes.
_OF_THE_KERNEL = (Path("/proc"), Path("/sys"))
_OF_THE_SYSTEM = (
    *_OF_THE_KERNEL,
    *(Path(f"/{name}") for name in ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "run", "sbin", "usr")),
)
#: Path of a target where nothing is written on this machine.
_NOWHERE = Path("/nonexistent")
#: The first PID namespace, in which all processes are: PROC_PID_INIT_INO of linux/proc_ns.h.
_ALL_PROCESSES = "pid:[4026531836]"


@dataclass(frozen=True, slots=True)
class Examination:
    """Examination of a target: what is known of it before anything is written.

    `path` is the run's own directory (to be created), the device's node, or a placeholder where nothing on this machine
    is written to; `directory` identifies the target directory. Runs whose `target_key` overlap (target_keys.py) must
    not run at the same time. `blocks` is the composition of a device, or of the drives below a directory, by hardware
    and size, not by name: it differs for another drive or file that got the same name, and for a copy. `drives` is the
    device under test, or the drives at the bottom of the directory's `volume`, or of the servers' data. `notes` do not
    forbid the run; they are hints for reading its result.
    """

    target: AnyTarget
    run_id: str
    path: Path
    is_device: bool
    target_key: str
    blocks: str | None = None
    drives: tuple[Drive, ...] = ()
    volume: Volume | None = None
    directory: FileIdentity | None = None
    objections: tuple[Objection, ...] = ()
    notes: tuple[str, ...] = ()


def examine(
    target: AnyTarget, run_id: str, *, journals: Path | None = None, sys: Path = SYS, proc: Path = PROC
) -> Examination:
    """Examine a target without writing a byte. `journals` is the directory of all runs' journals.

    Raises Problem(target_missing) when the target does not exist.
    """
    try:
        if isinstance(target, DirectoryTarget):
            return _examine_directory(target, run_id, journals, sys, proc)
        if isinstance(target, DeviceTarget):
            return _examine_device(target, run_id, journals, sys, proc)
        if isinstance(target, BrokerTarget):
            key = "broker:" + ",".join(sorted(target.bootstrap_servers))
            return _examine_servers(target, key, run_id, sys, proc)
        if isinstance(target, PostgresTarget):
            # Two loads on one server slow each other, whichever databases they use.
            return _examine_servers(target, f"postgres:{target.database.server}", run_id, sys, proc)
    except FileNotFoundError as error:
        raise _gone(target, error) from error
    return Examination(target, run_id, _NOWHERE, is_device=False, target_key=str(target))


def confirmation_sentence(examination: Examination) -> str:
    """Sentence that confirms a device's erasure, such as `erase serial S4EVNX0R512345`; empty for other targets."""
    target = examination.target
    if not isinstance(target, DeviceTarget):
        return ""
    return _sentence(target, examination.drives[0])


def place_of(examination: Examination) -> str | None:
    """Path of a directory target with its symbolic links resolved; None for other targets."""
    return None if examination.directory is None else str(examination.path.parent)


def directory_of(examination: Examination) -> str | None:
    """Identity of a directory target: its inode, birth (time of creation) and file system; None for other targets."""
    if examination.directory is None:
        return None
    parent = examination.path.parent
    return " of ".join(filter(None, [described(parent, examination.directory), file_system_of(parent)]))


def blocks_of(target: AnyTarget, *, sys: Path = SYS) -> str | None:
    """Current composition of a device, in the form of `Examination.blocks`; None for other targets.

    Raises Problem(target_missing) when the device is not there.
    """
    if not isinstance(target, DeviceTarget):
        return None
    try:
        return _blocks(_named(target, sys)[0], sys)
    except FileNotFoundError as error:
        raise _gone(target, error) from error


def _gone(target: AnyTarget, error: FileNotFoundError) -> Problem:
    fault = FieldFault("target", f"{error.filename} disappeared while it was examined; try again")
    return Problem(Code.TARGET_MISSING, f"{target} is gone", [fault])


def _reason(error: OSError | RuntimeError) -> str:
    """Reason why a path cannot be reached. RuntimeError is how a loop of symbolic links is reported."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _examine_directory(
    target: DirectoryTarget, run_id: str, journals: Path | None, sys: Path, proc: Path
) -> Examination:
    given = Path(target.path)
    try:
        real = given.resolve(strict=True)
        volume, directory = volume_of(real, sys, proc), FileIdentity.of(real.stat())
    except (OSError, RuntimeError) as error:
        fault = FieldFault("target.path", f"{given} cannot be reached: {_reason(error)}; make the directory first")
        raise Problem(Code.TARGET_MISSING, f"the directory {given} is not there", [fault]) from error
    if shown(str(real)) != str(real):
        fault = FieldFault("target.path", f"{given} leads to {shown(str(real))}, which is no text in UTF-8; rename it")
        raise Problem(Code.TARGET_MISSING, f"the directory {given} cannot be named", [fault])
    path = run_directory(real, run_id)
    notes = [*_notes_on_drives(volume.drives), *_notes_on_volume(volume)]
    if real != Path(os.path.normpath(given)):
        notes.append(f"{given} leads to {real} through symbolic links")
    objections = _directory_objections(real, volume)
    if journals is not None:
        objections += directory_with_journals(real, journals, proc)
        notes += notes_on_journals(real, volume, journals, sys, proc)
    objections += within_a_run(real)
    objections += second_uses(volume.drives, sys, proc)
    if not objections:
        objections += objections_to_own(path, ownership(path, run_id))
    return Examination(
        target=target,
        run_id=run_id,
        path=path,
        is_device=False,
        target_key=key_of_volume(volume, directory, sys, proc),
        blocks="; ".join(_blocks(drive, sys) for drive in volume.drives) or None,
        drives=volume.drives,
        volume=volume,
        directory=directory,
        objections=tuple(objections),
        notes=tuple(notes),
    )


def _directory_objections(real: Path, volume: Volume) -> list[Objection]:
    if not real.is_dir():
        message = f"{real} is {_kind_of(real)}, not a directory; name a directory, and files are made below it"
        return [Objection("not_a_directory", message)]
    if (system := _system_directory(real, Path(volume.mount_point))) is not None:
        message = f"{real} is in {system}, which is the operating system's; make a directory of its own for the test"
        return [Objection("system_directory", message)]
    if volume.read_only:
        return [Objection("read_only", f"{volume.mount_point} is mounted read-only; mount it read-write")]
    if not os.access(real, os.W_OK | os.X_OK, effective_ids=True):
        return [Objection("not_writable", f"this user may not write to {real}; change its owner or its mode")]
    return []


def _system_directory(real: Path, mount_point: Path) -> Path | None:
    """The directory of the operating system that `real` is in, unless another volume is mounted in it; else None."""
    if real == Path("/"):
        return real
    system = next((each for each in _OF_THE_SYSTEM if real.is_relative_to(each)), None)
    is_apart = system not in _OF_THE_KERNEL and system is not None and system in mount_point.parents
    return None if is_apart else system


def _kind_of(path: Path) -> str:
    kinds = {
        stat.S_IFREG: "a file",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
    }
    return kinds.get(stat.S_IFMT(path.lstat().st_mode), "something else")


def _examine_servers(
    target: BrokerTarget | PostgresTarget, target_key: str, run_id: str, sys: Path, proc: Path
) -> Examination:
    """Examine servers, which the run writes to over the network; it only watches their data directories' drives."""
    drives: dict[str, Drive] = {}
    for place, directory in enumerate(target.data_directories):
        try:
            volume = volume_of(Path(directory).resolve(strict=True), sys, proc)
        except (OSError, RuntimeError) as error:
            fault = FieldFault(
                f"target.data_directories.{place}", f"{directory} cannot be reached: {_reason(error)}; correct it"
            )
            raise Problem(Code.TARGET_MISSING, f"the directory {directory} is not there", [fault]) from error
        drives |= {drive.major_minor: drive for drive in volume.drives}
    return Examination(
        target=target,
        run_id=run_id,
        path=_NOWHERE,
        is_device=False,
        target_key=target_key,
        drives=tuple(drives.values()),
    )


def _examine_device(target: DeviceTarget, run_id: str, journals: Path | None, sys: Path, proc: Path) -> Examination:
    objections = []
    found = _named(target, sys)
    drive = found[0]
    if _partition_number(target.identity, sys):
        message = f"{target.identity} is a partition of {drive.name}; name a whole drive that is not in use"
        objections.append(Objection("is_partition", message))
    if len(found) > 1:
        names = " and ".join(each.name for each in found)
        message = f"{target.identity!r} names {names}; {names_instead(found, sys)}"
        objections.append(Objection("identity_ambiguous", message))
    objections += lasting_objections(drive, sys=sys, proc=proc)
    if journals is not None:
        objections += drive_with_journals(drive, journals, sys, proc)
    sentence = _sentence(target, drive)
    if target.confirmation != sentence:
        message = f"everything on {drive.name} would be lost; to confirm, give exactly: {sentence}"
        objections.append(Objection("confirmation_missing", message))
    blocks = _blocks(drive, sys)
    return Examination(
        target=target,
        run_id=run_id,
        path=drive.node,
        is_device=True,
        target_key=key_of_drives(drive.leaves, sys, proc),
        blocks=blocks,
        drives=(drive,),
        objections=tuple(objections),
        notes=(
            *_notes_on_drives(drive.leaves),
            *_notes_on_siblings(drive, sys),
            *_notes_on_blocks(drive, blocks),
            *_notes_on_processes(drive, proc),
        ),
    )


def _named(target: DeviceTarget, sys: Path) -> list[Drive]:
    """Drives that a target's identity names; for a partition, its drive. Raises Problem(target_missing)."""
    partition = _partition_number(target.identity, sys)
    return [drive_at(partition, sys)] if partition else drives_by_identity(target.identity, sys)


def _partition_number(identity: str, sys: Path) -> str | None:
    """major:minor if `identity` is a path of a partition's device node, else None. Raises Problem(target_missing)."""
    number = device_number(identity) if identity.startswith("/") else None
    if number is None:
        return None
    try:
        directory = device_directory(number, sys)
    except FileNotFoundError as error:
        message = f"{identity} is a node of the block device {number}, and this machine has none of that number"
        raise Problem(
            Code.TARGET_MISSING, "the device is not there", [FieldFault("target.identity", message)]
        ) from error
    if not (directory / "partition").exists():
        return None
    return number


def _sentence(target: DeviceTarget, drive: Drive) -> str:
    words = [word for word, value in drive.named_identities.items() if value == target.identity]
    return " ".join(["erase", *words[:1], target.identity])


def _blocks(drive: Drive, sys: Path) -> str:
    """Composition of a drive: size and hardware of the drives at its bottom.

    For a loop device it has the file's device, inode and birth (time of creation), and the offset in the file. An inode
    alone is not enough: its number is used again once the file is removed.
    """
    loops = {loop.major_minor: loop for loop in read_loops(sys)}
    found = []
    for leaf in drive.leaves:
        loop = loops.get(leaf.major_minor)
        file = None
        if loop is not None and loop.backing is not None:
            birth = birth_of(loop.backing_file, loop.backing.file) or UNKNOWN_BIRTH
            begin = f" from byte {loop.offset_bytes}" if loop.offset_bytes else ""
            file = f"file {loop.backing.file.inode} of {loop.backing.file.major_minor} {birth}{begin}"
        found.append(" ".join([*filter(None, [leaf.serial, leaf.wwn, file]), f"{leaf.size_bytes} bytes"]))
    return "; ".join(sorted(found))


def _notes_on_drives(drives: tuple[Drive, ...]) -> list[str]:
    notes = member_differences(drives)
    for drive in drives:
        if drive.backing_file is not None:
            notes.append(f"{drive.name} is a loop device: what is measured is the file {drive.backing_file}")
    return notes


def _notes_on_volume(volume: Volume) -> list[str]:
    if volume.drives:
        return []
    return [f"no drive is known below {volume.mount_point} ({volume.file_system}): no drive is measured"]


def _notes_on_siblings(drive: Drive, sys: Path) -> list[str]:
    return [f"{drive.name} and {other.name} share one drive: each slows the other" for other in siblings_of(drive, sys)]


def _notes_on_blocks(drive: Drive, blocks: str) -> list[str]:
    if UNKNOWN_BIRTH not in blocks:
        return []
    return [
        f"when the file behind {drive.name} was made cannot be known: one that takes its place and its inode's number "
        "before the run begins would be taken for it"
    ]


def _notes_on_processes(drive: Drive, proc: Path) -> list[str]:
    try:
        namespace = str((proc / "self" / "ns" / "pid").readlink())
    except OSError:
        return []  # A kernel without namespaces shows all processes.
    if namespace == _ALL_PROCESSES:
        return []
    return [
        "this service runs in a PID namespace of its own, as in a container, and does not see a process outside that "
        f"writes to {drive.name} without having claimed it: check there that none does"
    ]
