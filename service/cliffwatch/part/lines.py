"""The lines between a coordinator and a part, one JSON object each: commands on its stdin, records on its stdout.

A part executes one command at a time and ends each with exactly one answer; before that come the records of what
happened meanwhile: windows and their events as in the engine contract (ARCHITECTURE.md), changes of its processes.
`Stop` has no answer: it makes the command in progress end early, as it would end by itself.

    order → held      examine the target, claim it, hold the engine's plan against it
    prepare → prepared      lay out what the load needs
    load → loaded      engine after engine until the load's end
    flush → flushed      write what the page cache holds for the target
    clear → cleared      remove what the engine wrote
    close → closed      release the target; the part then exits
    any → refused      a problem, in the place of the answer

The end of stdin is the end of the part, with whatever it has started.
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
from cliffwatch.model.order import RunOrder
from cliffwatch.model.window import EngineWindow, format_engine_line, parse_engine_line


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Order(_Line):
    """What to load, and where. `target_…` and `asked_…` identify what the run was asked for; None where not known.

    The part's time is the run's: `virtual_start` where engines set its pace, else so far ahead of the machine's
    monotonic clock. `directory` is where the part may write: job files and the engines' output.
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
    """`with_facts`: the answer has what was found of the machine and the engine."""

    type: Literal["prepare"] = "prepare"
    with_facts: bool


class Load(_Line):
    """The load from `start` to `stop`, in seconds since the epoch; one that `may_move` begins when its engine is ready,
    and lasts as long. `resumed`: files of an earlier engine may be there. `restarts` of the run's engines were used up.
    """

    type: Literal["load"] = "load"
    start: float
    stop: float
    may_move: bool
    resumed: bool
    restarts: int


class Flush(_Line):
    """`is_stopped`: give a drive that does not answer `grace_seconds`, and no more."""

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
    """A drive below the target: its kernel name, how many requests the block layer queues for it, its major:minor."""

    name: str
    queue_requests: int | None = None
    major_minor: str = ""


class Held(_Line):
    """What is below the target that the part holds now; `mount_point` of the file system that a directory is on."""

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
    """`message` says why a load failed, or what its last engine said where none measured anything."""

    type: Literal["loaded"] = "loaded"
    end: LoadEnd
    message: str = ""


class Flushed(_Line):
    type: Literal["flushed"] = "flushed"


class Cleared(_Line):
    type: Literal["cleared"] = "cleared"


class Closed(_Line):
    """What the part itself used."""

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
    """The process that the part waits for now; None while there is none. `start` of an engine's first window."""

    process: ProcessIdentity | None
    start: float | None = None


@dataclass(frozen=True, slots=True)
class LeftProcess:
    """A process that was killed and does not end."""

    process: ProcessIdentity


@dataclass(frozen=True, slots=True)
class Moved:
    """The load begins at `start`, later than was planned; `begun`: an engine has, and it moves no more."""

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
    """Raises ValueError."""
    return _COMMANDS.validate_python(json.loads(line))


def record_line(record: Record | Answer) -> bytes:
    """A record or an answer, with the newline."""
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
    """Raises ValueError for what no part of this version prints."""
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
