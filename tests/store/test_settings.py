from pathlib import Path

import pytest

from cliffwatch.errors import Code, Problem
from cliffwatch.settings import read_settings


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
    ("variable", "value", "remedy"),
    [
        ("CLIFFWATCH_LISTEN_PORT", "99999", "99999 is out of range; write at most 65535"),
        ("CLIFFWATCH_MISFIRE_GRACE", "60", "36h"),
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
