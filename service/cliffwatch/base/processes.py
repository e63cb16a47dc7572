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
#: Errors of pidfd_open(2) for a pid of no process, or of a thread: ENOENT since Linux 6.15, EINVAL before.
_NOT_A_PROCESS = frozenset({errno.ESRCH, errno.ENOENT, errno.EINVAL})
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: PF_EXITING of the kernel's include/linux/sched.h: the thread is exiting.
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
        """Identity of a living process; None when no process has this pid, or only a zombie."""
        stat = _stat(Path(f"/proc/{pid}"))
        # Beside a first thread that is a zombie there may be others, which keep the process and its files.
        if not stat or (stat[0] in "ZX" and len(_threads(pid)) < 2):
            return None
        return cls(pid, int(stat[19]), boot_id())

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "ProcessIdentity":
        """Parse an identity. Raises KeyError, TypeError, ValueError or OverflowError for an invalid one."""
        pid = int(body["pid"])
        if not 0 < pid <= _LARGEST_PID:
            raise ValueError(f"{pid} is no pid")
        return cls(pid, int(body["start_ticks"]), str(body["boot_id"]))

    def to_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "start_ticks": self.start_ticks, "boot_id": self.boot_id}

    def is_alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self

    def is_killed(self) -> bool:
        """Whether the process was killed but is still there: one of its threads waits in the kernel, as for a drive."""
        return self.is_alive() and any(_is_killed(thread) for thread in _threads(self.pid))

    def wait_gone(self, patience_seconds: float) -> bool:
        """Wait until the process is gone; returns False if it is still there after `patience_seconds`."""
        deadline = time.monotonic() + patience_seconds
        while self.is_alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def waits_in(self) -> str:
        """Words for a message on a process that does not end: `process 12 (fio, in the kernel's io_schedule)`."""
        stats = {thread: _stat(thread) for thread in _threads(self.pid)}
        waiting = next((thread for thread, stat in stats.items() if stat and stat[0] == "D"), None)
        command = _text(Path(f"/proc/{self.pid}/comm")).strip() or "unknown"
        # A user without the permission to read it reads `0`.
        function = "" if waiting is None else _text(waiting / "wchan").strip("0\n")
        return f"process {self.pid} ({command}" + (f", in the kernel's {function})" if function else ")")

    def send(self, number: signal.Signals) -> bool:
        """Send a signal if the pid is still of the same process; returns whether it was sent."""
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


def processes_with(arguments: Sequence[str]) -> list[ProcessIdentity]:
    """Living processes whose command line ends with these arguments."""
    end = b"\0" + b"\0".join(os.fsencode(argument) for argument in arguments) + b"\0"
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal() and _bytes(directory / "cmdline").endswith(end):
            found.append(ProcessIdentity.of(int(directory.name)))
    return [process for process in found if process is not None]


def boot_id() -> str:
    """Identity of the machine's present boot."""
    return _BOOT_ID.read_text().strip()


def uninterruptible_waits(pid: int) -> frozenset[tuple[int, int]]:
    """Threads of a process and its children that wait uninterruptibly: (thread id, number of context switches).

    The same pair in a later call means the same wait.
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
    return _bytes(path).decode(errors="replace")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def _stat(directory: Path) -> list[str]:
    """Fields of a process's or thread's /proc/…/stat, beginning with the third (the state); empty once it is gone.

    See proc_pid_stat(5).
    """
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
    """Start a process in a session of its own, so that it survives the end of this process or of its terminal.

    Its working directory is `directory`, its files are for their owner only, and its output goes to `log`; with
    `output`, only its standard error goes to `log`. `inherited` are descriptors that it inherits. Raises OSError.
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
    """Suppress Popen's warning on a process that outlives this one on purpose, when the Popen is garbage collected."""
    process.returncode = 0
