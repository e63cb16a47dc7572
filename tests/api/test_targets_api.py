"""Runs on real targets: what the safety gate says reaches the caller, and nothing starts or stays that it refuses."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit import journals
from testkit.loops import loop_drive
from tests.api.harness import Api
from tests.api.target_orders import directory, order

from cliffwatch.journal import JournalReader
from cliffwatch.model.request import Submission
from cliffwatch.store.models import RunRow


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    """The file behind a loop device."""
    with loop_drive(tmp_path / "drive.image") as attached:
        yield attached.file


def queued(api: Api) -> list[str]:
    assert len(list(api.settings.runs_directory.iterdir())) == len(api.get("/runs").json()["items"])
    return [path.name for path in api.settings.runs_directory.iterdir()]


def test_a_plan_names_every_file_and_makes_none(api: Api, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    plan = api.post("/runs/plan", order(directory(place))).json()
    assert (plan["objections"], plan["confirmation"], plan["direct"]) == ([], None, True)
    assert sum(write["size_bytes"] for write in plan["writes"]) == 2 * 1024 * 1024
    assert all(write["path"].startswith(str(place)) for write in plan["writes"])
    assert plan["command"][0].endswith("fio")
    assert list(place.iterdir()) == []
    assert queued(api) == []


def test_a_directory_that_is_not_there_is_refused(api: Api, tmp_path: Path) -> None:
    response = api.post("/runs", order(directory(tmp_path / "nowhere")))
    assert (response.status_code, response.json()["code"]) == (422, "target_missing")
    assert response.json()["errors"][0]["field"] == "target.path"
    assert queued(api) == []


def test_a_workload_larger_than_the_disk_is_refused(api: Api, tmp_path: Path) -> None:
    space = os.statvfs(tmp_path)
    too_much = order(directory(tmp_path), size=f"{space.f_blocks * space.f_frsize}B")
    response = api.post("/runs", too_much)
    assert (response.status_code, response.json()["code"]) == (409, "space_insufficient")
    assert queued(api) == []
    assert [item["code"] for item in api.post("/runs/plan", too_much).json()["objections"]] == ["reserve"]


def test_a_drive_is_taken_only_with_the_sentence_that_the_plan_asks_for(api: Api, drive: Path) -> None:
    target = {"kind": "device", "identity": str(drive)}
    refused = api.post("/runs", order(target))
    assert (refused.status_code, refused.json()["code"]) == (409, "target_unsafe")
    assert [fault["field"] for fault in refused.json()["errors"]] == ["target.confirmation"]
    assert queued(api) == []
    plan = api.post("/runs/plan", order(target)).json()
    assert [item["code"] for item in plan["objections"]] == ["confirmation_missing"]
    accepted = api.put("/runs/mine", order({**target, "confirmation": plan["confirmation"]}))
    assert accepted.status_code == 201
    assert queued(api) == ["mine"]
    # Held against what has this name when the run's turn comes.
    asked = next(JournalReader(api.settings.runs_directory / "mine").events()).event.detail
    status = drive.stat()
    assert asked["target_blocks"].startswith(f"file {status.st_ino} of ")
    assert asked["target_blocks"].endswith(f" {status.st_size} bytes")


def test_a_run_waits_for_the_run_that_has_its_drive(api: Api, drive: Path) -> None:
    """The drive is held exclusively by the other run's worker, which is no reason to refuse this one."""
    target = {"kind": "device", "identity": str(drive)}
    target["confirmation"] = api.post("/runs/plan", order(target)).json()["confirmation"]
    assert api.put("/runs/first", order(target)).status_code == 201
    with api.services.database.snapshot() as session:
        target_key = session.get_one(RunRow, "first").target_key
    [node] = [each["node"] for each in api.get("/drives").json()["items"] if each["backing_file"] == str(drive)]
    descriptor = os.open(node, os.O_RDWR | os.O_EXCL)
    try:
        # As long as no run of ours has the drive, its holder is a foreign process.
        assert api.put("/runs/second", order(target)).json()["code"] == "target_unsafe"
        other = journals.queue(api.settings.runs_directory, "active", submission=Submission(target_key, ""))
        journals.start(other)
        api.index("active")
        assert api.put("/runs/second", order(target)).status_code == 201
        assert any("active" in note for note in api.post("/runs/plan", order(target)).json()["notes"])
    finally:
        os.close(descriptor)
