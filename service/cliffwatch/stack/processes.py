"""Start the watchers, identify their processes later, and stop them.

Each is a process in a session of its own: killing one, or the service, affects neither the others nor a run.
`watcher.json` beside its data has the process, by pid, start time and boot, or the reason why it could not be started.
"""

import json
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path

import httpx

from cliffwatch.base import locks
from cliffwatch.base.clock import Clock, wait_until
from cliffwatch.base.durable import PRIVATE_DIRECTORY, write_json_durably
from cliffwatch.base.http_client import http_client
from cliffwatch.base.logs import bound, last_line_of, open_log
from cliffwatch.base.processes import ProcessIdentity, disown, start_detached
from cliffwatch.model.settings import PREFIX, Settings, environment_of_children
from cliffwatch.stack.components import COMPONENTS, HOST, Component, stack_directory

WATCHER_FILE = "watcher.json"
LOG_FILE = "output.log"
READY_PATIENCE_SECONDS = 20.0
STOP_GRACE_SECONDS = 10.0
ANSWER_TIMEOUT_SECONDS = 2.0


class State(StrEnum):
    """State of a watcher after `up`."""

    STARTED = "started"
    RUNNING = "running"
    SLOW = "slow"
    WITHOUT = "without"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of starting a watcher. `reason`: why it is unavailable or not ready yet; `log` is its log, with more."""

    component: Component
    state: State
    reason: str = ""
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Watcher:
    """Watcher as recorded in its `watcher.json`.

    `process` is None where the watcher could not be started: `without` is the reason then, and `is_possible` is False
    where this machine has no program, kernel or drive for it.
    """

    name: str
    process: ProcessIdentity | None
    ready_url: str
    without: str = ""
    is_possible: bool = True


def watchers(settings: Settings) -> dict[str, Watcher]:
    """Watchers that `up` started, or tried to start, by name, whether they still live or not."""
    found = {}
    for component in COMPONENTS:
        watcher = _read(component.directory(settings) / WATCHER_FILE)
        if watcher is not None:
            found[watcher.name] = watcher
    return found


def is_running(settings: Settings, component: Component) -> bool:
    watcher = _read(component.directory(settings) / WATCHER_FILE)
    return watcher is not None and watcher.process is not None and watcher.process.is_alive()


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Lock: while the block lasts, no other process starts or stops watchers of this state directory."""
    directory = stack_directory(settings)
    directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    lock = locks.hold(directory / "lock")
    try:
        yield
    finally:
        os.close(lock)


def start(settings: Settings, components: Sequence[Component], clock: Clock) -> list[Outcome]:
    """Start watchers that do not run, in parallel, and wait until each is ready, has ended, or takes too long."""
    outcomes: list[Outcome] = []
    begun: list[tuple[Component, ProcessIdentity]] = []
    for component in components:
        if is_running(settings, component):
            outcomes.append(Outcome(component, State.RUNNING))
            continue
        if obstacle := component.obstacle(component, settings):
            outcomes.append(_unavailable(settings, component, obstacle, is_possible=False))
            continue
        started = _port_is_taken(component, settings) or _start(settings, component)
        if isinstance(started, str):
            outcomes.append(_unavailable(settings, component, started))
        else:
            begun.append((component, started))
    deadline = clock.monotonic() + READY_PATIENCE_SECONDS
    with http_client(ANSWER_TIMEOUT_SECONDS) as client:
        waited = [_wait(settings, client, component, process, clock, deadline) for component, process in begun]
    return [*outcomes, *waited]


def _ends(process: ProcessIdentity, clock: Clock, patience_seconds: float) -> bool:
    return wait_until(lambda: not process.is_alive(), clock, patience_seconds)


def stop(settings: Settings, clock: Clock, grace_seconds: float = STOP_GRACE_SECONDS) -> list[str]:
    """Stop the running watchers in reverse order of their start, and remove every `watcher.json`; returns the names
    of the watchers that ran."""
    there = [watcher for watcher in watchers(settings).values() if watcher.process and watcher.process.is_alive()]
    for watcher in reversed(there):
        assert watcher.process is not None, "only those that run are there"
        watcher.process.send(signal.SIGTERM)
    deadline = clock.monotonic() + grace_seconds
    for watcher in there:
        assert watcher.process is not None, "only those that run are there"
        if not _ends(watcher.process, clock, deadline - clock.monotonic()):
            watcher.process.send(signal.SIGKILL)
            _ends(watcher.process, clock, inf)
    for component in COMPONENTS:
        (component.directory(settings) / WATCHER_FILE).unlink(missing_ok=True)
    return [watcher.name for watcher in there]


