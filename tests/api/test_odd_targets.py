"""Targets that are something else than they are given as, or what the service itself needs: refused with the field."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import mounted
from testkit.storage_engine import SMALL
from tests.api.harness import Api
from tests.api.target_orders import directory, order


def make_file(path: Path) -> Path:
    path.touch()
    return path


def make_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def make_socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
    return path


KINDS: dict[str, Callable[[Path], Path]] = {
    "a file": make_file,
    "a FIFO": make_pipe,
    "a socket": make_socket,
    "a character device": lambda _: Path("/dev/null"),
    "a block device": lambda _: Path("/dev/loop0"),
}


def storage_order(target: dict[str, Any]) -> dict[str, Any]:
    document = {"version": 1, "name": "log", "engine": "storage", "phases": {"soak": "10s"}, "load": SMALL}
    return {"workload": document, "target": target}


@pytest.mark.parametrize("engine", [order, storage_order])
@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_is_no_directory_is_refused_with_its_kind(
    api: Api, tmp_path: Path, kind: str, engine: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    path = KINDS[kind](tmp_path / "odd")
    request = engine(directory(path))
    response = api.post("/runs", request)
    assert (response.status_code, response.json()["code"]) == (409, "target_unsafe"), response.text
    (fault,) = response.json()["errors"]
    assert fault["field"] == "target.path"
    assert fault["message"].startswith(f"{path} is {kind}, not a directory")
    assert [item["code"] for item in api.post("/runs/plan", request).json()["objections"]] == ["not_a_directory"]


@pytest.mark.parametrize("kind", ["itself", "a run's", "another name"])
def test_the_journals_are_no_target(api: Api, tmp_path: Path, kind: str) -> None:
    runs = api.settings.runs_directory
    (runs / "some-run").mkdir()
    with mounted(runs, tmp_path / "again", "--bind") as again:
        path = {"itself": runs, "a run's": runs / "some-run", "another name": again / "some-run"}[kind]
        response = api.post("/runs", order(directory(path)))
    (runs / "some-run").rmdir()
    assert (response.status_code, response.json()["code"]) == (409, "target_unsafe")
    (fault,) = response.json()["errors"]
    assert fault["field"] == "target.path"
    assert "the journals of all runs are kept" in fault["message"]
    assert list(runs.iterdir()) == []


def test_a_target_on_the_journals_file_system_is_noted(api: Api, tmp_path: Path) -> None:
    note = "the journals of all runs are on the same file system"
    place = tmp_path / "place"
    place.mkdir()
    assert any(note in each for each in api.post("/runs/plan", order(directory(place))).json()["notes"])
    with mounted("tmpfs", tmp_path / "memory", "-t", "tmpfs") as elsewhere:
        assert not any(note in each for each in api.post("/runs/plan", order(directory(elsewhere))).json()["notes"])
