"""An engine of a world: windows come when they are due, until it gets its stop, ends, or is killed."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.simulation.world import World

from cliffwatch.base.histogram import Histogram
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.engines.contract import Launch
from cliffwatch.model.window import EngineEnd, EngineRecord, EngineWindow

OPERATIONS = 10


class SimulatedEngine:
    """In the place of a `ChildProcess`, of the command of the synthetic engine."""

    def __init__(self, world: World, launch: Launch, reader: object, log: Path, wake: object) -> None:
        self._world = world
        self._next, self._stop, self._window, _ = map(float, launch.command[-4:])
        part = world.current()
        assert part is not None, "a part starts it"
        self._part = part
        self._process = world.spawn("engine", lambda: world.sleep(float("inf")), part)
        self.identity = ProcessIdentity.of(self._process.pid)
        self._is_stopping = self._has_ended = False

    def __enter__(self) -> "SimulatedEngine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        self.kill()

    def poll(self, timeout_seconds: float, now: Callable[[], float]) -> list[EngineRecord]:
        due = self._next + self._window - now()
        self._world.sleep(max(0.0, min(timeout_seconds, due)), until_signal=True)
        self._part.is_woken = False
        if not self._process.is_alive:
            self._has_ended = True
            return []
        records: list[EngineRecord] = []
        while self._next + self._window <= now() + 1e-6 and not self._has_ended:
            records.append(self._measured())
            if self._is_stopping or self._next >= self._stop - 1e-6:
                records.append(EngineEnd("completed"))
                self._has_ended = True
                self._world.end(self._process, 0)
        return records

    @property
    def is_left(self) -> bool:
        return False

    @property
    def is_finished(self) -> bool:
        return self._has_ended

    def finish(self) -> tuple[int, list[EngineRecord]]:
        assert self._process.exit_status is not None, "it is finished"
        return self._process.exit_status, []

    @property
    def error_text(self) -> str:
        return ""

    def ask_to_stop(self, number: int) -> None:
        self._is_stopping = True

    def kill(self) -> None:
        self._world.end(self._process, -9)

    def _measured(self) -> EngineWindow:
        histogram = Histogram()
        histogram.record(2_000_000, OPERATIONS)
        start, self._next = self._next, self._next + self._window
        return EngineWindow(
            start=start,
            end=self._next,
            counters={"operations": OPERATIONS, "errors": 0},
            gauges={"schedule_debt_seconds": 0.0},
            latency={"publish": histogram},
        )
