"""The command engine: runs a program that the owner of the machine has allowed by name (`definition.py`).

Its process is `python -m cliffwatch.engines.command.process`, which reads what the program prints; a program that
speaks the engine contract is started itself.
"""

import hashlib
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import parse_size
from cliffwatch.engines.command.definition import COMMANDS, CommandDefinition, Value, read_definition
from cliffwatch.engines.command.process import VARIABLES, CommandJob, times
from cliffwatch.engines.contract import EngineContext, EngineFacts, JsonLines, Launch, Probe, Translator
from cliffwatch.model.document import Name, Strict
from cliffwatch.model.dsn import Dsn
from cliffwatch.model.operation import Operation
from cliffwatch.model.plan import LoadPlan, PlannedWrite

#: Directory in the run's own that the command works in.
FILES = "files"


class CommandLoad(Strict):
    """A command that is allowed on the machine, by its name, and the arguments that it leaves open."""

    command: Name
    arguments: dict[str, Value] = Field(default_factory=dict)


class CommandEngine:
    """Engine that runs an allowed command."""

    name = "command"
    load_model = CommandLoad
    target_kinds = frozenset({"directory", "broker", "postgres", "observed"})
    latencies = tuple(each.value for each in Operation)
    stop_signal = signal.SIGTERM
    reads_history = False

    def is_virtual(self, load: CommandLoad) -> bool:
        return False

    def plan(self, load: CommandLoad, context: EngineContext) -> LoadPlan:
        definition, values = _resolved(load, context)
        command = tuple(_filled(definition.command, values))
        size_bytes = _written_bytes(definition, values)
        return LoadPlan(
            writes=() if size_bytes is None else (PlannedWrite(context.path / FILES, size_bytes),),
            command=command,
            direct=True,
            written_bytes=size_bytes,
            notes=(f"the command is allowed by {context.state_directory / COMMANDS / load.command}.yaml",),
        )

    def probe(self, load: CommandLoad, context: EngineContext) -> Probe:
        definition, values = _resolved(load, context)
        programs = [_filled(command, values)[0] for command in (definition.prepare, definition.command) if command]
        missing = [program for program in programs if shutil.which(program) is None]
        return Probe(refused=tuple(f"{program} is not installed, or not on PATH" for program in missing))

    def prepare(self, load: CommandLoad, context: EngineContext) -> Launch | None:
        definition, values = _resolved(load, context)
        if not definition.prepare:
            return None
        return _launch(_filled(definition.prepare, values), definition, context)

    def launch(self, load: CommandLoad, context: EngineContext) -> Launch:
        definition, values = _resolved(load, context)
        command = _filled(definition.command, values)
        if definition.output.format == "engine":
            return _launch(command, definition, context)
        job = CommandJob(
            command=tuple(definition.command),
            values=values,
            output=definition.output,
            operation=definition.operation,
            rate=_rate(definition, values),
            start=context.start,
            stop=context.stop,
            window_seconds=context.window_seconds,
            may_move=context.is_first,
            resumed=context.resumed,
        )
        # -P: Python imports nothing from the working directory, which is the target.
        runner = [sys.executable, "-P", "-m", "cliffwatch.engines.command.process", job.model_dump_json(by_alias=True)]
        return replace(_launch(runner, definition, context), shown=command)

    def translator(self, load: CommandLoad, context: EngineContext) -> Translator:
        return JsonLines()

    def clear(self, load: CommandLoad, context: EngineContext) -> None:
        return None

    def facts(self, load: CommandLoad, context: EngineContext) -> EngineFacts:
        """The command, with its times left open, so that it is the same in each run of it; and a digest of its
        definition, whose file may be changed after the run."""
        definition, values = _resolved(load, context)
        values |= {name: f"{{{name}}}" for name in ("start", "stop")}
        digest = hashlib.sha256(definition.model_dump_json().encode()).hexdigest()[:12]
        return EngineFacts(ways={"command": shlex.join(_filled(definition.command, values)), "definition": digest})


def _resolved(load: CommandLoad, context: EngineContext) -> tuple[CommandDefinition, dict[str, str]]:
    """The command's definition, and texts of all its placeholders. Raises Problem(workload_invalid)."""
    definition = read_definition(context.state_directory, load.command)
    if definition.target != context.target_kind:
        fault = FieldFault("target.kind", f"the command {load.command} loads {definition.target}")
        raise Problem(Code.WORKLOAD_INVALID, "the workload cannot be run on this target", [fault])
    values = definition.values(load.arguments)
    values |= times(context.start, context.stop) | {
        "window_seconds": f"{context.window_seconds:g}",
        "directory": ".",
        "servers": ",".join(context.bootstrap_servers),
    }
    if context.dsn is not None:
        dsn = Dsn.parse(context.dsn)
        values |= {"host": dsn.host, "port": str(dsn.port), "user": dsn.user, "database": dsn.database}
    return definition, values


def _filled(command: Sequence[str], values: dict[str, str]) -> list[str]:
    """The command with its placeholders filled in. Raises Problem(workload_invalid) for one that the target has not."""
    try:
        return [text.format_map(values) for text in command]
    except KeyError as error:
        fault = FieldFault("load.command", f"the command uses {{{error.args[0]}}}, which this kind of target has not")
        raise Problem(Code.WORKLOAD_INVALID, "the command cannot be run so", [fault]) from error


def _written_bytes(definition: CommandDefinition, values: dict[str, str]) -> int | None:
    if definition.writes is None:
        return None
    (text,) = _filled([definition.writes], values)
    try:
        return parse_size(text)
    except ValueError as error:
        fault = FieldFault("load.command", f"what it writes is {text!r}: {error}")
        raise Problem(Code.WORKLOAD_INVALID, "the command cannot be run so", [fault]) from error


def _rate(definition: CommandDefinition, values: dict[str, str]) -> float | None:
    if definition.rate is None:
        return None
    (text,) = _filled([definition.rate], values)
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e12:
        fault = FieldFault("load.command", f"its rate is {text!r}, which is no number of operations a second")
        raise Problem(Code.WORKLOAD_INVALID, "the command cannot be run so", [fault])
    return rate


def _launch(command: Sequence[str], definition: CommandDefinition, context: EngineContext) -> Launch:
    """The process, which works in the run's own directory if it has one, and gets no secret of the service."""
    directory = context.entry if definition.target == "directory" else context.scratch
    return Launch(command, variables=VARIABLES, directory=directory)
