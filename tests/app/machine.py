"""A service without its HTTP side, with real workers, for tests that are its clock."""

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testkit.waiting import wait_until
from testkit.worker_runs import status, window_count

from cliffwatch.app.launcher import worker_is_alive
from cliffwatch.app.reconciler import Reconciler
from cliffwatch.app.runs import RunService
from cliffwatch.base.clock import SystemClock
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import RunState
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow


class ShiftedClock(SystemClock):
    """The machine's clock: time passes, and the wall clock is set, as a test likes."""

    passed_seconds = 0.0
    set_by_seconds = 0.0
    _still: tuple[float, float] | None = None

    def stand_still(self) -> None:
        """From now on, time passes only as the test says."""
        self._still = super().wall(), super().monotonic()

    def wall(self) -> float:
        return (self._still[0] if self._still else super().wall()) + self.passed_seconds + self.set_by_seconds

    def monotonic(self) -> float:
        return (self._still[1] if self._still else super().monotonic()) + self.passed_seconds


@dataclass
class Machine:
    """A service without its HTTP side; its time passes when `tick` is called."""

    runs_directory: Path
    database: Database
    service: RunService
    reconciler: Reconciler
    clock: ShiftedClock
    past: list[Reconciler] = field(default_factory=list)

    def submit(self, run_id: str, target: str = "drive", soak: str = "1h", **workload: Any) -> Path:
        document = {
            "version": 1,
            "name": "reconciled",
            "engine": "synthetic",
            "window": "100ms",
            "phases": {"soak": soak},
            "load": {"operations_per_second": 1000},
        }
        request = RunRequest.model_validate(
            {"workload": document | workload, "target": {"kind": "synthetic", "name": target}}
        )
        self.service.submit(request, "test", run_id)
        return self.runs_directory / run_id

    def restart(self) -> None:
        """The service is killed and started again: nothing but the journals and the database is left of it."""
        self.past.append(self.reconciler)
        self.reconciler = Reconciler(self.database, self.clock)

    def tick_until(self, directory: Path, state: RunState) -> None:
        def reached() -> bool:
            self.reconciler.tick()
            return status(directory).state is state

        wait_until(reached, f"state {state.value} of {directory.name}")
        # The journal may have come to it after the round had read it.
        self.reconciler.tick()

    def indexed_state(self, run_id: str) -> str:
        with self.database.snapshot() as session:
            return session.get_one(RunRow, run_id).state


def left_alone(machine: Machine, run_id: str, soak: str) -> tuple[Path, Heartbeat]:
    """A run that has windows, and whose worker was killed; and what that last said of itself."""
    directory = machine.submit(run_id, soak=soak)
    machine.tick_until(directory, RunState.RUNNING)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    heartbeat.worker.send(signal.SIGKILL)
    wait_until(lambda: not worker_is_alive(directory), "the worker's death")
    return directory, heartbeat
