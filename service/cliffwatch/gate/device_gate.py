"""All reasons not to overwrite a drive: its uses, under this or another name, and its content."""

import errno
import os
import re
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from cliffwatch.gate.objections import Objection
from cliffwatch.machine.backing import FileIdentity, Loop, is_locked_by_another, opened, read_loops
from cliffwatch.machine.exports import exports
from cliffwatch.machine.inventory import Drive
from cliffwatch.machine.modelled import DriveContents, content_file
from cliffwatch.machine.signatures import Signature, SignaturesUnreadable, read_signatures
from cliffwatch.machine.sysfs import PROC, SYS, disk_directory, number_of, read_text
from cliffwatch.machine.twins import relay_of_loop, twins_of
from cliffwatch.machine.usage import (
    StackedDevice,
    file_writers,
    holders,
    layers_above,
    layers_below,
    mount_points,
    mounts_of_files,
    partitions,
    swap_areas,
    writers,
)

#: A check whether a drive is free holds it for an instant, as `losetup` does with each drive that it tries: only a
#: drive that is busy for this long counts as in use.
INSTANT_SECONDS = 0.5
_POLL_SECONDS = 0.02
#: Objections, besides `in_use`, to a drive whose use will not end within an instant.
_TAKEN = frozenset({"mounted", "swap", "holder_md", "holder_dm", "holder_loop", "holder_other"})
#: device-mapper UUIDs of devices that lie on one lower device without sharing a block: partitions of one mapped device
#: (kpartx), and volumes of one group (LVM) directly on its disks or in its thin pool. A snapshot and its origin, which
#: lie on one volume of the group, may share blocks.
_PARTITION_UUID = re.compile(r"part\d+-(?P<whole>.+)")
_VOLUME_UUID = re.compile(r"LVM-(?P<group>.{32})(?P<volume>.*)")


def lasting_objections(
    drive: Drive, *, held: Collection[str] = (), sys: Path = SYS, proc: Path = PROC
) -> list[Objection]:
    """As `device_objections`, but a use of the drive that ends within INSTANT_SECONDS is no objection."""
    deadline = time.monotonic() + INSTANT_SECONDS
    while True:
        objections = device_objections(drive, held=held, sys=sys, proc=proc)
        codes = {objection.code for objection in objections}
        if "in_use" not in codes or codes & _TAKEN or time.monotonic() >= deadline:
            return objections
        time.sleep(_POLL_SECONDS)


def open_exclusively(node: Path, major_minor: str) -> int:
    """Open the device `major_minor` by its node, with O_EXCL; a transient EBUSY is retried.

    Raises OSError: ENXIO where the node leads to something else.
    """
    deadline = time.monotonic() + INSTANT_SECONDS
    while True:
        try:
            return _opened_as(node, major_minor, os.O_EXCL)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() >= deadline:
                raise
        time.sleep(_POLL_SECONDS)


def device_objections(
    drive: Drive, *, held: Collection[str] = (), sys: Path = SYS, proc: Path = PROC
) -> list[Objection]:
    """All current reasons not to overwrite the drive, whatever the run request is.

    `held`: devices that this process has opened exclusively, as major:minor.
    """
    layers = layers_above(drive.major_minor, sys)
    objections = [*_stack_objections(layers, layers[1:]), *_use_objections(drive.name, layers, sys, proc)]
    objections += _part_objections(drive, layers, sys, proc)
    if drive.read_only:
        objections.append(Objection("read_only", f"{drive.name} is read-only; use a drive that can be written to"))
    objections += _content_objections(drive.node, drive.name, _partitions_of(drive, layers))
    objections += _backing_objections(drive, sys, proc)
    objections += _claim_objections(drive, held)
    return [*objections, *_twin_objections(drive, layers, held, sys, proc)]


def not_exclusive(node: Path, error: OSError) -> Objection:
    """Objection to a device that the kernel did not open exclusively, with the reason."""
    remedies = {errno.EBUSY: "stop what uses it"} | dict.fromkeys((errno.EACCES, errno.EPERM), "root may open devices")
    remedy = remedies.get(error.errno or 0, "see that the device is there and well")
    return Objection("in_use", f"{node} cannot be opened exclusively: {error.strerror}; {remedy}")


def _partitions_of(drive: Drive, layers: Collection[StackedDevice]) -> list[str]:
    return [layer.name for layer in layers if layer.is_partition and layer.below == drive.name]


