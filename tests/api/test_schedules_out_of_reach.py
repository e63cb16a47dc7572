"""Schedules that clocks, time zones or this version cannot carry: refused, or shown with the reason; never fatal."""

import json
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from tests.api.harness import ORDER, Api, serving

from cliffwatch.model.settings import Settings

GOOD = {"kind": "cron", "expression": "0 2 * * sat"}
OUT_OF_REACH: list[dict[str, Any]] = [
    {"kind": "date", "at": "9999-12-31T23:59:59-14:00"},
    {"kind": "date", "at": "0001-01-01T00:00:00+14:00"},
    {"kind": "interval", "every": "366d", "start_at": "9999-12-31T23:59:59Z"},
    {"kind": "interval", "every": "1s", "start_at": "9998-12-31T23:59:59Z"},
    {"kind": "interval", "every": "24h", "start_at": "0001-01-01T00:00:00+14:00"},
    {"kind": "cron", "expression": "0 0 31 2,4,6 *", "time_zone": "Europe/Berlin"},
    {"kind": "cron", "expression": ",".join(["1"] * 5000) + " * * * *"},
]


@pytest.mark.parametrize("trigger", OUT_OF_REACH, ids=lambda trigger: str(trigger)[:60])
def test_a_trigger_out_of_reach_is_refused_and_not_stored(lasting_api: Api, trigger: dict[str, Any]) -> None:
    refused = lasting_api.post("/schedules", {"name": "far", **ORDER, "trigger": trigger})
    assert (refused.status_code, refused.json()["code"]) == (422, "schedule_invalid")
    assert lasting_api.get("/schedules").json()["items"] == []


@pytest.mark.parametrize(
    "trigger",
    [
        {"kind": "date", "at": "2199-12-31T23:59:59Z"},
        {"kind": "interval", "every": "366d", "start_at": "2199-12-30T00:00:00Z"},
        {"kind": "cron", "expression": "30 2 29 2 *", "time_zone": "Pacific/Apia"},
        {"kind": "cron", "expression": "30 2 * * sun", "time_zone": "Europe/Berlin"},
    ],
    ids=str,
)
def test_an_accepted_trigger_keeps_its_fire_time_over_a_restart(settings: Settings, trigger: dict[str, Any]) -> None:
    with serving(settings) as api:
        made = api.post("/schedules", {"name": "far", **ORDER, "trigger": trigger})
        assert made.status_code == 201
    with serving(settings) as api:
        [listed] = api.get("/schedules").json()["items"]
        assert (listed["next_fire_at"], listed["fault"]) == (made.json()["next_fire_at"], None)


DAMAGE: dict[str, dict[str, Any]] = {
    "far": {"trigger": json.dumps({"kind": "date", "at": "9999-12-31T23:59:59-14:00"}), "next_fire_at": 253402351199.0},
    "newer": {"trigger": json.dumps({"kind": "sunrise"})},
    "halved": {"request": '{"workload": '},
    "endless": {"next_fire_at": 1e300},
    "due": {"trigger": json.dumps({"kind": "date", "at": "9999-06-01T00:00:00Z"}), "next_fire_at": 1.0},
}


def test_rows_that_cannot_be_scheduled_are_shown_with_the_reason_and_stop_no_start(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(settings) as api:
        ids = {name: _made(api, name).json()["id"] for name in [*DAMAGE, "good"]}
        with api.services.database.session() as session:
            for name, columns in DAMAGE.items():
                changes = ", ".join(f"{column} = :{column}" for column in columns)
                session.execute(text(f"UPDATE schedules SET {changes} WHERE name = :name"), {"name": name, **columns})  # noqa: S608
    caplog.clear()
    with serving(settings) as api:
        listed = {item["name"]: item for item in api.get("/schedules").json()["items"]}
        assert set(listed) == {*DAMAGE, "good"}
        assert (listed["good"]["fault"], listed["good"]["next_fire_at"] is None) == (None, False)
        assert "9999" in listed["far"]["fault"]
        assert "1e+300" in listed["endless"]["fault"]
        assert "sunrise" in listed["newer"]["fault"]
        assert (listed["halved"]["workload"], "is not valid" in listed["halved"]["fault"]) == (None, True)
        for name in DAMAGE:
            assert sum(ids[name] in record.getMessage() for record in caplog.records) == 1, name
        assert _page(api).status_code == 200
        path = f"/schedules/{ids['far']}"
        assert api.get(path).json()["next_fire_times"] == []
        assert api.call("PATCH", path, {"enabled": False}).status_code == 200
        mended = api.call("PATCH", path, {"enabled": True, "trigger": GOOD}).json()
        assert (mended["fault"], mended["next_fire_at"] is None) == (None, False)
        whole = {"workload": ORDER["workload"], "target": ORDER["target"]}
        assert api.call("PATCH", f"/schedules/{ids['halved']}", whole).json()["fault"] is None
        assert api.call("DELETE", f"/schedules/{ids['newer']}").status_code == 204


def _made(api: Api, name: str) -> httpx.Response:
    return api.post("/schedules", {"name": name, **ORDER, "trigger": GOOD})


def _page(api: Api) -> httpx.Response:
    return api.client.get("/schedules", headers={"Cookie": f"cliffwatch_token={api.tokens['operate']}"})
