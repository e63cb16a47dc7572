"""Commands that the owner of the machine allows: files `commands/NAME.yaml` in the state directory.

A workload names one of them and sets the arguments that it leaves open; it can never name a program or add an argument.
"""

import math
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Annotated, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.regular_files import open_regular
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.base.units import parse_size
from cliffwatch.model.document import Strict
from cliffwatch.model.operation import Operation

#: Directory of the files in the state directory.
COMMANDS = "commands"
_FILE_LIMIT_BYTES = 64 * 1024
#: What a command may use beside its own arguments: how long the load lasts, where it runs, and its target.
BUILT_IN = ("seconds", "start", "stop", "window_seconds", "directory", "servers", "host", "port", "user", "database")
UNITS_NANOSECONDS = {"seconds": 1e9, "milliseconds": 1e6, "microseconds": 1e3, "nanoseconds": 1.0}
#: Groups of a pattern: counts since the line before, rates, and quantiles.
COUNT_GROUPS = ("operations", "bytes", "errors", "skipped")
#: What follows the name of a count that a program states as a total since its start.
TOTAL = "_total"
TOTAL_GROUPS = tuple(f"{name}{TOTAL}" for name in COUNT_GROUPS)
RATE_GROUPS = ("operations_per_second", "bytes_per_second")
QUANTILE_GROUPS = ("p50", "p90", "p99", "p999", "p9999", "max")
_NAME = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Value = str | int | float


class Argument(Strict):
    """An argument that a workload may set: one of `choices`, or a number from `least` to `most`; whole, unless
    `fraction`. Without a `default` it has to be set."""

    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    fraction: bool = False
    default: Value | None = None

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        bounds = (self.least, self.most)
        if bool(self.choices) == (None not in bounds) or (self.choices and bounds != (None, None)):
            raise ValueError("give `choices`, or `least` and `most` of a number")
        if self.default is not None:
            self.text_of(self.default)
        return self

    def text_of(self, value: Value) -> str:
        """The value as an argument. Raises ValueError for one that is not allowed."""
        if self.choices:
            if str(value) not in self.choices:
                raise ValueError(f"{str(value)[:40]!r} is not one of {', '.join(self.choices)}")
            return str(value)
        assert self.least is not None, "validated"
        assert self.most is not None, "validated"
        if isinstance(value, str | bool) or not math.isfinite(value) or (not self.fraction and value != int(value)):
            raise ValueError(f"{str(value)[:40]!r} is not a {'number' if self.fraction else 'whole number'}")
        if not self.least <= value <= self.most:
            raise ValueError(f"{value} is not from {self.least:g} to {self.most:g}")
        return format(value, "f").rstrip("0").rstrip(".") if self.fraction else str(int(value))


class Output(Strict):
    """What the command prints, and how it is read: `engine` (the engine contract), `hdr` (HdrHistogram interval logs),
    `k6` (its stream of JSON), `latencies` (lines of start and latency) or `progress` (lines that match `pattern`)."""

    format: Literal["engine", "hdr", "k6", "latencies", "progress"]
    stream: Literal["stdout", "stderr"] = "stdout"
    unit: Literal["seconds", "milliseconds", "microseconds", "nanoseconds"] | None = None
    pattern: str | None = None
    metric: str = "http_req_duration"

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        if (self.pattern is None) == (self.format == "progress"):
            raise ValueError("`pattern`: a regular expression belongs to `format: progress`, and is needed there")
        if self.pattern is not None:
            self._check_pattern(self.pattern)
        has_quantiles = any(f"?P<{name}>" in (self.pattern or "") for name in QUANTILE_GROUPS)
        if (self.format == "latencies" or has_quantiles) and self.unit is None:
            raise ValueError("`unit`: say what latencies are in, such as milliseconds")
        if self.format == "engine" and self.stream != "stdout":
            raise ValueError("`stream`: the engine contract is printed on stdout")
        return self

    @staticmethod
    def _check_pattern(pattern: str) -> None:
        try:
            names = re.compile(pattern).groupindex
        except re.error as error:
            raise ValueError(f"`pattern`: it is no regular expression: {error}") from error
        known = (*COUNT_GROUPS, *TOTAL_GROUPS, *RATE_GROUPS, *QUANTILE_GROUPS)
        if unknown := next((name for name in names if name not in known), None):
            raise ValueError(f"`pattern`: {unknown!r} is not one of the groups {', '.join(known)}")
        if not set(names) & {"operations", "operations_total", "operations_per_second"}:
            raise ValueError("`pattern`: it needs a group `operations`, `operations_total` or `operations_per_second`")
        if twice := next((name for name in COUNT_GROUPS if name in names and name + TOTAL in names), None):
            raise ValueError(f"`pattern`: {twice} is counted twice, also by {twice}{TOTAL}")

    @property
    def unit_nanoseconds(self) -> float:
        """What 1 is in nanoseconds; of a histogram without a unit, 1."""
        return UNITS_NANOSECONDS[self.unit or "nanoseconds"]


