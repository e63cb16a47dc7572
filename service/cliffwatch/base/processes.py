"""Start a process that outlives this one, and identify it later: its pid alone may be another process's by then."""

import errno
import os
import signal
import subprocess
import time
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
#: PF_EXITING of the kernel's include/linux/sched.h: the thread is on its way out.
_PF_EXITING = 0x4
_KILL_BIT = 1 << (signal.SIGKILL - 1)
_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identity of a process until the next boot: pid, start time in clock ticks since boot, and boot id."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """The identity of a living process; None when there is none with this pid, or only its remains."""
        stat = _stat(Path(f"/proc/{pid}"))
        # The remains of a first thread may have others beside them, which keep the process and its files.
        if not stat or (stat[0] in "ZX" and len(_threads(pid)) < 2):
            return None
        return cls(pid, int(stat[19]), _BOOT_ID.read_text().strip())

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "ProcessIdentity":
        """Parse an identity. Raises KeyError, TypeError, ValueError or OverflowError for what is none."""
        pid = int(body["pid"])
        if not 0 < pid <= _LARGEST_PID:
            raise ValueError(f"{pid} is no pid")
        return cls(pid, int(body["start_ticks"]), str(body["boot_id"]))

    def to_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "start_ticks": self.start_ticks, "boot_id": self.boot_id}

    def is_alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self

    def is_killed(self) -> bool:
        """Whether it was killed, and is there all the same: a thread of it waits in the kernel, as for a drive."""
        return self.is_alive() and any(_is_killed(thread) for thread in _threads(self.pid))

    def wait_gone(self, patience_seconds: float) -> bool:
        """Wait until it is gone; says whether it is."""
        deadline = time.monotonic() + patience_seconds
        while self.is_alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def waits_in(self) -> str:
        """`process 12 (fio, in the kernel's io_schedule)`: for a message about one that does not end."""
        stats = {thread: _stat(thread) for thread in _threads(self.pid)}
        waiting = next((thread for thread, stat in stats.items() if stat and stat[0] == "D"), None)
        command = _text(Path(f"/proc/{self.pid}/comm")).strip() or "unknown"
        # `0` is what is read by a user who may not see it.
        function = "" if waiting is None else _text(waiting / "wchan").strip("0\n")
        return f"process {self.pid} ({command}" + (f", in the kernel's {function})" if function else ")")

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


def uninterruptible_waits(pid: int) -> frozenset[tuple[int, int]]:
    """The threads of a process and of its children that wait uninterruptibly, each with how often it has run so far.

    The same pair a second time is the same wait.
    """
    threads = _threads(pid)
    for child in _text(Path(f"/proc/{pid}/task/{pid}/children")).split():
        threads += _threads(int(child))
    found = set()
    for thread in threads:
        stat = _stat(thread)
        if stat and stat[0] == "D":
            lines = _text(thread / "status").splitlines()
            found.add((int(thread.name), sum(int(line.split()[1]) for line in lines if "ctxt_switches:" in line)))
    return frozenset(found)


def _text(path: Path) -> str:
    """Text of a file of /proc; empty once the process is gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def _stat(directory: Path) -> list[str]:
    """The fields of a process or thread from the third on, its state; none once it is gone. See proc_pid_stat(5)."""
    # The second field, the command, is in parentheses and may hold spaces.
    return _text(directory / "stat").rpartition(")")[2].split()


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def _is_killed(thread: Path) -> bool:
    stat = _stat(thread)
    if not stat or stat[0] in "ZX":
        return False
    pending = [line.split()[1] for line in _text(thread / "status").splitlines() if line[:7] in ("SigPnd:", "ShdPnd:")]
    return bool(int(stat[6]) & _PF_EXITING) or any(int(mask, 16) & _KILL_BIT for mask in pending)


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
