"""Poll drives periodically, each in its own thread, so that a hanging drive delays no other."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cliffwatch.base.clock import Clock
from cliffwatch_drive_exporter.commands import PROGRAM, TIMEOUT_SECONDS, Commands, DriveError, Reason
from cliffwatch_drive_exporter.controllers import SYS, Controller, find_controllers
from cliffwatch_drive_exporter.limits import Limits, LimitSource, find_limit_source
from cliffwatch_drive_exporter.logs import Media, SmartHealth, health
from cliffwatch_drive_exporter.media import MediaSource, find_source

_LOG = logging.getLogger(__name__)
SHORTEST_INTERVAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Reading:
    """Values that a drive reported at its last poll. `media_available` is None until it is known whether any log counts
    media bytes; `limits` is None if the drive has none, or they could not be read."""

    health: SmartHealth
    media: Media | None
    media_available: bool | None
    media_source: str | None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class DriveStatus:
    """Last known status of a drive. `reading` is None before the first poll, and if the last one failed."""

    controller: Controller
    reading: Reading | None = None
    polls: int = 0
    errors: dict[Reason, int] = field(default_factory=lambda: dict.fromkeys(Reason, 0))
    duration_seconds: float | None = None
    read_at: float | None = None
    commands: int = 0


class PolledDrive:
    """A polled drive. Only one thread may call `poll`; any thread may read `status`, which never blocks."""

    def __init__(self, controller: Controller, commands: Commands, clock: Clock) -> None:
        self._commands = commands
        self._clock = clock
        self._source: MediaSource | None = None
        self._is_source_known = False
        self._limit_source: LimitSource | None = None
        self._is_limit_source_known = False
        self._errors = dict.fromkeys(Reason, 0)
        self._polls = 0
        #: Errors of the previous poll, and of the current poll.
        self._logged: set[str] = set()
        self._met: set[str] = set()
        self._standing = DriveStatus(controller)

    @property
    def status(self) -> DriveStatus:
        return self._standing

    def poll(self) -> None:
        """Query the drive, and replace its status by the result."""
        began = self._clock.monotonic()
        self._polls += 1
        reading = None
        self._met = set()
        try:
            reading = self._read()
        except DriveError as error:
            self._fail(error)
        self._logged = self._met
        # One assignment, so that a reader sees either the old or the new status.
        self._standing = DriveStatus(
            controller=self._standing.controller,
            reading=reading,
            polls=self._polls,
            errors=dict(self._errors),
            duration_seconds=self._clock.monotonic() - began,
            read_at=self._clock.wall() if reading is not None else self._standing.read_at,
            commands=self._commands.count,
        )

    def _read(self) -> Reading:
        found = health(self._commands.ask("smart-log"))
        try:
            if not self._is_source_known:
                self._source = find_source(self._commands)
                self._is_source_known = True
            media = None if self._source is None else self._source.ask(self._commands)
        except DriveError as error:
            # The health is known all the same.
            self._fail(error)
            media = None
        return Reading(
            found,
            media,
            (self._source is not None) if self._is_source_known else None,
            self._source.name if self._source else None,
            self._limits(),
        )

    def _limits(self) -> Limits | None:
        try:
            if not self._is_limit_source_known:
                self._limit_source = find_limit_source(self._commands, self._standing.controller)
                self._is_limit_source_known = True
            return None if self._limit_source is None else self._limit_source(self._commands)
        except DriveError as error:
            # The health is known all the same.
            self._fail(error)
            return None

    def _fail(self, error: DriveError) -> None:
        self._errors[error.reason] += 1
        # An error that lasts for hours is logged once, not at every poll.
        if str(error) not in self._logged | self._met:
            _LOG.warning("%s: %s", self._standing.controller.device, error)
        self._met.add(str(error))


class Drives:
    """All drives of the machine; new ones are added, and removed ones are dropped."""

    def __init__(
        self,
        clock: Clock,
        interval_seconds: float = SHORTEST_INTERVAL_SECONDS,
        *,
        sys: Path = SYS,
        program: str = PROGRAM,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._sys = sys
        self._new: Callable[[Controller], Commands] = lambda controller: Commands(
            f"/dev/{controller.name}", program, timeout_seconds
        )
        self._drives: dict[Controller, tuple[PolledDrive, threading.Event]] = {}
        self._lock = threading.Lock()

    def statuses(self) -> list[DriveStatus]:
        """Last known status of each drive, without querying any."""
        with self._lock:
            return [drive.status for drive, _ in self._drives.values()]

    def look(self) -> None:
        """Start polling new drives, and stop polling those that were removed."""
        there = find_controllers(self._sys)
        with self._lock:
            for controller in [known for known in self._drives if known not in there]:
                self._drives.pop(controller)[1].set()
            for controller in there:
                if controller not in self._drives:
                    drive, gone = PolledDrive(controller, self._new(controller), self._clock), threading.Event()
                    self._drives[controller] = (drive, gone)
                    threading.Thread(target=self._ask, args=(drive, gone), name=controller.name, daemon=True).start()

    def end(self) -> None:
        """Stop polling."""
        with self._lock:
            for _, gone in self._drives.values():
                gone.set()

    def _ask(self, drive: PolledDrive, gone: threading.Event) -> None:
        while True:
            began = self._clock.monotonic()
            drive.poll()
            rest = max(0.0, began + self._interval_seconds - self._clock.monotonic())
            if gone.wait(rest):
                return
