"""Protocol between a coordinator and a part: lines of JSON, commands on the part's stdin, records on its stdout.

A part executes one command at a time and ends each with exactly one answer. Before the answer come records of what
happened meanwhile: windows and events as in the engine contract (ARCHITECTURE.md), changes of its processes. `Stop` has
no answer: it makes the command in progress end early, as it would end by itself.

    order → held      examine the target, claim it, check the engine's plan against it
    prepare → prepared      lay out what the load needs
    load → loaded      run engines, one after another, until the load's end
    flush → flushed      flush the target's page cache
    clear → cleared      remove the engine's files
    close → closed      release the target; the part then exits
    any → refused      a problem, in place of the answer

When its stdin is closed, the part ends with all that it has started.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.base.errors import Code
from cliffwatch.base.finite_json import json_text
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.journal.events import EventType
from cliffwatch.model.drive_id import DriveId
from cliffwatch.model.order import RunOrder
from cliffwatch.model.window import EngineWindow, format_engine_line, parse_engine_line


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Order(_Line):
    """Command to claim the target of `run`. `asked_…` identify the target at the time of the run request, if known.

    The part uses the run's time: virtual time from `virtual_start` on, where engines set its pace; otherwise the
    machine's monotonic clock plus `ahead_of_monotonic_seconds`. `directory` is where the part may write: job files and
    the engines' output.
    """

    type: Literal["order"] = "order"
    run: RunOrder
    directory: Path
    state_directory: Path
    asked_path: str | None = None
    asked_directory: str | None = None
    asked_blocks: str | None = None
    virtual_start: float | None = None
    ahead_of_monotonic_seconds: float = 0.0


class Prepare(_Line):
    """Command to prepare the target. `with_facts`: the answer has the facts about the machine and the engine."""

    type: Literal["prepare"] = "prepare"
    with_facts: bool


class Load(_Line):
    """Command to make load from `start` to `stop`, in seconds since the epoch. `may_move`: if the engine is ready
    later, the load begins then, and lasts as long as planned. `resumed`: files of an earlier engine may exist.
    `restarts`: engine restarts that the run has used up. `reported_until`: end of the last window that the run has.
    """

    type: Literal["load"] = "load"
    start: float
    stop: float
    may_move: bool
    resumed: bool
    restarts: int
    reported_until: float | None = None


class Flush(_Line):
    """Command to flush the page cache. `is_stopped`: wait at most `grace_seconds` for a drive that does not answer."""

    type: Literal["flush"] = "flush"
    is_stopped: bool
    grace_seconds: float


class Clear(_Line):
    type: Literal["clear"] = "clear"


class Close(_Line):
    type: Literal["close"] = "close"


class Stop(_Line):
    type: Literal["stop"] = "stop"


Command = Order | Prepare | Load | Flush | Clear | Close | Stop


@dataclass(frozen=True, slots=True)
class DriveBelow:
    """A drive below the target: its kernel name, how many requests the block layer queues for it, its major:minor.

    `instance`: of a drive of another host, which is named HOST/DEVICE, the label `instance` of its exporters.
    `part`: in a run with several parts, the one whose target it is below.
    """

    name: str
    queue_requests: int | None = None
    major_minor: str = ""
    instance: str = ""
    part: str = ""

    @property
    def id(self) -> DriveId:
        """Identity by which the run's windows name the drive's figures."""
        return DriveId(self.major_minor, self.part)

    @property
    def labels(self) -> dict[str, str]:
        """Labels by which Prometheus knows the drive: its exporters', apart from the host's own."""
        if not self.instance:
            return {"device": self.name}
        return {"device": self.name.partition("/")[2], "device_instance": self.instance}


class Held(_Line):
    """Answer to `Order`: the target is claimed. `drives` are below it; `mount_point` is that of its file system."""

    type: Literal["held"] = "held"
    is_device: bool
    drives: tuple[DriveBelow, ...]
    mount_point: str | None


class Prepared(_Line):
    type: Literal["prepared"] = "prepared"
    end: LoadEnd
    message: str = ""
    facts: dict[str, Any] | None = None


class Loaded(_Line):
    """Answer to `Load`. `message`: why the load failed, or the last engine's message if no window was measured."""

    type: Literal["loaded"] = "loaded"
    end: LoadEnd
    message: str = ""


