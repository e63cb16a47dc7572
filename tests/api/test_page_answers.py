"""What pages say to an address that is wrong, and what they offer to whom, without a browser."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from testkit.journals import finish, measure, start
from tests.api.harness import ORDER, Api

from cliffwatch.app.scheduler import QUEUED
from cliffwatch.store.models import FiringRow, RunRow, ScheduleRow


def page(api: Api, path: str, scope: str) -> tuple[int, str]:
    answer = api.client.get(path, headers={"Cookie": f"cliffwatch_token={api.tokens[scope]}"})
    return answer.status_code, answer.text


def test_a_wrong_address_is_refused_in_the_words_of_the_api(api: Api) -> None:
    status, text = page(api, "/runs?verdict=odd", "read")
    answer = api.get("/runs", params={"verdict": "odd"})
    assert status == answer.status_code
    fault = answer.json()["errors"][0]
    assert fault["field"] == "verdict"
    assert fault["message"].partition(";")[0].replace("'", "&#39;").replace('"', "&#34;") in text


@pytest.mark.parametrize(("scope", "is_offered"), [("read", False), ("operate", True)])
def test_only_who_may_start_runs_is_offered_to(api: Api, scope: str, is_offered: bool) -> None:
    for path in ("/runs", "/schedules", "/drives"):
        status, text = page(api, path, scope)
        assert (status, 'href="/start"' in text) == (200, is_offered), path


@pytest.mark.parametrize(
    ("before", "back"),
    [
        ("{own}/runs/nightly?page=2", "/runs/nightly?page=2"),
        ("{own}//elsewhere.example", None),
        ("https://elsewhere.example/runs/nightly", None),
        ("http://[", None),
        ("", None),
    ],
)
def test_a_refusal_leads_back_to_a_page_of_this_service_alone(api: Api, before: str, back: str | None) -> None:
    own = str(api.client.base_url).rstrip("/")
    headers = {"Cookie": f"cliffwatch_token={api.tokens['read']}", "Referer": before.format(own=own)}
    answer = api.client.get("/runs/none/differences", headers=headers)
    assert answer.status_code == 404
    links = re.findall(r'<a href="([^"]*)">Back to the page before</a>', answer.text)
    assert links == ([back] if back else [])


@pytest.mark.parametrize("path", ["/login", "/logout"])
def test_an_origin_that_is_no_address_is_refused(api: Api, path: str) -> None:
    answer = api.client.post(path, content="token=x", headers={"Origin": "http://["})
    assert answer.status_code == 403


def test_a_form_word_in_other_letters_is_refused(api: Api) -> None:
    given = {"Cookie": f"cliffwatch_token={api.tokens['operate']}"}
    answer = api.client.post("/schedules", content="form_word=%C3%A9", headers=given)
    assert answer.status_code == 403


def test_a_time_beyond_all_calendars_breaks_no_page(api: Api) -> None:
    api.put("/runs/nightly", ORDER).raise_for_status()
    start(api.settings.runs_directory / "nightly")
    api.index("nightly")
    alert = {"status": "firing", "labels": {"alertname": "far"}, "fingerprint": "cd"}
    alert["startsAt"] = "9999-12-31T23:59:59-23:59"
    api.post("/alerts", {"version": "4", "alerts": [alert]}).raise_for_status()
    for path in ("/runs", "/runs/nightly", "/runs/nightly/series"):
        assert page(api, path, "read")[0] == 200, path


def row_of(text: str, row_id: str) -> str:
    found = re.search(rf'<tr role="row" id="row-{row_id}">(.*?)</tr>', text, re.DOTALL)
    assert found is not None
    return found[1]


def test_a_run_that_was_imported_is_marked_in_the_list(api: Api) -> None:
    for name in ("own", "brought"):
        api.put(f"/runs/{name}", ORDER).raise_for_status()
    with api.services.database.session() as session:
        brought = session.get(RunRow, "brought")
        assert brought is not None
        brought.imported_at = 1_790_002_800.0
    _, text = page(api, "/runs", "read")
    assert re.search(r">\s*imported\s*<", row_of(text, "brought"))
    assert "imported" not in row_of(text, "own")


def test_a_schedule_that_is_spent_shows_how_its_run_ended_and_can_only_be_removed(api: Api) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    body = {"name": "once", **ORDER, "trigger": {"kind": "date", "at": at.isoformat()}}
    schedule = api.post("/schedules", body).json()
    _, text = page(api, "/schedules", "operate")
    assert "Turn off" in row_of(text, schedule["id"])
    api.put("/runs/nightly", ORDER).raise_for_status()
    with api.services.database.session() as session:
        row = session.get(ScheduleRow, schedule["id"])
        assert row is not None
        row.trigger = {"kind": "date", "at": "2026-01-01T00:00:00Z"}
        row.next_fire_at = None
        firing = {"due_at": 1_767_225_600.0, "outcome": QUEUED, "run_id": "nightly", "detail": ""}
        session.add(FiringRow(schedule_id=row.id, **firing))
    _, text = page(api, "/schedules", "operate")
    assert "queued" in row_of(text, schedule["id"])
    directory = api.settings.runs_directory / "nightly"
    start(directory)
    measure(directory, 3)
    finish(directory, "degraded")
    api.index("nightly")
    _, text = page(api, "/schedules", "operate")
    shown = row_of(text, schedule["id"])
    assert "degraded" in shown
    assert "queued" not in shown
    assert "Turn o" not in shown
    assert "Remove" in shown
    last = api.get(f"/schedules/{schedule['id']}").json()["last_firing"]
    assert (last["outcome"], last["run_state"], last["run_verdict"]) == ("queued", "finished", "degraded")


def test_the_start_form_names_the_field_at_fault_in_words(api: Api) -> None:
    visitor = {"Cookie": f"cliffwatch_token={api.tokens['operate']}"}
    form = api.client.get("/start", headers=visitor).text
    word = re.search(r'name="(\w+)" value="([^"]+)"', form)
    assert word is not None
    fields = {"workload": "quick-soak", "target_kind": "device", "target": "NO-SUCH-SERIAL", "check": "yes"}
    origin = {"Origin": str(api.client.base_url).rstrip("/")}
    answer = api.client.post("/start", data=fields | {word[1]: word[2]}, headers=visitor | origin)
    assert "drive (--target device:SERIAL): " in answer.text
    assert "target.identity" not in answer.text
