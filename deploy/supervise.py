"""python -m deploy.supervise: the first process of the service's container, after its init.

When a container's first process ends, every process in it is killed. So that a service that dies takes no run with it,
this process starts it again. When the container is stopped, the service ends first and then each worker, which commits
its window and leaves its run interrupted; the next start resumes it.
"""

import signal
import subprocess
import sys
import time

from cliffwatch.base.errors import Problem
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.model.settings import Settings, read_settings

SERVICE = [sys.executable, "-m", "cliffwatch.cli.main", "serve"]
#: Pause between the end of the service and its next start.
PAUSE_SECONDS = 1.0
#: How long workers may take to commit what they have; the container's stop_grace_period is longer.
WORKERS_GRACE_SECONDS = 60.0
_POLL_SECONDS = 0.05


class Supervisor:
    """Keeps a service running until SIGTERM or SIGINT."""

    def __init__(self) -> None:
        self._service: subprocess.Popen[bytes] | None = None
        self._stop_requested = False
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)

    def _end(self, number: int, frame: object) -> None:
        self._stop_requested = True
        if self._service is not None:
            self._service.terminate()

    def keep(self) -> None:
        while not self._stop_requested:
            self._service = subprocess.Popen(SERVICE)
            if self._stop_requested:
                self._service.terminate()
            status = self._service.wait()
            if not self._stop_requested:
                print(f"the service ended with status {status} and is started again", file=sys.stderr, flush=True)
                time.sleep(PAUSE_SECONDS)


def end_workers(settings: Settings) -> None:
    """Signal each run's worker to end, and wait until all have ended or WORKERS_GRACE_SECONDS are over."""
    beats = [Heartbeat.read(directory) for directory in settings.runs_directory.glob("*/")]
    workers: list[ProcessIdentity] = [beat.worker for beat in beats if beat is not None and beat.worker.is_alive()]
    for worker in workers:
        worker.send(signal.SIGTERM)
    deadline = time.monotonic() + WORKERS_GRACE_SECONDS
    while any(worker.is_alive() for worker in workers) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def main() -> int:
    try:
        settings = read_settings()
    except Problem as problem:
        print(f"supervise: {problem}", file=sys.stderr)
        return 2
    Supervisor().keep()
    end_workers(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