class CommandDefinition(Strict):
    """A command that is allowed. `writes`: most that it keeps in the run's own directory, such as `4GiB`, for such a
    target; placeholders are filled in, as in `rate`."""

    version: Literal[1]
    description: str = ""
    target: Literal["directory", "broker", "postgres", "observed"]
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    prepare: tuple[str, ...] = ()
    arguments: dict[_NAME, Argument] = Field(default_factory=dict)
    writes: str | None = None
    rate: str | None = None
    output: Output
    operation: Operation = Operation.WRITE

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.writes is None) == (self.target == "directory"):
            raise ValueError("`writes`: most bytes that are kept in the directory, of `target: directory` alone")
        if taken := sorted(set(self.arguments) & set(BUILT_IN)):
            raise ValueError(f"`arguments`: {taken[0]} is the engine's own")
        for key in ("command", "prepare"):
            for text in getattr(self, key):
                self._check_placeholders(key, text)
        for key in ("rate", "writes"):
            if (text := getattr(self, key)) is not None:
                self._check_placeholders(key, text)
        if self.writes is not None and "{" not in self.writes:
            parse_size(self.writes)
        return self

    def _check_placeholders(self, key: str, text: str) -> None:
        known = {*self.arguments, *BUILT_IN}
        try:
            fields = [
                (name, spec, conversion) for _, name, spec, conversion in Formatter().parse(text) if name is not None
            ]
        except ValueError as error:
            raise ValueError(f"`{key}`: {text[:80]!r}: {error}; write {{{{ for a brace") from error
        for name, spec, conversion in fields:
            if name not in known or spec or conversion:
                raise ValueError(f"`{key}`: {{{name}}} is none of {', '.join(sorted(known))}; write {{{{ for a brace")

    def values(self, given: Mapping[str, Value]) -> dict[str, str]:
        """Arguments as texts. Raises Problem(workload_invalid) that names those at fault."""
        faults = [
            FieldFault(
                f"load.arguments.{name}", f"the command has no such argument{did_you_mean(name, self.arguments)}"
            )
            for name in given
            if name not in self.arguments
        ]
        values: dict[str, str] = {}
        for name, argument in self.arguments.items():
            value = given.get(name, argument.default)
            if value is None:
                faults.append(FieldFault(f"load.arguments.{name}", "missing; it has no default"))
                continue
            try:
                values[name] = argument.text_of(value)
            except ValueError as error:
                faults.append(FieldFault(f"load.arguments.{name}", str(error)))
        if faults:
            raise Problem(Code.WORKLOAD_INVALID, "the command cannot be run so", faults)
        return values


def read_definition(state_directory: Path, name: str) -> CommandDefinition:
    """The command of this name. Raises Problem where there is none, or where others could have written it."""
    directory = state_directory / COMMANDS
    path = directory / f"{name}.yaml"
    try:
        document = yaml.safe_load(_trusted(directory, path))
        return CommandDefinition.model_validate(document)
    except FileNotFoundError as error:
        present = sorted(each.stem for each in directory.glob("*.yaml")) if directory.is_dir() else []
        allowed = f"; allowed are {', '.join(present)}" if present else ""
        fault = FieldFault("load.command", f"there is no {path}{did_you_mean(name, present) or allowed}")
        raise Problem(Code.WORKLOAD_INVALID, f"the command {name} is not allowed on this machine", [fault]) from error
    except ValidationError as error:
        faults = [FieldFault("load.command", f"{path}: {each.field}: {each.message}") for each in faults_of(error)]
        raise Problem(Code.WORKLOAD_INVALID, f"the command {name} cannot be used", faults) from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        words = f"{path}: {' '.join(str(error).split())[:300]}"
        raise Problem(
            Code.WORKLOAD_INVALID, f"the command {name} cannot be used", [FieldFault("load.command", words)]
        ) from error


def _trusted(directory: Path, path: Path) -> bytes:
    """Content of a file that only root or the service's user can have written. Raises OSError, ValueError."""
    _require_own(directory, directory.lstat())
    descriptor = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        _require_own(path, os.fstat(descriptor))
        content = file.read(_FILE_LIMIT_BYTES + 1)
    if len(content) > _FILE_LIMIT_BYTES:
        raise ValueError(f"it is longer than {_FILE_LIMIT_BYTES} bytes")
    return content


def _require_own(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in {0, os.geteuid()} or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError(f"{path} can be written by others; chown root {path} && chmod go-w {path}")