def _stack_objections(layers: Collection[StackedDevice], above: Collection[StackedDevice]) -> list[Objection]:
    """Objections to devices that lie on a drive; `above` is `layers` without the drive itself."""
    objections = [_holder_objection(layer) for layer in above if not layer.is_partition]
    for layer in layers:
        if (layer.directory / "bcache").is_dir():
            message = f"{layer.name} is part of a bcache; stop and unregister it first"
            objections.append(Objection("holder_other", message))
    return objections


def _use_objections(name: str, layers: list[StackedDevice], sys: Path, proc: Path) -> list[Objection]:
    """Objections to uses of the device `name` or of devices that lie on it; `layers` are all of these."""
    objections = []
    for layer, mount_point in mount_points(layers, sys, proc):
        message = _used(name, layer, f"is mounted at {mount_point}", "unmount it")
        objections.append(Objection("mounted", message))
    for area in swap_areas(layers, proc=proc):
        objections.append(Objection("swap", f"{area} is swapped to; take it out of use with swapoff"))
    by_number = {layer.major_minor: layer for layer in layers}
    for export in exports(sys):
        if export.major_minor in by_number:
            use = f"is exported as {export.name} ({export.path})"
            objections.append(Objection("in_use", _used(name, by_number[export.major_minor], use, "remove that")))
    opened = name if len(layers) == 1 else f"{name}, or what lies on it,"
    for writer in writers(layers, proc):
        objections.append(Objection("in_use", f"{writer} has {opened} open for writing; end it"))
    return objections


def _used(name: str, layer: StackedDevice, use: str, remedy: str) -> str:
    """Message that the device `name`, or the device `layer` that lies on it, is in use."""
    if layer.name == name:
        return f"{name} {use}; {remedy}"
    return f"{layer.description} {use}, so {name} is in use; {remedy}"


def _part_objections(drive: Drive, layers: list[StackedDevice], sys: Path, proc: Path) -> list[Objection]:
    """Objections to uses of the devices below an array or a mapped device by anything but the drive itself.

    Two uses show only on a lower device: by another mapped device, since mapped devices share one exclusive claim on
    it, and by a process that opened it without a claim.
    """
    parts = layers_below(drive.major_minor, sys)
    own = {layer.major_minor for layer in [*layers, *parts]}
    objections = []
    for part in parts:
        examined = [(part, own | _neighbours(part, own))]
        if part.is_partition:
            whole = _whole_of(part)
            examined.append((whole, own | {each.major_minor for each in partitions(whole)}))
        for device, beside in examined:
            strangers = layers_above(device.major_minor, sys, beside=beside)[1:]
            found = _stack_objections(strangers, strangers)
            found += _use_objections(device.name, [device, *strangers], sys, proc)
            objections += [
                replace(each, message=f"{drive.name} lies on {device.name}: {each.message}") for each in found
            ]
    return objections


def _whole_of(partition: StackedDevice) -> StackedDevice:
    directory = disk_directory(partition.directory)
    return StackedDevice(directory.name, read_text(directory / "dev") or "", directory)


def _neighbours(part: StackedDevice, own: Collection[str]) -> set[str]:
    """major:minor of other devices stacked on `part` that share no block with the devices of `own` stacked on it."""
    above = list(holders(part))
    mine = [layer for layer in above if layer.major_minor in own]
    return {other.major_minor for other in above if any(_are_neighbours(each, other, part) for each in mine)}


def _are_neighbours(one: StackedDevice, other: StackedDevice, below: StackedDevice) -> bool:
    if read_text(other.directory / "md" / "level") == "container":
        return True  # A container names the members of arrays, and has no block of its own.
    mine, its, shared = (read_text(each.directory / "dm" / "uuid") or "" for each in (one, other, below))
    if (part := _PARTITION_UUID.fullmatch(mine)) and (sibling := _PARTITION_UUID.fullmatch(its)):
        return mine != its and part["whole"] == sibling["whole"]
    if (volume := _VOLUME_UUID.fullmatch(mine)) and (sibling := _VOLUME_UUID.fullmatch(its)):
        is_shared_volume = _VOLUME_UUID.fullmatch(shared) is not None and not shared.endswith("-tpool")
        return volume["group"] == sibling["group"] and not is_shared_volume
    return False


def _holder_objection(layer: StackedDevice) -> Objection:
    families = {"md": "holder_md", "dm-": "holder_dm", "loop": "holder_loop"}
    codes = [code for prefix, code in families.items() if layer.name.startswith(prefix)]
    return Objection([*codes, "holder_other"][0], f"{layer.description} is in use; take it down first")


