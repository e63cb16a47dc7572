"""A service of today takes over what each release left: journals, database, schedules and tokens."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from testkit.release_state import restored
from tests.api.harness import listening

from cliffwatch.base.version import VERSION
from cliffwatch.model.settings import read_settings
from cliffwatch.server.app import create_app
from cliffwatch.store.database import is_current, open_database

RELEASES = sorted(Path(__file__).with_name("releases").iterdir())


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_state_left_by_each_release_is_taken_over_completely(release: Path, tmp_path: Path) -> None:
    token = restored(release, tmp_path)
    settings = read_settings(state_directory=tmp_path)
    headers = {"Authorization": f"Bearer {token}"}
    app = create_app(settings)
    with (
        listening(app) as url,
        httpx.Client(base_url=f"{url}/api/v1", headers=headers, trust_env=False, timeout=60) as client,
    ):
        kept = sorted(path.name for path in (release / "runs").iterdir())
        listed = {run["id"]: run for run in _items(client, "/runs")}
        assert sorted(listed) == kept
        for name in kept:
            _check_run(client, listed[name], release / "runs" / name)
        assert {schedule["name"] for schedule in _items(client, "/schedules")} == {"yearly", "once"}
        for schedule in _items(client, "/schedules"):
            _check_schedule(client, schedule)
        assert "steady" in {workload["name"] for workload in _items(client, "/workloads")}
    database = open_database(settings.database_url)
    try:
        with database.session() as session:
            assert is_current(session)
    finally:
        database.close()


def _check_run(client: httpx.Client, run: dict[str, Any], journal: Path) -> None:
    """Figures, windows and events are those of its journal; its report is made anew by this version."""
    then = json.loads((journal / "report.json").read_text(encoding="utf-8"))
    windows = (journal / "windows.jsonl").read_text(encoding="utf-8").splitlines()
    assert (run["state"], run["verdict"]) == ("finished", then["verdict"]["name"])
    assert len(_items(client, f"/runs/{run['id']}/windows?limit=200")) == len(windows)
    assert _items(client, f"/runs/{run['id']}/events?limit=200")
    made = client.post(f"/runs/{run['id']}/report").raise_for_status().json()
    assert made["verdict"] == then["verdict"]["name"], made["reasons"]
    assert client.get(f"/runs/{run['id']}/report.html").raise_for_status().text.rstrip().endswith("</html>")


def _check_schedule(client: httpx.Client, schedule: dict[str, Any]) -> None:
    """It fires on, and can be changed."""
    assert (schedule["enabled"], schedule.get("fault")) == (True, None)
    assert schedule["next_fire_at"] is not None
    path = f"/schedules/{schedule['id']}"
    assert client.patch(path, json={"enabled": False}).raise_for_status().json()["next_fire_at"] is None
    assert client.patch(path, json={"enabled": True}).raise_for_status().json()["next_fire_at"] is not None


def test_releases_were_before_this_version() -> None:
    assert RELEASES
    assert all(_number(release.name) < _number(VERSION) for release in RELEASES)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _items(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get(path).raise_for_status().json()["items"]
    return items
