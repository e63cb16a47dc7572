"""Run the simulator, a limited number of processes at a time; all of them end when this process ends."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.labs.what_if.plan import Simulation, SimulationPlan

_USAGE_STATUS = 2
#: Longest time until Ctrl-C is noticed.
_POLL_SECONDS = 0.2
_PREFIX = "cliffwatch-drive: "


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Result of one simulation. `onset_seconds` is None if the drive had no cliff."""

    onset_seconds: float | None
    write_amplification: float
    definition: str
    cpu_seconds: float


Outcome = SimulationResult | Problem


@dataclass(slots=True)
class Simulator:
    """Runs the simulator `program`. A context manager: however it is left, none of its processes stays alive."""

    program: Path
    _alive: set["subprocess.Popen[str]"] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: bool = False
    _is_interrupted: bool = False
    _before: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        # The handlers only set a flag: an exception in one could leave a lock of the thread pool held, a deadlock.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ended = True
            alive = list(self._alive)
        for process in alive:
            process.kill()
        for process in alive:
            process.wait()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._is_interrupted = True

    def run(self, plan: SimulationPlan, report: Callable[[int], None]) -> dict[Simulation, Outcome]:
        """Run the plan's simulations and return their results; `report` is called with the number of finished ones.

        A simulation that is impossible and that the user did not ask for, such as more streams than fit on the drive,
        has its Problem as the result. Raises Problem for any other failure, and KeyboardInterrupt soon after SIGINT or
        SIGTERM.
        """
        found: dict[Simulation, Outcome] = {}
        asked = plan.asked
        with ThreadPoolExecutor(plan.jobs) as pool:
            try:
                # Requested simulations run first, so that their errors are raised early.
                ordered = sorted(plan.simulations, key=lambda simulation: simulation not in asked)
                futures: dict[Future[SimulationResult], Simulation] = {
                    pool.submit(self._simulate, plan, simulation): simulation for simulation in ordered
                }
                waiting = set(futures)
                while waiting:
                    done, waiting = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED)
                    if self._is_interrupted:
                        raise KeyboardInterrupt
                    for future in done:
                        simulation = futures[future]
                        try:
                            found[simulation] = future.result()
                        except Problem as problem:
                            if simulation in asked or problem.code is not Code.BAD_REQUEST:
                                raise
                            found[simulation] = problem
                        report(len(found))
            except BaseException:
                # The pool waits for its threads, and they for their processes.
                self.__exit__(None, None, None)
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return found

    def _simulate(self, plan: SimulationPlan, simulation: Simulation) -> SimulationResult:
        extra = [f"--{name}={value}" for name, value in plan.profile.extra.items()]
        varied = {name for name, _ in simulation.values}
        command = [
            str(self.program),
            "simulate",
            f"--profile={plan.profile.path}",
            *(flag for flag in extra if flag[2:].split("=", 1)[0] not in varied),
            *simulation.flags,
            f"--scale={plan.scale}",
            "--format=json",
        ]
        output, complaint, status = self._call(command)
        if status != 0:
            raise _problem(status, complaint)
        return read_found(json.loads(output))

    def _call(self, command: Sequence[str]) -> tuple[str, str, int]:
        with self._lock:
            if self._ended:
                raise Problem(Code.INTERNAL, "the simulations were ended")
            # With --pdeathsig, a SIGKILL of this process leaves no simulator running either.
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self._alive.add(process)
        try:
            output, complaint = process.communicate()
        finally:
            with self._lock:
                self._alive.discard(process)
        return output, complaint, process.returncode


def read_found(report: Mapping[str, Any]) -> SimulationResult:
    """Result of a simulation, from the simulator's report."""
    return SimulationResult(
        onset_seconds=report["cliff"]["onset_seconds"],
        write_amplification=report["write_amplification"],
        definition=report["cliff"]["definition"],
        cpu_seconds=report["cpu_seconds"],
    )


def _problem(status: int, complaint: str) -> Problem:
    """Problem from the first line of the simulator's errors, which names the wrong setting and what would be right."""
    lines = complaint.strip().splitlines() or ["it printed nothing"]
    words = lines[0].removeprefix(_PREFIX).removeprefix("error: ")
    if status == _USAGE_STATUS:
        name, colon, message = words.removeprefix("--").partition(": ")
        if words.startswith("--") and colon:
            return Problem(Code.BAD_REQUEST, "this cannot be simulated", [FieldFault(name, message)])
        return Problem(Code.BAD_REQUEST, f"this cannot be simulated: {words}")
    return Problem(Code.INTERNAL, f"the simulator ended with status {status}: {words}")