def _twin_objections(
    drive: Drive, layers: list[StackedDevice], held: Collection[str], sys: Path, proc: Path
) -> list[Objection]:
    """Objections to uses of the drive's blocks under another device name, such as a second loop device on its file."""
    own = {layer.major_minor for layer in layers}
    twins = twins_of(drive, sys, proc)
    objections = []
    for twin in twins.known:
        # Devices that lie on the drive itself were reported for it.
        others = [layer for layer in layers_above(twin.drive.major_minor, sys) if layer.major_minor not in own]
        found = [*_stack_objections(others, others[1:]), *_use_objections(twin.drive.name, others, sys, proc)]
        if twin.original.backing_file is not None:
            # The twin may begin elsewhere in the file, and have content that the drive itself does not show.
            found += _content_objections(twin.drive.node, twin.drive.name, _partitions_of(twin.drive, others))
        found += _claim_objections(twin.drive, held)
        objections += [replace(each, message=f"{twin.reason}: {each.message}") for each in found]
    for loop in twins.unknown:
        message = (
            f"what {loop.name} lies on cannot be determined, and it may be what {drive.name} lies on; run the service "
            f"as root with the node /dev/{loop.name}, which has to lead to it, or detach {loop.name}"
        )
        objections.append(Objection("in_use", message))
    for loop in twins.relayed:
        message = (
            f"{loop.name} lies on {loop.backing_file}, which may be the file that {drive.name} lies on: one of the two "
            "is on an overlay, on FUSE or on a network's file system, which gives a file another identity; detach "
            f"{loop.name}, or use a file of another size"
        )
        objections.append(Objection("in_use", message))
    return objections


def second_uses(drives: Iterable[Drive], sys: Path = SYS, proc: Path = PROC) -> list[Objection]:
    """Objections to uses of a directory's loop devices under another name, which could destroy the run's files.

    Two loop devices over one file do not know of each other.
    """
    objections = []
    for drive in drives:
        for twin in twins_of(drive, sys, proc).known if drive.backing_file is not None else ():
            own = {layer.major_minor for layer in layers_above(drive.major_minor, sys)}
            others = [each for each in layers_above(twin.drive.major_minor, sys) if each.major_minor not in own]
            found = _use_objections(twin.drive.name, others, sys, proc) if others else []
            objections += [replace(each, message=f"{twin.reason}: {each.message}") for each in found]
    return objections


def _backing_objections(drive: Drive, sys: Path, proc: Path) -> list[Objection]:
    """Objections to uses of the files behind loop devices: the drive itself, or drives that it is made of."""
    names = {leaf.major_minor: leaf.backing_file for leaf in drive.leaves if leaf.backing_file is not None}
    objections = []
    for loop in read_loops(sys) if names else []:
        name = names.get(loop.major_minor)
        if name is None:
            continue
        if loop.backing is None:
            message = (
                f"what {loop.name} lies on cannot be determined; run the service as root with the node "
                f"/dev/{loop.name}, which has to lead to it"
            )
            objections.append(Objection("backing_unknown", message))
            continue
        if loop.backing.block_device is not None:
            message = f"{loop.name} is a loop device over {loop.backing_file}; name the drive that this is on"
            objections.append(Objection("backed_by_device", message))
            continue
        if not _leads_to(name, loop.backing.file):
            message = (
                f"{name}, as the file behind {loop.name} is called, leads to another file or to none that can be "
                f"looked at from here: it was deleted, covered by a mount or is elsewhere; attach {loop.name} anew"
            )
            objections.append(Objection("backing_unknown", message))
        objections += _file_objections(loop, loop.backing.file, sys, proc)
    return objections


