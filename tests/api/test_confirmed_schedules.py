"""A schedule's confirmation is for the drive that was there when it was given, whatever has the drive's name later."""

from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from tests.api.harness import Api
from tests.api.target_orders import order

from cliffwatch.app.scheduler import HELD_TO_NAME
from cliffwatch.journal import JournalReader
from cliffwatch.store.models import ScheduleRow

YEARLY = {"kind": "interval", "every": "365d", "start_at": "2026-01-01T00:00:00Z"}


def confirmed(file: Path) -> dict[str, str]:
    return {"kind": "device", "identity": str(file), "confirmation": f"erase backing file {file}"}


def add(api: Api, file: Path) -> str:
    response = api.post("/schedules", {"name": "weekly", **order(confirmed(file)), "trigger": YEARLY})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def fire(api: Api, schedule_id: str) -> dict[str, Any]:
    """What came of a firing now."""
    with api.services.database.session() as session:
        session.get_one(ScheduleRow, schedule_id).next_fire_at = api.services.clock.wall() - 1
    api.services.scheduler.fire(schedule_id)
    firing: dict[str, Any] = api.get(f"/schedules/{schedule_id}/firings").json()["items"][0]
    return firing


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "drive.image"


def test_a_schedule_does_not_erase_another_file_of_the_name(api: Api, file: Path) -> None:
    with loop_drive(file):
        schedule_id = add(api, file)
    file.rename(file.with_suffix(".old"))
    with loop_drive(file, 48 * MIB):
        firing = fire(api, schedule_id)
        assert (firing["outcome"], firing["run_id"]) == ("failed", None)
        assert f"{file} was another drive when its erasure was confirmed" in firing["detail"]
        assert f"now file {file.stat().st_ino} of " in firing["detail"]
        assert api.get("/runs").json()["items"] == []
        # The sentence is typed for the drive that is there now.
        changed = api.call("PATCH", f"/schedules/{schedule_id}", {"target": confirmed(file)})
        assert changed.json()["target_blocks"].startswith(f"file {file.stat().st_ino} of ")
        assert fire(api, schedule_id)["outcome"] == "queued"


def test_a_schedule_does_not_erase_a_file_that_got_the_confirmed_one_s_inode(api: Api, tmp_path: Path) -> None:
    with loop_drive(tmp_path / "below", 96 * MIB) as below:
        command("mkfs.ext4", "-q", "-m", "0", below.node)
        with mounted(below.node, tmp_path / "volume") as volume:
            file = volume / "drive.image"
            with loop_drive(file):
                schedule_id, inode = add(api, file), file.stat().st_ino
            file.unlink()
            with loop_drive(file):
                assert file.stat().st_ino == inode
                assert "was another drive" in fire(api, schedule_id)["detail"]
            assert api.get("/runs").json()["items"] == []


def test_a_drive_that_is_attached_again_is_the_one_that_was_confirmed(api: Api, file: Path, tmp_path: Path) -> None:
    with loop_drive(file):
        schedule_id = add(api, file)
    shown = api.get(f"/schedules/{schedule_id}").json()["target_blocks"]
    # The node that the file had is another's now.
    with loop_drive(tmp_path / "other.image"), loop_drive(file):
        # What leaves the target alone leaves what it is held to.
        api.call("PATCH", f"/schedules/{schedule_id}", {"name": "daily"})
        firing = fire(api, schedule_id)
    assert (firing["outcome"], firing["detail"]) == ("queued", "")
    asked = next(JournalReader(api.settings.runs_directory / firing["run_id"]).events()).event.detail
    assert asked["target_blocks"] == shown


def test_a_schedule_of_before_is_held_to_the_name_and_says_so(api: Api, file: Path) -> None:
    with loop_drive(file):
        schedule_id = add(api, file)
        with api.services.database.session() as session:
            session.get_one(ScheduleRow, schedule_id).target_blocks = None
        firing = fire(api, schedule_id)
    assert (firing["outcome"], firing["detail"]) == ("queued", HELD_TO_NAME)


def test_a_drive_that_is_not_there_cannot_be_confirmed(api: Api, file: Path) -> None:
    body = {"name": "weekly", **order(confirmed(file)), "trigger": YEARLY}
    refused = api.post("/schedules", body)
    assert (refused.status_code, refused.json()["code"]) == (422, "target_missing")
    assert refused.json()["errors"][0]["field"] == "target.identity"
    assert api.get("/schedules").json()["items"] == []
