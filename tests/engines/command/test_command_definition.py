"""Which commands are allowed, and what a workload may set of them."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.engines.command.commands import DB_BENCH, SYSBENCH, allow, definition

from cliffwatch.base.errors import FieldFault, Problem
from cliffwatch.engines.command.definition import read_definition
from cliffwatch.engines.command.engine import CommandEngine, CommandLoad
from cliffwatch.engines.contract import EngineContext
from cliffwatch.engines.registry import checked_workload


def context(state: Path, kind: str = "directory", **changes: Any) -> EngineContext:
    given: dict[str, Any] = {
        "run_id": "run",
        "path": state / "target" / "cliffwatch-run",
        "is_device": False,
        "scratch": state,
        "window_seconds": 10.0,
        "start": 1000.0,
        "stop": 1060.5,
        "state_directory": state,
        "target_kind": kind,
    }
    return EngineContext(**given | changes)


def planned(state: Path, name: str, arguments: dict[str, Any] | None = None, kind: str = "directory") -> list[str]:
    load = CommandLoad.model_validate({"command": name, "arguments": arguments or {}})
    return list(CommandEngine().plan(load, context(state, kind)).command)


def refusal(state: Path, name: str, arguments: dict[str, Any] | None = None, kind: str = "directory") -> FieldFault:
    with pytest.raises(Problem) as refused:
        planned(state, name, arguments, kind)
    assert refused.value.code.value == "workload_invalid"
    return refused.value.faults[0]


def test_a_command_is_filled_in_with_the_arguments_of_the_workload_and_what_the_engine_knows(tmp_path: Path) -> None:
    allow(tmp_path, "sysbench", SYSBENCH)
    command = planned(tmp_path, "sysbench", {"threads": 8, "mode": "seqwr"})
    assert "--threads=8" in command
    assert "--file-test-mode=seqwr" in command
    assert "--rate=50" in command
    assert "--time=61" in command, "the load's length, rounded up"


def test_the_plan_lists_the_data_of_a_command_and_its_definition_file(tmp_path: Path) -> None:
    allow(tmp_path, "rocksdb", DB_BENCH)
    plan = CommandEngine().plan(CommandLoad(command="rocksdb"), context(tmp_path))
    (write,) = plan.writes
    assert write.size_bytes == 1 << 30
    assert write.path.is_relative_to(tmp_path / "target" / "cliffwatch-run")
    assert plan.notes == (f"the command is allowed by {tmp_path}/commands/rocksdb.yaml",)


def test_how_much_it_keeps_may_depend_on_an_argument(tmp_path: Path) -> None:
    allow(tmp_path, "sysbench", SYSBENCH)
    load = CommandLoad.model_validate({"command": "sysbench", "arguments": {"size_mib": 2048}})
    assert CommandEngine().plan(load, context(tmp_path)).written_bytes == 2 << 30


def test_brokers_and_databases_are_known_to_a_command(tmp_path: Path) -> None:
    allow(tmp_path, "brokers", definition(target="broker", command=["perf", "{servers}"]))
    allow(tmp_path, "database", definition(target="postgres", command=["perf", "{host}:{port}/{database}", "{user}"]))
    load = CommandLoad(command="brokers")
    there = context(tmp_path, "broker", bootstrap_servers=("a:1", "b:2"))
    assert CommandEngine().plan(load, there).command == ("perf", "a:1,b:2")
    there = context(tmp_path, "postgres", dsn="postgresql://me@db:5433/bench")
    assert CommandEngine().plan(CommandLoad(command="database"), there).command == ("perf", "db:5433/bench", "me")


@pytest.mark.parametrize(
    ("arguments", "field", "words"),
    [
        ({"thread": 8}, "load.arguments.thread", "did you mean 'threads'"),
        ({"threads": 65}, "load.arguments.threads", "is not from 1 to 64"),
        ({"threads": 0}, "load.arguments.threads", "is not from 1 to 64"),
        ({"threads": 1.5}, "load.arguments.threads", "is not a whole number"),
        ({"threads": "8"}, "load.arguments.threads", "is not a whole number"),
        ({"threads": "8 --evil"}, "load.arguments.threads", "is not a whole number"),
        ({"mode": "rndwr; rm -rf /"}, "load.arguments.mode", "is not one of rndwr, seqwr"),
    ],
)
def test_an_argument_that_is_not_allowed_is_named(
    tmp_path: Path, arguments: dict[str, Any], field: str, words: str
) -> None:
    allow(tmp_path, "sysbench", SYSBENCH)
    fault = refusal(tmp_path, "sysbench", arguments)
    assert fault.field == field
    assert words in fault.message


def test_an_argument_without_a_default_is_needed(tmp_path: Path) -> None:
    allow(tmp_path, "some", definition(command=["true", "{rate}"], arguments={"rate": {"least": 1, "most": 9}}))
    assert refusal(tmp_path, "some", kind="observed").field == "load.arguments.rate"
    assert planned(tmp_path, "some", {"rate": 3}, "observed") == ["true", "3"]


def test_a_command_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    allow(tmp_path, "sysbench", SYSBENCH)
    fault = refusal(tmp_path, "bash")
    assert fault.field == "load.command"
    assert "allowed are sysbench" in fault.message
    assert "did you mean 'sysbench'" in refusal(tmp_path, "sysbensh").message


@pytest.mark.parametrize("name", ["../sysbench", "/etc/passwd", "a/b", "", "Sys bench"])
def test_a_workload_cannot_name_a_file_elsewhere(name: str) -> None:
    document = {"version": 1, "name": "x", "engine": "command", "phases": {"soak": "1m"}, "load": {"command": name}}
    with pytest.raises(Problem) as refused:
        checked_workload(document)
    assert refused.value.faults[0].field == "load.command"


def test_a_workload_cannot_name_a_program() -> None:
    load = {"command": "sysbench", "program": "/bin/sh"}
    document = {"version": 1, "name": "x", "engine": "command", "phases": {"soak": "1m"}, "load": load}
    with pytest.raises(Problem) as refused:
        checked_workload(document)
    assert refused.value.faults[0].field == "load.program"


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = allow(tmp_path, "sysbench", SYSBENCH)
    for mode in (0o664, 0o646):
        path.chmod(mode)
        assert "can be written by others" in refusal(tmp_path, "sysbench").message
    path.chmod(0o644)
    path.parent.chmod(0o777)
    assert "can be written by others" in refusal(tmp_path, "sysbench").message


def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = allow(tmp_path, "sysbench", SYSBENCH)
    os.chown(path, 65_534, 65_534)
    assert "chown root" in refusal(tmp_path, "sysbench").message


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    real = allow(tmp_path, "real", SYSBENCH)
    (real.parent / "linked.yaml").symlink_to(real)
    assert refusal(tmp_path, "linked").field == "load.command"


def test_a_command_of_another_kind_of_target_is_refused(tmp_path: Path) -> None:
    allow(tmp_path, "sysbench", SYSBENCH)
    fault = refusal(tmp_path, "sysbench", kind="observed")
    assert (fault.field, fault.message) == ("target.kind", "the command sysbench loads directory")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": []}, "command"),
        ({"command": ["run", "{what}"]}, "{what} is none of"),
        ({"command": ["run", "{seconds!r}"]}, "{seconds} is none of"),
        ({"command": ["run", "{seconds.__class__}"]}, "is none of"),
        ({"command": ["run", "{"]}, "write {{ for a brace"),
        ({"writes": "1GiB"}, "of `target: directory` alone"),
        ({"target": "directory"}, "of `target: directory` alone"),
        ({"arguments": {"seconds": {"least": 1, "most": 2}}}, "is the engine's own"),
        ({"arguments": {"rate": {"least": 1}}}, "give `choices`, or `least` and `most`"),
        ({"arguments": {"rate": {"choices": ["a"], "most": 2}}}, "give `choices`, or `least` and `most`"),
        ({"arguments": {"rate": {"least": 1, "most": 2, "default": 3}}}, "is not from 1 to 2"),
        ({"output": {"format": "latencies"}}, "say what latencies are in"),
        ({"output": {"format": "progress"}}, "is needed there"),
        ({"output": {"format": "k6", "pattern": "x"}}, "belongs to `format: progress`"),
        ({"output": {"format": "progress", "pattern": "("}}, "no regular expression"),
        ({"output": {"format": "progress", "pattern": "(?P<tps>.)"}}, "'tps' is not one of the groups"),
        ({"output": {"format": "progress", "pattern": "(?P<errors>.)"}}, "needs a group `operations`"),
        ({"output": {"format": "progress", "pattern": "(?P<operations>.)(?P<p99>.)"}}, "say what latencies are in"),
        ({"output": {"format": "engine", "stream": "stderr"}}, "printed on stdout"),
        ({"target": "directory", "writes": "much"}, "is not a size"),
        ({"target": "directory", "writes": "{size}GiB"}, "{size} is none of"),
        ({"shell": True}, "unknown key"),
        ({"version": 2}, "version"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    allow(tmp_path, "some", definition(**changes))
    with pytest.raises(Problem) as refused:
        read_definition(tmp_path, "some")
    said = " ".join(fault.message for fault in refused.value.faults)
    assert words in said, said
    assert f"{tmp_path}/commands/some.yaml" in said


@pytest.mark.parametrize("text", ["", "[1]", "a: b: c", "\x00", "version: 1\n" * 9000])
def test_a_malformed_command_definition_is_refused(tmp_path: Path, text: str) -> None:
    allow(tmp_path, "some", text)
    assert refusal(tmp_path, "some").field == "load.command"
