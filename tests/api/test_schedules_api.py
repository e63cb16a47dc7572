from typing import Any

import pytest
from tests.api.harness import ORDER, WORKLOAD, Api

from cliffwatch.app.scheduler import MISSED, QUEUED
from cliffwatch.store.models import FiringRow, ScheduleRow

CRON = {"kind": "cron", "expression": "0 2 * * sat", "time_zone": "Europe/Berlin"}


def make(api: Api, **changes: Any) -> Any:
    return api.post("/schedules", {"name": "weekly", **ORDER, "trigger": CRON, **changes})


def test_a_schedule_shows_when_it_fires_next(api: Api) -> None:
    response = make(api)
    assert response.status_code == 201
    schedule = response.json()
    assert response.headers["location"] == f"/api/v1/schedules/{schedule['id']}"
    assert schedule["trigger"] == CRON
    assert (schedule["workload"], schedule["target"]) == (ORDER["workload"], ORDER["target"])
    assert len(schedule["next_fire_times"]) == 5
    assert schedule["next_fire_times"][0] == schedule["next_fire_at"]
    assert all(time.endswith(("T00:00:00.000Z", "T01:00:00.000Z")) for time in schedule["next_fire_times"])
    assert (schedule["enabled"], schedule["last_firing"], schedule["last_missed_at"]) == (True, None, None)
    assert api.get(f"/schedules/{schedule['id']}").json() == schedule
    listed = api.get("/schedules").json()["items"]
    assert [item["name"] for item in listed] == ["weekly"]


def test_a_schedule_is_disabled_changed_and_removed(api: Api) -> None:
    path = f"/schedules/{make(api).json()['id']}"
    disabled = api.call("PATCH", path, {"enabled": False}).json()
    assert (disabled["enabled"], disabled["next_fire_at"], disabled["next_fire_times"]) == (False, None, [])
    changed = api.call(
        "PATCH", path, {"enabled": True, "trigger": {"kind": "interval", "every": "6h"}, "durations": {"soak": "2h"}}
    ).json()
    assert (changed["trigger"]["kind"], changed["trigger"]["every"]) == ("interval", "6h")
    assert changed["durations"]["soak"] == "2h"
    assert changed["next_fire_at"] is not None
    assert changed["target"] == ORDER["target"]
    assert api.call("DELETE", path).status_code == 204
    assert api.get(path).status_code == 404


def test_a_change_that_leaves_the_trigger_does_not_move_the_next_fire_time(api: Api) -> None:
    made = make(api, trigger={"kind": "interval", "every": "6h"}).json()
    renamed = api.call("PATCH", f"/schedules/{made['id']}", {"name": "often"}).json()
    assert (renamed["name"], renamed["next_fire_at"]) == ("often", made["next_fire_at"])


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"trigger": {"kind": "cron", "expression": "0 2"}}, "schedule_invalid", "trigger.expression"),
        ({"trigger": {"kind": "date", "at": "2020-01-01T00:00:00Z"}}, "schedule_invalid", "trigger"),
        ({"trigger": {}}, "schedule_invalid", "trigger"),
        ({"trigger": "daily"}, "bad_request", "trigger"),
        ({"workload": "nothing"}, "not_found", "workload"),
        ({"workload": {**WORKLOAD, "engine": "warp"}}, "workload_invalid", "engine"),
        ({"target": {"kind": "directory", "path": "/tmp"}}, "workload_invalid", "target.kind"),
        ({"name": "Every Saturday!"}, "bad_request", "name"),
        ({"retries": 3}, "bad_request", "retries"),
        ({"labels": {"release": ""}}, "bad_request", "labels.release"),
    ],
)
def test_a_wrong_schedule_names_its_field(api: Api, changes: dict[str, Any], code: str, field: str) -> None:
    body = make(api, **changes).json()
    assert body["code"] == code
    assert [fault["field"] for fault in body["errors"]] == [field]
    assert api.get("/schedules").json()["items"] == []
    path = f"/schedules/{make(api).json()['id']}"
    assert api.call("PATCH", path, changes).json()["code"] == code


def test_a_name_that_is_none_is_refused_with_what_names_are(api: Api) -> None:
    (fault,) = make(api, name="Every Saturday!").json()["errors"]
    assert fault["message"].startswith("'Every Saturday!' is not a name; use up to 63 of a-z, 0-9")


def test_a_name_is_taken_once(api: Api) -> None:
    make(api)
    assert make(api).json()["code"] == "conflict"
    other = make(api, name="other").json()
    assert api.call("PATCH", f"/schedules/{other['id']}", {"name": "weekly"}).json()["code"] == "conflict"


def test_firings_are_listed_newest_first_and_summed_up(api: Api) -> None:
    schedule = make(api).json()
    with api.services.database.session() as session:
        for due_at, outcome, run_id in ((10.0, QUEUED, "one"), (20.0, MISSED, None), (30.0, QUEUED, "two")):
            session.add(FiringRow(schedule_id=schedule["id"], due_at=due_at, outcome=outcome, run_id=run_id, detail=""))
    first = api.get(f"/schedules/{schedule['id']}/firings?limit=2").json()
    assert [(item["due_at"], item["outcome"]) for item in first["items"]] == [
        ("1970-01-01T00:00:30.000Z", "queued"), ("1970-01-01T00:00:20.000Z", "missed"),
    ]  # fmt: skip
    second = api.get(f"/schedules/{schedule['id']}/firings", params={"page": first["next_page"]}).json()
    assert [item["run_id"] for item in second["items"]] == ["one"]
    shown = api.get(f"/schedules/{schedule['id']}").json()
    assert (shown["last_firing"]["run_id"], shown["last_missed_at"]) == ("two", "1970-01-01T00:00:20.000Z")


def test_a_schedule_of_several_targets_is_refused(api: Api) -> None:
    """Of the drives of all, only the first one's erasure could be held to what was confirmed."""
    body = make(api, more_targets=[{"kind": "synthetic", "name": "elsewhere"}]).json()
    assert (body["code"], [fault["field"] for fault in body["errors"]]) == ("bad_request", ["more_targets"])


def test_labels_stay_when_something_else_is_changed(api: Api) -> None:
    path = f"/schedules/{make(api, labels={'release': '26.1'}).json()['id']}"
    for change in ({"durations": {"soak": "2h"}}, {"workload": WORKLOAD, "target": ORDER["target"]}):
        assert api.call("PATCH", path, change).json()["labels"] == {"release": "26.1"}
    assert api.call("PATCH", path, {"labels": {"release": "26.2"}}).json()["labels"] == {"release": "26.2"}
    assert api.get(path).json()["durations"]["soak"] == "2h"


def test_a_schedule_queues_a_run_that_says_so(api: Api) -> None:
    yearly = {"kind": "interval", "every": "365d", "start_at": "2026-01-01T00:00:00Z"}
    schedule = make(api, trigger=yearly, labels={"release": "26.1"}).json()
    services = api.services
    with services.database.session() as session:
        session.get_one(ScheduleRow, schedule["id"]).next_fire_at = services.clock.wall() - 1
    services.scheduler.fire(schedule["id"])
    [run] = api.get("/runs").json()["items"]
    assert (run["schedule_id"], run["created_by"], run["state"]) == (schedule["id"], "schedule weekly", "queued")
    assert run["labels"] == {"release": "26.1"}
    [firing] = api.get(f"/schedules/{schedule['id']}/firings").json()["items"]
    assert (firing["outcome"], firing["run_id"]) == ("queued", run["id"])
