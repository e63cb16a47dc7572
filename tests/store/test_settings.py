import ast
from pathlib import Path
from typing import Any

import pytest
from testkit.storage_engine import load_of

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.programs import LOAD
from cliffwatch.engines.contract import Engine, EngineContext
from cliffwatch.engines.kafka.engine import KafkaEngine
from cliffwatch.engines.kafka.load import KafkaLoad
from cliffwatch.engines.storage.engine import StorageEngine
from cliffwatch.model import settings as settings_module
from cliffwatch.model.settings import read_settings


def test_everything_has_a_default_below_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = read_settings()
    assert settings.state_directory == tmp_path / ".cliffwatch"
    assert settings.runs_directory == tmp_path / ".cliffwatch" / "runs"
    assert settings.database_url == f"sqlite:///{tmp_path}/.cliffwatch/cliffwatch.sqlite3"
    assert (settings.listen_host, settings.listen_port, settings.misfire_grace) == ("127.0.0.1", 9899, 60.0)


def test_the_environment_is_heard_and_what_is_given_comes_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLIFFWATCH_STATE_DIRECTORY", str(tmp_path / "a"))
    monkeypatch.setenv("CLIFFWATCH_RUNS_DIRECTORY", str(tmp_path / "b"))
    monkeypatch.setenv("CLIFFWATCH_MISFIRE_GRACE", "5m")
    monkeypatch.setenv("CLIFFWATCH_LISTEN_PORT", "8000")
    settings = read_settings(listen_port=0)
    assert settings.state_directory == tmp_path / "a"
    assert settings.runs_directory == tmp_path / "b"
    assert (settings.misfire_grace, settings.listen_port) == (300.0, 0)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "http://127.0.0.1:9890"),
        ({"CLIFFWATCH_PROMETHEUS_PORT": "1234"}, "http://127.0.0.1:1234"),
        ({"CLIFFWATCH_PROMETHEUS_URL": "http://far:1/prometheus"}, "http://far:1/prometheus"),
        ({"CLIFFWATCH_PROMETHEUS_URL": ""}, None),
    ],
)
def test_the_prometheus_to_ask_is_the_local_one_unless_another_or_none_is_named(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], url: str | None
) -> None:
    for variable in ("CLIFFWATCH_PROMETHEUS_PORT", "CLIFFWATCH_PROMETHEUS_URL"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    assert read_settings().prometheus_url == url


@pytest.mark.parametrize(("value", "seconds"), [("", None), ("90d", 90 * 86400.0)])
def test_runs_are_kept_for_ever_unless_it_is_said_for_how_long(
    monkeypatch: pytest.MonkeyPatch, value: str, seconds: float | None
) -> None:
    monkeypatch.setenv("CLIFFWATCH_RETENTION", value)
    assert read_settings().retention == seconds


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("CLIFFWATCH_LISTEN_PORT", "99999", "99999 is out of range; write at most 65535"),
        ("CLIFFWATCH_MISFIRE_GRACE", "60", "36h"),
        ("CLIFFWATCH_RETENTION", "5m", "at least"),
        ("CLIFFWATCH_DATABASE_URL", "mysql://somewhere/db", "postgresql+psycopg://"),
        ("CLIFFWATCH_DATABASE_URL", "cliffwatch.db", "sqlite:////path"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, remedy: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(Problem) as caught:
        read_settings()
    assert caught.value.code is Code.BAD_REQUEST
    assert [fault.field for fault in caught.value.faults] == [variable]
    assert remedy in caught.value.faults[0].message


def test_the_environment_is_read_at_the_edges_alone() -> None:
    """Whatever else needs a setting is given it."""
    package = Path(settings_module.__file__).parent.parent
    readers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "read_settings"
    }
    programs = {f"{package}/__main__.py" for package in ("coordinator", "observer", "telemetry")}
    assert readers == {"cli/session.py", "server/openapi.py"} | programs


@pytest.mark.parametrize(
    ("engine", "load"),
    [(StorageEngine(), load_of()), (KafkaEngine(), KafkaLoad.model_validate({"producer": {}}))],
    ids=["storage", "kafka"],
)
def test_an_engine_starts_the_program_of_the_state_directory_that_it_is_given(
    engine: Engine, load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for state in ("given", "of the environment"):
        program = tmp_path / state / "programs" / LOAD
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
    monkeypatch.setenv("CLIFFWATCH_STATE_DIRECTORY", str(tmp_path / "of the environment"))
    given = tmp_path / "given"
    context = EngineContext("run", tmp_path / "files", False, tmp_path, 1.0, 0.0, 10.0, state_directory=given)
    assert engine.launch(load, context).command[0] == str(given / "programs" / LOAD)