def reload(settings: Settings, component: Component) -> None:
    """Make a running watcher reload its configuration."""
    watcher = _read(component.directory(settings) / WATCHER_FILE)
    if watcher is not None and watcher.process is not None:
        watcher.process.send(signal.SIGHUP)


def answer(client: httpx.Client, url: str) -> str | None:
    """Check `url`: None when it answers with success, else a message on what is wrong."""
    try:
        response = client.get(url)
    except httpx.TimeoutException:
        return f"it does not answer within {ANSWER_TIMEOUT_SECONDS:g} s"
    except httpx.HTTPError as error:
        return f"it does not answer: {error}"
    return None if response.is_success else f"it answers with status {response.status_code}"


def fault_of(client: httpx.Client, watcher: Watcher) -> str:
    """Why a watcher does not answer; empty where it does."""
    if watcher.process is None:
        return watcher.without
    if not watcher.process.is_alive():
        return "its process is gone"
    return answer(client, watcher.ready_url) or ""


def _start(settings: Settings, component: Component) -> ProcessIdentity | str:
    """Start a watcher; returns its process, or the reason why it could not be started."""
    directory = component.directory(settings)
    directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    path = directory / LOG_FILE
    bound(path)
    with open_log(path) as log:
        try:
            process = start_detached(component.command(settings), log, directory, environment_of_children())
        except OSError as error:
            return f"it cannot be started: {error.strerror}"
    identity = ProcessIdentity.of(process.pid)
    if identity is None:
        process.wait()
        return f"it ended at once: {last_line_of(path)}"
    _write(settings, component, Watcher(component.name, identity, component.ready_url(settings)))
    disown(process)
    return identity


def _wait(
    settings: Settings,
    client: httpx.Client,
    component: Component,
    process: ProcessIdentity,
    clock: Clock,
    deadline: float,
) -> Outcome:
    log = component.directory(settings) / LOG_FILE
    fault: str | None = None

    def is_ready_or_gone() -> bool:
        nonlocal fault
        fault = answer(client, component.ready_url(settings))
        return fault is None or not process.is_alive()

    if not wait_until(is_ready_or_gone, clock, deadline - clock.monotonic()):
        return Outcome(component, State.SLOW, fault or "", log)
    if fault is not None:
        return _unavailable(settings, component, f"it ended: {last_line_of(log)}")
    return Outcome(component, State.STARTED)


def _unavailable(settings: Settings, component: Component, reason: str, *, is_possible: bool = True) -> Outcome:
    _write(settings, component, Watcher(component.name, None, component.ready_url(settings), reason, is_possible))
    log = component.directory(settings) / LOG_FILE
    return Outcome(component, State.WITHOUT, reason, log if log.exists() else None)


def _port_is_taken(component: Component, settings: Settings) -> str | None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, component.port(settings)))
        except OSError as error:
            variable = f"{PREFIX}{component.name.upper()}_PORT"
            return (
                f"{component.address(settings)} cannot be listened on: {error.strerror}; choose another with {variable}"
            )
    return None


def _read(path: Path) -> Watcher | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        process = ProcessIdentity.from_json(body["process"]) if body["process"] else None
        is_possible = body.get("is_possible", True) is not False
        return Watcher(str(body["name"]), process, str(body["ready_url"]), str(body["without"]), is_possible)
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError, KeyError, TypeError):
        return None


def _write(settings: Settings, component: Component, watcher: Watcher) -> None:
    directory = component.directory(settings)
    directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    body = {
        "name": watcher.name,
        "process": watcher.process.to_json() if watcher.process else None,
        "ready_url": watcher.ready_url,
        "without": watcher.without,
        "is_possible": watcher.is_possible,
    }
    write_json_durably(directory / WATCHER_FILE, body)
