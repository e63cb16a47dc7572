"""Safety gate: refuse to write to a target unless it is proven that this is allowed.

    examination = examine(target, run_id)                       examines, writes nothing
    objections = [*examination.objections, *objections_to_plan(examination, plan, reserve_ratio)]
    require_clear(objections)                                   raises Problem with every reason at once
    with hold(examination) as target:                           examines again, and claims the target for the run
        ...

A device is written to only when its serial, WWN, UUID or backing file was named, the sentence of
`confirmation_sentence` was typed, nothing is mounted from it, stacked on it or swapped to it, no process writes to it,
wipefs and blkid find nothing on it, and the kernel grants exclusive access; all of this under every name that its
blocks have. In a directory a run writes to new files in a directory of its own, and a stated share of the volume stays
free.

Some uses cannot be seen from here: a descriptor of the file behind a loop device that is on its way from one process to
another in a message, a file that the kernel itself has open for process accounting or a USB gadget, a file registered
with an io_uring that no process has a descriptor of, processes of other users where this one is not root, and processes
outside of this one's PID namespace, as in a container. For the last, the examination of a drive has a note; a process
that claims a drive, or locks its file, is noticed nevertheless.

    device_gate          whether a drive is in use or has content: the reasons to refuse a disk
    examination          which drives a target leads to, and whether it was confirmed
    target_keys          which runs must not overlap
    journal_directories  whether the target is where the journals are
    sameness             whether a target is the same as when its identity was recorded
    run_directory        whether a directory is the run's own, and which run may remove it
    space                whether the plan keeps to its target and leaves enough space free
    holding              whether the target is still what was examined, at the moment of claiming it
    objections           the code, the field and the meaning of every reason to refuse a target
"""

from cliffwatch.gate.device_gate import device_objections
from cliffwatch.gate.examination import (
    Examination,
    blocks_of,
    confirmation_sentence,
    directory_of,
    examine,
    place_of,
)
from cliffwatch.gate.holding import HeldTarget, hold
from cliffwatch.gate.objections import OBJECTIONS, Objection, require_clear
from cliffwatch.gate.run_directory import remove_run_directory, run_directory
from cliffwatch.gate.sameness import is_same_device, is_same_directory, shares_a_drive
from cliffwatch.gate.space import free_bytes_of, notes_on_plan, objections_to_plan
from cliffwatch.gate.target_keys import combined_key, targets_overlap

__all__ = [
    "OBJECTIONS",
    "Examination",
    "HeldTarget",
    "Objection",
    "blocks_of",
    "combined_key",
    "confirmation_sentence",
    "device_objections",
    "directory_of",
    "examine",
    "free_bytes_of",
    "hold",
    "is_same_device",
    "is_same_directory",
    "notes_on_plan",
    "objections_to_plan",
    "place_of",
    "remove_run_directory",
    "require_clear",
    "run_directory",
    "shares_a_drive",
    "targets_overlap",
]
