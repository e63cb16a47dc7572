"""Starting a process that outlives this one, and knowing it again: its pid alone may be somebody else's by then."""

import errno
import os
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from cliffwatch.base.privacy import UMASK

#: PID_MAX_LIMIT of the kernel.
_LARGEST_PID = 2**22
#: What pidfd_open(2) says of a pid that is nothing's, or a thread's: ENOENT since Linux 6.15, EINVAL before.
_NOT_A_PROCESS = frozenset({errno.ESRCH, errno.ENOENT, errno.EINVAL})
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process for as long as the machine is up: pid, start time in clock ticks since boot, and which boot."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """The identity of a living process; None when there is none with this pid, or only its remains."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The second field, the command, is in parentheses and may hold spaces; see proc(5).
        state, *fields = stat.rpartition(")")[2].split()
        if state in "ZX":
            return None
        return cls(pid, int(fields[18]), _BOOT_ID.read_text().strip())

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "ProcessIdentity":
        """Raises KeyError, TypeError, ValueError or OverflowError for what is none."""
        pid = int(body["pid"])
        if not 0 < pid <= _LARGEST_PID:
            raise ValueError(f"{pid} is no pid")
        return cls(pid, int(body["start_ticks"]), str(body["boot_id"]))

    def to_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "start_ticks": self.start_ticks, "boot_id": self.boot_id}

    def is_alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self

    def send(self, number: signal.Signals) -> bool:
        """Signal the process if it is still the same one; says whether it was."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError as error:
            if error.errno in _NOT_A_PROCESS:
                return False
            raise
        try:
            # The descriptor pins the process: what is_alive confirms now is what the signal reaches.
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True


def start_detached(
    command: Sequence[str],
    log: BinaryIO,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    output: BinaryIO | None = None,
    inherited: Collection[int] = (),
) -> "subprocess.Popen[bytes]":
    """Start a process in a session of its own, so that whatever ends this one or its terminal leaves it alone.

    It works in `directory`, makes files for its owner alone, and prints to `log`; where `output` is given, only errors
    go to `log`. `inherited` are descriptors that it gets, too. Raises OSError.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log if output is None else output,
        stderr=log,
        cwd=directory,
        env=environment,
        start_new_session=True,
        umask=UMASK,
        pass_fds=inherited,
    )


def disown(process: "subprocess.Popen[bytes]") -> None:
    """The process outlives this one on purpose: Popen must not complain about that when it is collected."""
    process.returncode = 0
