"""What the command says of a database that the service cannot use."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.machine import Machine

from cliffwatch.store.database import upgrade


def test_a_database_of_a_newer_version_is_reported_in_a_sentence(idle: Machine) -> None:
    path = idle.state / "cliffwatch.sqlite3"
    upgrade(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '0999_from_later'")
    done = idle.run("serve")
    assert done.returncode == 4
    [line] = done.stderr.splitlines()
    assert "schema 0999_from_later" in line
    assert "knows schemas up to 0" in line
    assert "CLIFFWATCH_DATABASE_URL" in line
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [("0999_from_later",)]


def test_status_says_what_is_wrong_with_the_database(idle: Machine) -> None:
    assert idle.run("up").returncode == 0
    with closing(sqlite3.connect(idle.state / "cliffwatch.sqlite3", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        done = idle.run("--output", "json", "status")
        database.execute("ROLLBACK")
    assert done.returncode == 3
    assert "database is locked" in json.loads(done.stdout)["reason"]
    assert "database is locked" in done.stderr
    assert idle.data("status")["reason"] is None


@pytest.mark.parametrize("kind", ["damaged", "a directory"])
def test_an_unusable_database_is_reported_in_one_line_and_left_unchanged(idle: Machine, kind: str) -> None:
    path = idle.state / "cliffwatch.sqlite3"
    path.parent.mkdir()
    content = b"not a database, by any means " * 1000
    if kind == "damaged":
        path.write_bytes(content)
    else:
        path.mkdir()
    for words in ("serve", "index rebuild", "token create --name mine --local"):
        done = idle.run(*words.split())
        assert done.returncode == 3
        [line] = done.stderr.splitlines()
        assert str(path) in line
        assert "move it away" in line
    assert path.is_dir() or path.read_bytes() == content


def test_a_state_directory_that_can_be_none_is_reported_in_a_sentence(idle: Machine, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "below", tmp_path / ("n" * 300)):
        done = idle.run("serve", CLIFFWATCH_STATE_DIRECTORY=str(place))
        assert done.returncode == 3
        [line] = done.stderr.splitlines()
        assert str(place) in line
        assert "CLIFFWATCH_STATE_DIRECTORY" in line
