"""A machine of its own for the service and its workers: processes, clocks and a disk, all behind one seed.

Each process is real code of the project in a greenlet, and only one of them runs at a time. Where code calls the system
(`system.py`), the world may let time pass, let another process go on, refuse the call, or end the process there and
then: a killed process is simply never gone on with, so nothing of it is cleaned up, as after `kill -9`.
"""

import fcntl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

#: Seconds that a call of the system takes on average.
CALL_SECONDS = 0.002
#: How often another process goes on after a call.
SWITCH_PROBABILITY = 0.2
FIRST_PID = 5_000_000
#: What is remembered of what happened, to be printed of a seed that fails.
HISTORY_LINES = 400


@dataclass(slots=True, eq=False)
class Task:
    """One thread of a process. `wake_at` in seconds of the world's monotonic clock."""

    name: str
    process: "Process"
    run: greenlet
    wake_at: float = 0.0


@dataclass(slots=True, eq=False)
class Process:
    """`locks` are descriptors on which it holds one; `at_death` is what the system does when it ends."""

    pid: int
    name: str
    started_at: float
    boot: int
    parent: "Process | None" = None
    tasks: list[Task] = field(default_factory=list)
    locks: set[int] = field(default_factory=set)
    signals: list[int] = field(default_factory=list)
    #: Whether a signal came in since the process last looked at what wakes it.
    is_woken: bool = False
    at_death: list[Callable[[], None]] = field(default_factory=list)
    exit_status: int | None = None
    frozen_until: float = 0.0
    said: str = ""

    @property
    def is_alive(self) -> bool:
        return self.exit_status is None

    def poll(self) -> int | None:
        """As of a Popen."""
        return self.exit_status


class World:
    """`now` is the monotonic clock; `wall_offset` what the wall clock is ahead of it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 1000.0
        self.wall_offset = 1_790_000_000.0
        self.boot = 1
        self.processes: list[Process] = []
        self.history: list[str] = []
        #: Called before each call that changes the disk, with its name; may raise OSError.
        self.refuse: Callable[[str], None] = lambda name: None
        #: How often a write is not taken whole.
        self.torn_writes = 0.0
        self._pid = FIRST_PID
        self._tasks: dict[greenlet, Task] = {}
        self._main = getcurrent()

    def note(self, text: str) -> None:
        if any(line.endswith(f" {text}") for line in self.history[-3:]):
            return
        self.history.append(f"{self.now:10.3f} {text}")
        del self.history[:-HISTORY_LINES]

    def spawn(self, name: str, act: Callable[[], Any], parent: Process | None = None) -> Process:
        """A process that calls `act`; it ends with what that returns, or with 1 where that raises."""
        self._pid += 1
        process = Process(self._pid, name, self.now, self.boot, parent)
        self.processes.append(process)

        def run() -> None:
            try:
                status = act()
            except Exception as error:  # what a process ends with is looked at like anything else
                process.said = repr(error)
                status = 1
            self.end(process, int(status or 0))

        self.thread(process, run)
        self.note(f"{name} starts")
        return process

    def thread(self, process: Process, act: Callable[[], None]) -> None:
        task = Task(process.name, process, greenlet(act, self._main), self.now)
        process.tasks.append(task)
        self._tasks[task.run] = task

    def end(self, process: Process, status: int) -> None:
        """The system's part of a process' end: locks go, children die, and nothing of it runs any more."""
        if not process.is_alive:
            return
        process.exit_status = status
        self.note(f"{process.name} ends with {status} {process.said}")
        for descriptor in process.locks:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        for act in process.at_death:
            act()
        for child in [each for each in self.processes if each.parent is process]:
            self.end(child, -9)
        if self.current() is process:
            self._main.switch()

    def current(self) -> Process | None:
        """The process that makes the present call; None for a caller that is no process of this world."""
        task = self._task()
        return None if task is None else task.process

    def named(self, name: str) -> list[Process]:
        return [process for process in self.processes if process.is_alive and process.name == name]

    def find(self, pid: int) -> Process | None:
        return next((process for process in self.processes if process.is_alive and process.pid == pid), None)

    def call(self, name: str) -> None:
        """The present process calls the system, which takes a while. Raises what `refuse` does."""
        task = self._task()
        if task is None:
            return
        self._require_alive(task)
        self.refuse(name)
        # It may be what this call came to.
        self._require_alive(task)
        if self.random.random() < SWITCH_PROBABILITY:
            self.sleep(self.random.expovariate(1 / CALL_SECONDS))

    def sleep(self, seconds: float, *, until_signal: bool = False) -> None:
        """Others go on for so long."""
        task = self._task()
        assert task is not None, "only a process of this world sleeps in it"
        self._require_alive(task)
        task.wake_at = self.now + max(0.0, seconds)
        if until_signal and task.process.is_woken:
            return
        self._main.switch()

    def signal(self, process: Process, number: int) -> None:
        process.signals.append(number)
        self.wake(process)

    def wake(self, process: Process) -> None:
        """End what the process waits for."""
        process.is_woken = True
        for task in process.tasks:
            task.wake_at = self.now

    def step(self, until: float) -> bool:
        """Let one process go on until it calls the system; False when none has anything to do before `until`."""
        tasks = [task for process in self.processes if process.is_alive for task in process.tasks if not task.run.dead]
        times = [max(task.wake_at, task.process.frozen_until) for task in tasks]
        earliest = min(times, default=until)
        if earliest >= until:
            self.now = max(self.now, until)
            return False
        self.now = max(self.now, earliest)
        due = [task for task, at in zip(tasks, times, strict=True) if at <= self.now]
        self.random.choice(due).run.switch()
        return True

    def close(self) -> None:
        """Forget all processes, the dead too: what they would still do on their way out is refused."""
        for process in self.processes:
            process.exit_status = process.exit_status if process.exit_status is not None else -9
        for process in self.processes:
            for task in process.tasks:
                if not task.run.dead:
                    with suppress(GreenletExit, OSError):
                        task.run.throw(GreenletExit)

    def _task(self) -> Task | None:
        return self._tasks.get(getcurrent())

    @staticmethod
    def _require_alive(task: Task) -> None:
        if not task.process.is_alive:
            raise GreenletExit
