"""Recognise fio errors that would happen again after a restart, and the remedy of each."""

import errno
import re
from collections.abc import Iterable

#: As in `fio: pid=7, err=22/file:io_u.c:1845, func=io_u error, error=Invalid argument`.
_ERROR = re.compile(r"\berr=(\d+)/")
_REMEDIES = {
    errno.EINVAL: (
        "direct I/O needs blocks, and offsets, that are multiples of the drive's logical blocks: say a larger `bs`, or "
        "direct=0"
    ),
    errno.EPERM: (
        "the kernel or the container forbids it: for ioengine=io_uring, say libaio instead, or allow it "
        "(kernel.io_uring_disabled=0, the container's seccomp profile)"
    ),
    errno.EACCES: "the user of the service may not do that on the target: see its owner and modes",
    errno.ENOSYS: "this kernel has no such system call: say another `ioengine`",
    errno.EOPNOTSUPP: "this file system has no such operation: say another `ioengine`, `fallocate` or direct=0",
}


def remedy_for(messages: Iterable[str]) -> str | None:
    """Remedy for an error that stays until something is changed; None for any other message."""
    numbers = [int(number) for message in messages for number in _ERROR.findall(message)]
    return next((_REMEDIES[number] for number in numbers if number in _REMEDIES), None)
