"""The system as the processes of a world see it: what the project calls of `os`, `time` and others leads there."""

import fcntl
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from testkit.power import CALLS
from tests.simulation.engine import SimulatedEngine
from tests.simulation.part import SimulatedPlace
from tests.simulation.world import Process, World

from cliffwatch.app import launcher
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator import __main__ as worker_main
from cliffwatch.coordinator import context, reporting, run
from cliffwatch.part import freezes, load, prepare, serve
from cliffwatch.report.process import ReportOutcome

#: How often a process whose write was not taken whole is killed there.
KILLED_AFTER_PART = 0.3
#: A descriptor that no file has.
WAKE_FD = 1 << 30


@contextmanager
def simulated(world: World, report: Callable[..., ReportOutcome]) -> Iterator[None]:
    """While the block lasts, the project's code runs on this world; `report` makes the reports."""
    with ExitStack() as patched:

        def replace(where: object, name: str, by: object) -> None:
            patched.enter_context(mock.patch.object(where, name, by))

        for name in CALLS:
            replace(os, name, _call(world, name, getattr(os, name)))
        replace(os, "write", _write(world, os.write))
        replace(os, "getpid", _of_process(world, os.getpid, lambda process: process.pid))
        replace(os, "read", _read(world, os.read))
        replace(os, "close", _close(world, os.close))
        replace(fcntl, "flock", _flock(world, fcntl.flock))
        replace(select, "select", _select(world, select.select))
        replace(time, "time", _of_process(world, time.time, lambda _: world.now + world.wall_offset))
        replace(time, "monotonic", _of_process(world, time.monotonic, lambda _: world.now))
        replace(time, "sleep", _sleep(world, time.sleep))
        replace(ProcessIdentity, "of", staticmethod(lambda pid: _identity(world, pid)))
        replace(ProcessIdentity, "send", lambda identity, number: _send(world, identity, number))
        replace(launcher, "launch", lambda directory: launch(world, directory))
        replace(worker_main, "wake_on", lambda *_: (WAKE_FD, _present(world).signals))
        replace(context, "serve_metrics", lambda _: None)
        replace(worker_main, "LocalPlace", lambda: SimulatedPlace(world))
        replace(freezes, "threading", _Threading(world))
        replace(load, "ChildProcess", lambda *given: SimulatedEngine(world, *given))
        replace(load, "HostConditions", _NoHost)
        replace(prepare, "collect_facts", lambda *_: {})
        replace(serve, "own_cost", lambda: (0.0, 0))
        replace(run, "own_cost", lambda: (0.0, 0))
        replace(run, "_collection_of", lambda _: None)
        replace(reporting, "make_report", report)
        yield


def launch(world: World, directory: Any) -> Process:
    """A worker of a run."""
    return world.spawn(f"worker of {directory.name}", lambda: worker_main.main([str(directory)]))


def _present(world: World) -> Process:
    process = world.current()
    assert process is not None, "only a process of this world calls that"
    return process


def _call(world: World, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        world.call(name)
        return real(*arguments, **options)

    return call


def _write(world: World, real: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
    """A write may be short, and its process may be killed before it writes the rest."""

    def call(descriptor: int, content: bytes) -> int:
        if world.current() is None or len(content) < 2 or world.random.random() >= world.torn_writes:
            return real(descriptor, content)
        written = real(descriptor, bytes(content)[: world.random.randrange(1, len(content))])
        if world.random.random() < KILLED_AFTER_PART:
            process = _present(world)
            world.note(f"{process.name} is killed in the middle of a write")
            world.end(process, -9)
        return written

    return call


def _of_process(world: World, real: Callable[[], Any], simulated: Callable[[Process], Any]) -> Callable[[], Any]:
    def call() -> Any:
        process = world.current()
        return real() if process is None else simulated(process)

    return call


def _sleep(world: World, real: Callable[[float], None]) -> Callable[[float], None]:
    return lambda seconds: real(seconds) if world.current() is None else world.sleep(seconds)


def _select(world: World, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(reading: list[Any], writing: list[Any], failing: list[Any], seconds: float | None = None) -> Any:
        if reading != [WAKE_FD]:
            return real(reading, writing, failing, seconds)
        world.sleep(seconds or 0.0, until_signal=True)
        return (reading if _present(world).is_woken else []), [], []

    return call


def _read(world: World, real: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    def call(descriptor: int, size: int) -> bytes:
        if descriptor != WAKE_FD:
            return real(descriptor, size)
        _present(world).is_woken = False
        return b""

    return call


def _flock(world: World, real: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def call(descriptor: int, operation: int) -> None:
        process = world.current()
        real(descriptor, operation)
        if process is not None and operation & fcntl.LOCK_EX:
            process.locks.add(descriptor)

    return call


def _close(world: World, real: Callable[[int], None]) -> Callable[[int], None]:
    def call(descriptor: int) -> None:
        for process in world.processes:
            process.locks.discard(descriptor)
        real(descriptor)

    return call


def _identity(world: World, pid: int) -> ProcessIdentity | None:
    process = world.find(pid)
    return None if process is None else ProcessIdentity(pid, round(process.started_at * 100), str(process.boot))


def _send(world: World, identity: ProcessIdentity, number: int) -> bool:
    process = world.find(identity.pid)
    if process is None or _identity(world, identity.pid) != identity:
        return False
    if number == 9:
        world.note(f"{process.name} is killed")
        world.end(process, -9)
    else:
        world.signal(process, number)
    return True


class _NoHost:
    """A host without conditions."""

    def restart(self, pid: int | None) -> None:
        return None

    def since_last(self) -> "_NoHost":
        return self

    def add_to(self, window: object) -> None:
        return None


class _Threading:
    """Threads of the process that starts them."""

    def __init__(self, world: World) -> None:
        self._world = world

    def Lock(self) -> Any:  # noqa: N802 (as in threading)
        return mock.MagicMock()  # no other process runs until the holder calls the system

    def Event(self) -> "_Event":  # noqa: N802
        return _Event(self._world)

    def Thread(self, *, target: Callable[[], None], name: str, daemon: bool) -> "_Thread":  # noqa: N802
        return _Thread(self._world, target)


class _Event:
    def __init__(self, world: World) -> None:
        self._world = world
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def wait(self, seconds: float) -> bool:
        self._world.sleep(seconds)
        return self._is_set


class _Thread:
    def __init__(self, world: World, target: Callable[[], None]) -> None:
        self._world, self._target = world, target

    def start(self) -> None:
        self._world.thread(_present(self._world), self._target)
