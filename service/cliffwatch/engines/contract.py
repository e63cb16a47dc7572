"""Engine contract: how `load` is validated, what would be written, how an engine starts, how its output is read.

An engine is a process of its own. It stops on `stop_signal` after reporting its last window. Its stdout becomes records
(windows, events, an end) through a `Translator`; an engine that prints the contract's JSON lines needs only
`JsonLines`. Nothing here writes to a target: the part starts processes that do, after the safety gate checked the plan.
"""

import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from cliffwatch.model.plan import LoadPlan
from cliffwatch.model.target import AnyTarget, PostgresTarget, bootstrap_servers_of
from cliffwatch.model.timeline import Timeline
from cliffwatch.model.window import EngineEvent, EngineRecord, parse_engine_line
from cliffwatch.model.workload import Workload


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Context that an engine is started in: where it writes, and when its load begins and ends.

    `path` is the run's own directory, or the device node. An engine reaches it through `entry`, by `descriptor`,
    because its name may lead elsewhere by then. `scratch` is a directory for the engine's job files. The load lasts
    from `start` to `stop` (seconds since the epoch, both on the window grid, the multiples of `window_seconds`); `plan`
    and `prepare` get estimates of them. `resumed`: files of an earlier engine of this run may exist. `load_start`: when
    the run's load began; None if it begins with this engine. `reported_until`: end of the last window that the run has;
    None if it has none. `may_begin_late`: the load may begin late, since no other
    part has to begin at the same time. `bootstrap_servers`: addresses of a broker target. `dsn`: the
    database of a postgres target. `target_kind`: such as `directory`. `state_directory`: the service's, where this
    project's programs are built.
    """

    run_id: str
    path: Path
    is_device: bool
    scratch: Path
    window_seconds: float
    start: float
    stop: float
    state_directory: Path
    resumed: bool = False
    load_start: float | None = None
    reported_until: float | None = None
    bootstrap_servers: tuple[str, ...] = ()
    dsn: str | None = None
    target_kind: str = ""
    descriptor: int | None = None
    may_begin_late: bool = True

    @classmethod
    def planned(
        cls,
        workload: Workload,
        target: AnyTarget,
        now: float,
        *,
        run_id: str,
        path: Path,
        is_device: bool,
        scratch: Path,
        state_directory: Path,
    ) -> "EngineContext":
        """Context of a load that is started `now` (seconds since the epoch), as if preparing took no time."""
        timeline = Timeline.plan(now, workload.phases, workload.window)
        return cls(
            run_id=run_id,
            path=path,
            is_device=is_device,
            scratch=scratch,
            window_seconds=workload.window,
            start=timeline.load_start,
            stop=timeline.load_stop,
            state_directory=state_directory,
            bootstrap_servers=bootstrap_servers_of(target),
            target_kind=target.kind,
            dsn=target.dsn if isinstance(target, PostgresTarget) else None,
        )

    @property
    def entry(self) -> Path:
        """Path of the run's own directory or the device, through `descriptor` if there is one. For a device, pass the
        descriptor to the `Launch`, too; a directory is entered before descriptors are closed."""
        return self.path if self.descriptor is None else Path(f"/proc/self/fd/{self.descriptor}")

    @property
    def begun(self) -> float:
        """When the run's load began, in seconds since the epoch."""
        return self.start if self.load_start is None else self.load_start

    @property
    def is_first(self) -> bool:
        """Whether the run's load begins with this engine, which may then begin late and end as much later."""
        return self.may_begin_late and self.begun == self.start