class Flushed(_Line):
    type: Literal["flushed"] = "flushed"


class Cleared(_Line):
    type: Literal["cleared"] = "cleared"


class Closed(_Line):
    """Answer to `Close`: resources that the part itself used, without its engines."""

    type: Literal["closed"] = "closed"
    cpu_seconds: float
    max_resident_bytes: int


class Refused(_Line):
    type: Literal["refused"] = "refused"
    code: Code
    message: str


Answer = Held | Prepared | Loaded | Flushed | Cleared | Closed | Refused


@dataclass(frozen=True, slots=True)
class Happened:
    """An event for the journal; `at` on the run's time line."""

    at: float
    type: EventType
    name: str
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineAt:
    """The process that the part waits for now, None without one. `start`: when an engine's first window begins."""

    process: ProcessIdentity | None
    start: float | None = None


@dataclass(frozen=True, slots=True)
class LeftProcess:
    """A process that was killed and does not end."""

    process: ProcessIdentity


@dataclass(frozen=True, slots=True)
class Moved:
    """The load begins at `start`, which may be later than planned. `begun`: an engine has begun; `start` is final."""

    start: float
    begun: bool


Record = EngineWindow | Happened | EngineAt | LeftProcess | Moved


class _HappenedLine(_Line):
    type: Literal["happened"]
    at: float
    event: EventType
    name: str
    detail: dict[str, Any]


class _ProcessLine(_Line):
    pid: int
    start_ticks: int
    boot_id: str


class _EngineLine(_Line):
    type: Literal["engine"]
    process: _ProcessLine | None
    start: float | None


class _LeftLine(_Line):
    type: Literal["left"]
    process: _ProcessLine


class _MovedLine(_Line):
    type: Literal["moved"]
    start: float
    begun: bool


_COMMANDS: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="type")])
_UP: TypeAdapter[Answer | _HappenedLine | _EngineLine | _LeftLine | _MovedLine] = TypeAdapter(
    Annotated[Answer | _HappenedLine | _EngineLine | _LeftLine | _MovedLine, Field(discriminator="type")]
)
_WINDOW = b'{"type":"window"'


def command_line(command: Command) -> bytes:
    return json_text(command.model_dump(mode="json")).encode() + b"\n"


def parse_command(line: bytes) -> Command:
    """Parse the line of a command. Raises ValueError."""
    return _COMMANDS.validate_python(json.loads(line))


def record_line(record: Record | Answer) -> bytes:
    """Line of a record or an answer, with the newline."""
    if isinstance(record, EngineWindow):
        return format_engine_line(record).encode() + b"\n"
    if isinstance(record, BaseModel):
        return json_text(record.model_dump(mode="json")).encode() + b"\n"
    body: dict[str, Any]
    if isinstance(record, Happened):
        body = {"type": "happened", "at": record.at, "event": record.type.value, "name": record.name}
        body["detail"] = record.detail
    elif isinstance(record, EngineAt):
        process = record.process.to_json() if record.process else None
        body = {"type": "engine", "process": process, "start": record.start}
    elif isinstance(record, LeftProcess):
        body = {"type": "left", "process": record.process.to_json()}
    else:
        body = {"type": "moved", "start": record.start, "begun": record.begun}
    return json_text(body).encode() + b"\n"


def parse_record(line: bytes) -> Record | Answer:
    """Parse the line of a record or an answer. Raises ValueError for a line that no part of this version prints."""
    if line.startswith(_WINDOW):
        window = parse_engine_line(line)
        assert isinstance(window, EngineWindow), "its type says so"
        return window
    found = _UP.validate_python(json.loads(line))
    if isinstance(found, _HappenedLine):
        return Happened(found.at, found.event, found.name, found.detail)
    if isinstance(found, _EngineLine):
        return EngineAt(_identity(found.process) if found.process else None, found.start)
    if isinstance(found, _LeftLine):
        return LeftProcess(_identity(found.process))
    if isinstance(found, _MovedLine):
        return Moved(found.start, found.begun)
    return found


def _identity(line: _ProcessLine) -> ProcessIdentity:
    return ProcessIdentity(line.pid, line.start_ticks, line.boot_id)
