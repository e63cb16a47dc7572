"""Objections of the safety gate: a code for programs, a message for people, one table of both."""

from collections.abc import Iterable
from dataclasses import dataclass

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.machine.mounts import shown


@dataclass(frozen=True, slots=True)
class Objection:
    """A reason not to write to a target. `code` is a key of OBJECTIONS; `message` has the cause and the remedy.

    Bytes of a file name that are not UTF-8 are replaced in the message.
    """

    code: str
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shown(self.message))

    @property
    def meaning(self) -> str:
        """The meaning of the code, without what is at fault this time."""
        return OBJECTIONS[self.code].meaning


@dataclass(frozen=True, slots=True)
class ObjectionKind:
    """Meaning of an objection's code, and the field of the run request that is at fault."""

    field: str
    meaning: str


OBJECTIONS: dict[str, ObjectionKind] = {
    "mounted": ObjectionKind("target.identity", "the drive, a part of it or something that lies on it is mounted"),
    "swap": ObjectionKind("target.identity", "the drive or a part of it is swapped to"),
    "holder_md": ObjectionKind("target.identity", "an md array lies on the drive"),
    "holder_dm": ObjectionKind(
        "target.identity", "a device-mapper device lies on the drive: LVM, encryption, multipath or other"
    ),
    "holder_loop": ObjectionKind("target.identity", "a loop device lies on the drive"),
    "holder_other": ObjectionKind(
        "target.identity", "another kind of block device lies on the drive: bcache, DRBD or other"
    ),
    "in_use": ObjectionKind("target", "a process has the target exclusively or writes to it, or another run has it"),
    "targets_share_a_drive": ObjectionKind("target", "two targets of one run are on one drive"),
    "partition_table": ObjectionKind("target.identity", "there is a partition table on the drive"),
    "filesystem_signature": ObjectionKind("target.identity", "there is a file system on the drive"),
    "member_signature": ObjectionKind(
        "target.identity", "the drive is a member of a RAID, volume group or pool, or encrypted"
    ),
    "other_signature": ObjectionKind(
        "target.identity", "there is a known signature of another kind on the drive, such as swap"
    ),
    "signatures_unknown": ObjectionKind("target.identity", "what is on the drive could not be found out"),
    "is_partition": ObjectionKind("target.identity", "the target is a partition, not a whole drive"),
    "backed_by_device": ObjectionKind("target.identity", "the target is a loop device over a block device"),
    "backing_unknown": ObjectionKind(
        "target.identity", "what the loop device lies on cannot be found out, or is not what its name leads to"
    ),
    "identity_ambiguous": ObjectionKind("target.identity", "the identity names several drives"),
    "confirmation_missing": ObjectionKind(
        "target.confirmation", "the sentence that confirms the erasure was not given"
    ),
    "target_changed": ObjectionKind("target", "the target is no longer the one that was examined"),
    "silent": ObjectionKind("target.identity", "the drive does not answer"),
    "read_only": ObjectionKind("target", "the drive or file system is read-only"),
    "not_a_directory": ObjectionKind("target.path", "the path is not a directory"),
    "system_directory": ObjectionKind("target.path", "the directory is the operating system's"),
    "journals": ObjectionKind("target.path", "the directory is that of the runs' journals, or in it"),
    "holds_journals": ObjectionKind("target.identity", "the runs' journals are on the drive"),
    "not_writable": ObjectionKind("target.path", "this user may not write to the directory"),
    "foreign_directory": ObjectionKind(
        "target.path", "the run's own directory is there and is not this run's, or the target is in that of another"
    ),
    "outside_target": ObjectionKind("workload.load", "the workload would write outside the target"),
    "file_exists": ObjectionKind("workload.load", "the workload would write to a file that is there already"),
    "reserve": ObjectionKind("workload.load", "too little space would stay free"),
    "brokers_unreachable": ObjectionKind("target.bootstrap_servers", "a broker does not answer"),
    "database_unreachable": ObjectionKind("target.dsn", "the database does not answer, or refuses the user"),
    "load_refused": ObjectionKind("workload.load", "the target would refuse the load, such as its replicas"),
    "metrics_unreachable": ObjectionKind("workload.load", "the Prometheus with the metrics to observe does not answer"),
    "metrics_missing": ObjectionKind("workload.load", "Prometheus has no such metrics, or too few samples of them"),
    "device_too_small": ObjectionKind("workload.load", "the workload would write beyond the end of the drive"),
}

#: Codes that mean that the workload is too large. Codes in none of these three sets mean an unsafe target.
_SPACE = frozenset({"reserve", "device_too_small"})
#: Codes that mean that the brokers or the database could not take the load.
_SERVERS = frozenset({"brokers_unreachable", "database_unreachable", "load_refused"})
#: Codes that mean that a load which others make cannot be observed.
_METRICS = frozenset({"metrics_unreachable", "metrics_missing"})


def require_clear(objections: Iterable[Objection]) -> None:
    """Raise Problem if there are objections, with one fault for each.

    The Problem's code is space_insufficient when all objections concern space, target_missing when all concern brokers
    or a database or all concern metrics, else target_unsafe.
    """
    standing = list(objections)
    if not standing:
        return
    only_space = all(objection.code in _SPACE for objection in standing)
    faults = [FieldFault(OBJECTIONS[objection.code].field, objection.message) for objection in standing]
    if only_space:
        raise Problem(Code.SPACE_INSUFFICIENT, "the workload does not fit on the target", faults)
    if all(objection.code in _SERVERS for objection in standing):
        raise Problem(Code.TARGET_MISSING, "the target cannot take the load", faults)
    if all(objection.code in _METRICS for objection in standing):
        raise Problem(Code.TARGET_MISSING, "the load cannot be observed", faults)
    raise Problem(Code.TARGET_UNSAFE, "the safety gate refuses to write to the target", faults)