@dataclass(frozen=True, slots=True)
class Launch:
    """The process to start, in `directory` if that is given. It inherits the `descriptors` of this process.

    `variables`: names of the environment variables that it inherits; all if None. `shown`: the command that people
    know, where `command` is an engine's own program around it.

    An engine that writes into the run's own directory uses relative names, and has the context's `entry` as
    `directory`. A device is passed as a descriptor.
    """

    command: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)
    directory: Path | None = None
    descriptors: tuple[int, ...] = ()
    variables: Collection[str] | None = None
    shown: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Facts about an engine on the machine where it is to run.

    `versions`: of the programs that it runs. `ways`: by purpose, such as `io`, the method that it uses on this
    machine, where it has several; and settings of the server that it loads. `warnings`: sentences on how these affect
    the measurement.
    """

    versions: dict[str, str] = field(default_factory=dict)
    ways: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """Preflight result of the target, before a run: notes, and problems that would keep the load from beginning.

    `unreachable`: servers that do not answer, and why. `refused`: why the load cannot work on a target that answers.
    """

    notes: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Translator(Protocol):
    """Parser of an engine's output into records; keeps no more than one window of it in memory."""

    def feed(self, chunk: bytes, received_at: float) -> list[EngineRecord]:
        """Records completed by `chunk`; `received_at` is on the run's time line."""
        ...

    def finish(self, exit_status: int) -> list[EngineRecord]:
        """Records that only the end of the output completes."""
        ...


class Engine(Protocol):
    """One kind of load generator."""

    @property
    def name(self) -> str: ...

    @property
    def load_model(self) -> type[BaseModel]:
        """Pydantic model of the workload's `load`."""
        ...

    @property
    def target_kinds(self) -> frozenset[str]:
        """Kinds of target that it can load, such as `directory`."""
        ...

    @property
    def latencies(self) -> tuple[str, ...]:
        """Names of all latencies that its windows can have; a limit on any other latency could not be judged."""
        ...

    @property
    def stop_signal(self) -> signal.Signals:
        """Signal on which the engine finishes its window and exits."""
        ...

    @property
    def reads_history(self) -> bool:
        """True when its windows are of what others recorded: an engine that is started again reports those that were
        missed, and freezes of its own process change none."""
        ...

    def is_virtual(self, load: Any) -> bool:
        """Whether time is virtual: the engine's windows set its pace, faster than the wall clock."""
        ...

    def plan(self, load: Any, context: EngineContext) -> LoadPlan: ...

    def probe(self, load: Any, context: EngineContext) -> Probe:
        """Preflight check whether the load could begin on the target. Takes seconds at most, and changes nothing.

        Drives are examined by the safety gate instead. Raises Problem when the check cannot be made.
        """
        ...

    def prepare(self, load: Any, context: EngineContext) -> Launch | None:
        """Process that must complete before the load can begin, such as laying out files; None when there is none.

        Its stdout is not read. It must work again after an earlier one was killed half-way. Raises Problem.
        """
        ...

    def launch(self, load: Any, context: EngineContext) -> Launch:
        """Write job files into `context.scratch` and return the process to start. Raises Problem(component_missing).

        The process is started shortly before `context.start` and waits until then. If the run's first engine is not
        ready by then, it begins on a later line of the grid, lasts as long as planned, and first reports `BEGUN`.
        """
        ...

    def translator(self, load: Any, context: EngineContext) -> Translator: ...

    def clear(self, load: Any, context: EngineContext) -> Launch | None:
        """Process that removes what the engine made outside the run's own directory, such as tables; None when there
        is nothing, or when the load removes it itself. It must work again after an earlier one was killed.
        """
        ...

    def facts(self, load: Any, context: EngineContext) -> EngineFacts:
        """Facts of the engine for facts.json. Takes no more than a second, and writes nothing."""
        ...


class JsonLines:
    """Translator of the contract's own output, a JSON object a line. A line that is not valid becomes an event."""

    #: A line longer than this is not a window but malformed output.
    LINE_LIMIT_BYTES = 16 * 1024 * 1024

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes, received_at: float) -> list[EngineRecord]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > self.LINE_LIMIT_BYTES:
            self._rest = b""
            return [*self._parse(lines, received_at), EngineEvent(received_at, "output_line_too_long")]
        return self._parse(lines, received_at)

    def finish(self, exit_status: int) -> list[EngineRecord]:
        return []

    @staticmethod
    def _parse(lines: list[bytes], received_at: float) -> list[EngineRecord]:
        records: list[EngineRecord] = []
        for line in lines:
            if not line.strip():
                continue
            try:
                records.append(parse_engine_line(line))
            except ValueError as error:
                sample = line[:200].decode("utf-8", "replace")
                records.append(
                    EngineEvent(received_at, "output_not_understood", {"message": str(error), "line": sample})
                )
        return records
