"""worker.json: which process executes a run, and when it was last seen alive.

After a restart, the service finds the worker through this file. It is replaced atomically, without a sync: after a
power cut it has the boot id of an earlier boot, and is ignored.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base import durable
from cliffwatch.base.finite_json import lenient_json
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.base.regular_files import NotAFile, read_regular
from cliffwatch.journal import files
from cliffwatch.part.child_process import LEAVE_SECONDS


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Content of worker.json. `at`: when it was written, in seconds since the epoch.

    `metrics_port`: port of the worker's metrics; None if they are not served. `parts` and `engines`: processes that
    run now. `left`: processes of the run that were killed and have not ended, started by this worker or an earlier one.
    """

    at: float
    worker: ProcessIdentity
    metrics_port: int | None
    parts: tuple[ProcessIdentity, ...] = ()
    engines: tuple[ProcessIdentity, ...] = ()
    left: tuple[ProcessIdentity, ...] = ()

    @classmethod
    def of_this_process(cls) -> "Heartbeat":
        """Heartbeat of this process, now, without an engine."""
        identity = ProcessIdentity.of(os.getpid())
        assert identity is not None, "a process that runs has an identity"
        return cls(time.time(), identity, None)

    def write(self, directory: Path) -> None:
        body = {
            "at": self.at,
            "worker": self.worker.to_json(),
            "parts": [process.to_json() for process in self.parts],
            "engines": [process.to_json() for process in self.engines],
            # For versions without parts, which read this key.
            "engine": self.engines[0].to_json() if self.engines else None,
            "metrics_port": self.metrics_port,
            "left": [process.to_json() for process in self.left],
        }
        with durable.replacement(directory / files.WORKER, is_durable=False) as file:
            file.write(json.dumps(body).encode() + b"\n")

    @classmethod
    def read(cls, directory: Path) -> "Heartbeat | None":
        """Read the heartbeat; None when no worker has written one, or when it cannot be parsed."""
        try:
            body, _ = lenient_json(read_regular(directory / files.WORKER))
            # A worker of a version without parts ran its one engine itself.
            engines = body["engines"] if "engines" in body else filter(None, [body["engine"]])
            port = body["metrics_port"]
            if port is not None and not (isinstance(port, int) and 0 < port < 65536):
                raise ValueError(f"{port!r} is no port")
            return cls(
                float(body["at"]),
                ProcessIdentity.from_json(body["worker"]),
                port,
                parts=tuple(ProcessIdentity.from_json(process) for process in body.get("parts", [])),
                engines=tuple(ProcessIdentity.from_json(process) for process in engines),
                left=tuple(ProcessIdentity.from_json(process) for process in body.get("left", [])),
            )
        except (FileNotFoundError, IsADirectoryError, NotAFile, ValueError, KeyError, TypeError, OverflowError):
            return None

    @property
    def engine(self) -> ProcessIdentity | None:
        """The engine of the first part that has one."""
        return next(iter(self.engines), None)

    def others(self) -> list[ProcessIdentity]:
        """Living processes of the run, except this process: the worker, parts, engines and abandoned processes."""
        known = (self.worker, *self.parts, *self.engines, *self.left)
        return [process for process in dict.fromkeys(known) if process.pid != os.getpid() and process.is_alive()]


def processes_left(directory: Path, patience_seconds: float = LEAVE_SECONDS) -> tuple[ProcessIdentity, ...]:
    """Processes of a run's earlier workers that are still alive after `patience_seconds`, for the next worker."""
    earlier = Heartbeat.read(directory)
    if earlier is None:
        return ()
    return tuple(process for process in earlier.others() if not process.wait_gone(patience_seconds))