def _file_objections(loop: Loop, identity: FileIdentity, sys: Path, proc: Path) -> list[Objection]:
    """Objections to uses and content of the file behind a loop device; `identity` is that file's."""
    file, objections = loop.backing_file, []
    behind = f"{file}, the file behind {loop.name}"
    contents = DriveContents.read(proc)
    for export in exports(sys):
        if contents.of(export.file) == contents.of(identity):
            message = f"{behind}, is exported as {export.name} ({export.path}); remove that"
            objections.append(Objection("in_use", message))
    with opened(file, identity) as descriptor:
        size_bytes = None if descriptor is None else os.fstat(descriptor).st_size
        # Content that begins where the file does, or is found by its end, does not show on a part of the file. A device
        # that is not known to end with its file may be such a part.
        is_part = loop.offset_bytes != 0 or loop.end_bytes is None
        if descriptor is not None and is_part:
            objections += _content_objections(Path(f"/proc/{os.getpid()}/fd/{descriptor}"), behind, [])
        elif is_part and _leads_to(file, identity):
            message = f"{loop.name} may be a part of {file}, which cannot be opened: let the service read it"
            objections.append(Objection("signatures_unknown", message))
    objections += _writer_objections(loop, identity, size_bytes, behind, proc)
    for area in swap_areas([], [identity, contents.of(identity)], proc):
        objections.append(Objection("swap", f"{area} is {behind}, and swapped to; take it out of use with swapoff"))
    for mount in mounts_of_files(proc):
        message = (
            f"{mount} is an EROFS file system that lies on files, and {behind}, may be one of them: the kernel "
            "does not report which; unmount it"
        )
        objections.append(Objection("in_use", message))
    return objections


def _writer_objections(
    loop: Loop, identity: FileIdentity, size_bytes: int | None, behind: str, proc: Path
) -> list[Objection]:
    objections = []
    contents = DriveContents.read(proc)
    content = contents.of(identity)
    kept = loop.backing_file if content == identity else content_file(content, proc)
    names = frozenset(each.name for each in (loop.backing_file, kept) if each is not None)
    users = file_writers(identity, size_bytes, relay_of_loop(loop, contents, proc).is_relayed, proc, names)
    for writer in users.known:
        objections.append(Objection("in_use", f"{writer} has {behind}, open for writing; end it"))
    for writer in users.possible:
        message = (
            f"{writer} has a file open for writing that may be {behind}: it is of that size, and one of the two is "
            "on an overlay, on FUSE or on a network's file system, which gives a file another identity; end it, or "
            "use a file of another size"
        )
        objections.append(Objection("in_use", message))
    if not users.known and kept is not None and is_locked_by_another(kept, content):
        message = f"a process that cannot be seen from here has a lock on {behind}; end it"
        objections.append(Objection("in_use", message))
    return objections


def _leads_to(name: Path, identity: FileIdentity) -> bool:
    try:
        return FileIdentity.of(name.lstat()) == identity
    except OSError:
        return False


def _content_objections(node: Path, name: str, parts: list[str]) -> list[Objection]:
    """Objections to data found on the drive or file `name` by its signatures; `parts` are names of its partitions."""
    objections = []
    try:
        signatures = read_signatures(node)
    except SignaturesUnreadable as error:
        signatures = ()
        message = f"what is on {name} cannot be determined: {error}"
        objections.append(Objection("signatures_unknown", message))
    kinds: dict[str, list[str]] = {"partition_table": parts} if parts else {}
    for signature in signatures:
        kinds.setdefault(_signature_code(signature), []).append(signature.kind)
    for code, names in kinds.items():
        message = f"{name} holds {', '.join(names)}; if it is not needed, remove it with wipefs --all"
        objections.append(Objection(code, message))
    return objections


def _signature_code(signature: Signature) -> str:
    # libblkid counts a member of a ZFS pool or of a multi-device file system among the file systems.
    if signature.kind.endswith("_member") or signature.usage in {"raid", "crypto"}:
        return "member_signature"
    codes = {"filesystem": "filesystem_signature", "partition-table": "partition_table"}
    return codes.get(signature.usage, "other_signature")


def _claim_objections(drive: Drive, held: Collection[str]) -> list[Objection]:
    # The kernel grants this only when no file system, holder or other exclusive opener has any part of the drive,
    # including those in mount namespaces that cannot be seen from here. A device held already must still have its node.
    try:
        os.close(_opened_as(drive.node, drive.major_minor, 0 if drive.major_minor in held else os.O_EXCL))
    except OSError as error:
        return [not_exclusive(drive.node, error)]
    return []


def _opened_as(node: Path, major_minor: str, flags: int) -> int:
    """Open the device `major_minor` by its node. Raises OSError: ENXIO where the node leads to something else."""
    descriptor = os.open(node, os.O_RDONLY | os.O_NONBLOCK | flags)
    if number_of(os.fstat(descriptor)) == major_minor:
        os.set_blocking(descriptor, True)
        return descriptor
    os.close(descriptor)
    raise OSError(errno.ENXIO, f"it does not lead to the device {major_minor}")
