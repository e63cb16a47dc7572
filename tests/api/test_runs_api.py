import json
import re
import shutil
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from testkit import journals
from tests.api.harness import ORDER, WORKLOAD, Api

from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.request import RunRequest
from cliffwatch.model.workload import parse_workload


def add_running(api: Api, run_id: str = "one", windows: int = 3) -> Path:
    directory = journals.queue(api.settings.runs_directory, run_id)
    journals.start(directory)
    journals.measure(directory, windows)
    return api.index(run_id)


def left_behind(api: Api) -> list[str]:
    return [path.name for path in api.settings.runs_directory.iterdir()]


def test_a_submitted_run_is_queued_with_a_journal_of_its_own(api: Api) -> None:
    response = api.post("/runs", ORDER)
    assert response.status_code == 201
    run = response.json()
    assert re.fullmatch(r"steady-\d{8}-\d{6}-[0-9a-f]{4}", run["id"])
    assert response.headers["location"] == f"/api/v1/runs/{run['id']}"
    assert (run["state"], run["engine"], run["created_by"], run["windows"]) == ("queued", "synthetic", "operate", 0)
    assert run["workload"] == {"name": "steady", "version": None}
    assert run["target"] == ORDER["target"]
    assert run["planned_seconds"] == 60.0
    assert run["created_at"].endswith("Z")
    directory = Path(run["directory"])
    assert parse_workload((directory / files.WORKLOAD).read_text()).name == "steady"
    assert [stored.event.name for stored in JournalReader(directory).events()] == ["queued"]
    assert api.get(f"/runs/{run['id']}").json() == run


def test_a_stored_workload_is_run_by_name_by_version_and_with_other_durations(api: Api) -> None:
    api.put("/workloads/steady", WORKLOAD)
    api.put("/workloads/steady", {**WORKLOAD, "description": "newer"})
    newest = api.post("/runs", {**ORDER, "workload": "steady"}).json()
    assert newest["workload"] == {"name": "steady", "version": 2}
    older = api.post("/runs", {**ORDER, "workload": "steady@1", "durations": {"soak": "2m", "window": "2s"}}).json()
    assert older["workload"] == {"name": "steady", "version": 1}
    assert older["planned_seconds"] == 120.0
    workload = parse_workload((Path(older["directory"]) / files.WORKLOAD).read_text())
    assert (workload.window, workload.description) == (2.0, "")


def test_the_same_request_with_the_same_id_makes_one_run(api: Api) -> None:
    first = api.put("/runs/nightly-7", ORDER)
    again = api.put("/runs/nightly-7", ORDER)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    other = api.put("/runs/nightly-7", {**ORDER, "durations": {"soak": "5m"}})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert left_behind(api) == ["nightly-7"]


def test_an_id_is_taken_by_a_journal_that_is_not_indexed_yet(api: Api) -> None:
    journals.queue(api.settings.runs_directory, "nightly-7")
    assert api.put("/runs/nightly-7", ORDER).status_code == 409


@pytest.mark.parametrize(
    ("change", "status", "code", "field"),
    [
        ({"workload": "unknown"}, 404, "not_found", "workload"),
        ({"workload": "steady@99"}, 404, "not_found", "workload"),
        ({"workload": "Not A Name"}, 422, "bad_request", "workload"),
        ({"workload": 7}, 422, "bad_request", "workload"),
        ({"workload": {**WORKLOAD, "soak": "1m"}}, 422, "workload_invalid", "soak"),
        ({"workload": {**WORKLOAD, "window": 10}}, 422, "workload_invalid", "window"),
        ({"workload": {**WORKLOAD, "engine": "warp"}}, 422, "workload_invalid", "engine"),
        ({"workload": {**WORKLOAD, "load": {"seed": "x"}}}, 422, "workload_invalid", "load.seed"),
        ({"workload": {**WORKLOAD, "description": "\ud800"}}, 422, "bad_request", "workload"),
        ({"durations": {"window": "59s", "soak": "2s"}}, 422, "workload_invalid", "document"),
        ({"durations": {"soak": "long"}}, 422, "bad_request", "durations.soak"),
        ({"durations": {"soaking": "1h"}}, 422, "bad_request", "durations.soaking"),
        ({"target": {"kind": "directory", "path": "/tmp"}}, 422, "workload_invalid", "target.kind"),
        ({"target": {"kind": "tape"}}, 422, "bad_request", "target"),
        ({"target": {"kind": "synthetic", "name": "a\u0000b"}}, 422, "bad_request", "target"),
        ({"priority": 3}, 422, "bad_request", "priority"),
    ],
)
def test_a_wrong_request_names_its_field_and_leaves_nothing_behind(
    lasting_api: Api, change: dict[str, Any], status: int, code: str, field: str
) -> None:
    api = lasting_api
    api.put("/workloads/steady", WORKLOAD)
    for response in (api.post("/runs", {**ORDER, **change}), api.put("/runs/mine", {**ORDER, **change})):
        body = response.json()
        assert (response.status_code, body["code"]) == (status, code)
        assert field in [fault["field"] for fault in body["errors"]]
    assert left_behind(api) == []
    assert api.get("/runs").json()["items"] == []


def test_a_run_is_not_acknowledged_that_another_request_takes_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    placed, asked_again = threading.Event(), threading.Event()

    def fail(*arguments: object) -> None:
        placed.set()
        asked_again.wait(10)
        time.sleep(0.5)
        raise OperationalError("COMMIT", {}, Exception("database is locked"))

    # Stands for a database that is locked for longer than a request waits for it.
    monkeypatch.setattr("cliffwatch.app.admission.index_run", fail)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(api.put, "/runs/one", ORDER)
        assert placed.wait(10)
        second = threads.submit(api.put, "/runs/one", ORDER)
        time.sleep(0.5)
        asked_again.set()
        statuses = [first.result().status_code, second.result().status_code]
    assert statuses == [503, 503]
    assert left_behind(api) == []
    monkeypatch.undo()
    assert api.put("/runs/one", ORDER).status_code == 201


def test_a_run_whose_journal_is_gone_is_made_again_unless_it_was_begun(api: Api) -> None:
    api.put("/runs/queued", ORDER).raise_for_status()
    begun = add_running(api, "begun")
    for name in ("queued", "begun"):
        shutil.rmtree(api.settings.runs_directory / name)
    assert api.put("/runs/queued", ORDER).status_code == 201
    assert api.get("/runs/queued").json()["state"] == "queued"
    answer = api.put("/runs/begun", ORDER)
    assert (answer.status_code, answer.json()["code"]) == (500, "journal_unreadable")
    assert f"is not at {begun} any more; use another id" in answer.json()["detail"]


def test_a_run_that_cannot_be_indexed_leaves_nothing_behind(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError

    # Stands for a database that goes away at this moment, which the real one does not do on demand.
    monkeypatch.setattr("cliffwatch.app.admission.index_run", fail)
    assert api.post("/runs", ORDER).status_code == 500
    assert left_behind(api) == []


def test_no_more_runs_wait_than_can_be_looked_at(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cliffwatch.app.runs.QUEUED_LIMIT", 2)
    for name in ("one", "two"):
        api.put(f"/runs/{name}", ORDER).raise_for_status()
    refused = api.put("/runs/three", ORDER)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "2 runs wait for their targets already" in refused.json()["detail"]
    assert api.put("/runs/two", ORDER).status_code == 200
    api.post("/runs/one/stop", {}).raise_for_status()
    assert api.put("/runs/three", ORDER).status_code == 201


def _order_at(brokers: socket.socket) -> dict[str, Any]:
    load = {"topics": {"partitions": 1}, "producer": {"rate": 1000}}
    return {
        "workload": WORKLOAD | {"engine": "kafka", "load": load},
        "target": {"kind": "broker", "bootstrap_servers": [f"127.0.0.1:{brokers.getsockname()[1]}"]},
    }


def test_schedules_that_are_due_at_once_wait_for_one_another_to_ask_their_brokers(api: Api) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(6) as schedules:
        order = RunRequest.model_validate(_order_at(silent))

        def start(number: int) -> Code:
            with pytest.raises(Problem) as caught:
                api.services.runs.submit(order, "operator", schedule_id=f"schedule-{number}")
            return caught.value.code

        # Each asked for itself, and none is refused since others did.
        assert set(schedules.map(start, range(6))) == {Code.TARGET_MISSING}


def test_brokers_that_say_nothing_do_not_block_other_targets(api: Api) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(12) as clients:
        order = _order_at(silent)
        begun = time.monotonic()
        asked = [clients.submit(api.post, "/runs/plan", order) for _ in range(12)]
        assert api.post("/runs/plan", ORDER).status_code == 200
        answers = [each.result() for each in asked]
    codes = Counter((answer.status_code, answer.json().get("code")) for answer in answers)
    assert set(codes) == {(200, None), (503, "not_ready")}, codes
    assert codes[503, "not_ready"] >= 4
    assert time.monotonic() - begun < 60


def test_a_plan_says_everything_and_does_nothing(api: Api) -> None:
    response = api.post("/runs/plan", ORDER)
    assert response.status_code == 200
    plan = response.json()
    assert (plan["writes"], plan["objections"], plan["confirmation"]) == ([], [], None)
    assert (plan["written_bytes"], plan["direct"]) == (0, True)
    assert "cliffwatch.engines.synthetic" in plan["command"]
    assert plan["workload"]["phases"]["soak"] == "1m"
    assert api.post("/runs/plan?run_id=mine", ORDER).json()["run_id"] == "mine"
    refused = api.post("/runs/plan?run_id=Not%20a%20name", ORDER)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "run_id")
    assert plan["target"] == ORDER["target"]
    assert left_behind(api) == []


def test_a_plan_says_which_limits_cannot_be_judged(api: Api) -> None:
    limits = ["write amplification <= 2", "p99 <= 1s"]
    plan = api.post("/runs/plan", {**ORDER, "workload": {**WORKLOAD, "limits": limits}}).json()
    (note,) = [note for note in plan["notes"] if "cannot be judged" in note]
    assert note.startswith('the limit "write amplification <= 2" cannot be judged, since no drive is measured')


def test_a_run_under_load_shows_how_far_it_is(api: Api) -> None:
    add_running(api)
    run = api.get("/runs/one").json()
    assert (run["state"], run["phase"], run["windows"]) == ("running", "soak", 3)
    assert run["last_window"]["seq"] == 2
    assert run["last_window"]["latency"]["write"]["p99"] > 0
    # The journal's time is long past: by the clock the load is over.
    assert (run["elapsed_seconds"], run["progress_ratio"]) == (60.0, 1.0)


def test_a_finished_run_shows_how_far_it_came(api: Api) -> None:
    directory = add_running(api, windows=15)
    journals.finish(directory, "stopped")
    api.index("one")
    run = api.get("/runs/one").json()
    assert (run["state"], run["verdict"], run["reasons"]) == ("finished", "stopped", ["as it was made"])
    assert (run["elapsed_seconds"], run["planned_seconds"], run["progress_ratio"]) == (15.0, 60.0, 0.25)
    assert run["report"] is None


def test_runs_are_listed_newest_first_and_page_by_page(api: Api) -> None:
    for number in range(5):
        journals.queue(api.settings.runs_directory, f"run-{number}", at=journals.START + number)
        api.index(f"run-{number}")
    seen, page = [], None
    while True:
        body = api.get("/runs", params={"limit": 2, **({"page": page} if page else {})}).json()
        seen.append([run["id"] for run in body["items"]])
        page = body["next_page"]
        if page is None:
            break
    assert seen == [["run-4", "run-3"], ["run-2", "run-1"], ["run-0"]]
    assert len(api.get("/runs", params={"state": "queued"}).json()["items"]) == 5
    assert api.get("/runs", params={"state": "finished"}).json()["items"] == []
    assert api.get("/runs", params={"workload": "other"}).json()["items"] == []


def test_a_list_is_read_from_the_index_alone(api: Api) -> None:
    directory = add_running(api)
    for path in directory.iterdir():
        path.unlink()
    assert [run["id"] for run in api.get("/runs").json()["items"]] == ["one"]


def test_a_queued_run_names_those_that_it_waits_for(api: Api) -> None:
    for run_id in ("one", "two", "three"):
        assert api.put(f"/runs/{run_id}", ORDER).status_code == 201
    assert api.put("/runs/four", {**ORDER, "target": {"kind": "synthetic", "name": "elsewhere"}}).status_code == 201
    waits = {run_id: api.get(f"/runs/{run_id}").json()["waits_for"] for run_id in ("one", "two", "three", "four")}
    assert waits == {"one": [], "two": ["one"], "three": ["one", "two"], "four": []}
    api.post("/runs/two/stop")
    assert api.get("/runs/three").json()["waits_for"] == ["one"]
    page = api.client.get("/runs/three", headers={"Cookie": f"cliffwatch_token={api.tokens['read']}"})
    assert "waits until its target is free, after one" in page.text


def test_a_waiting_run_is_stopped_at_once(api: Api) -> None:
    run_id = api.post("/runs", ORDER).json()["id"]
    response = api.post(f"/runs/{run_id}/stop", {"force": False})
    assert response.status_code == 202
    assert (response.json()["state"], response.json()["verdict"]) == ("finished", "stopped")
    assert response.json()["reasons"] == ["A user stopped the run before the load started."]
    assert api.stops == []
    again = api.post(f"/runs/{run_id}/stop")
    assert (again.status_code, again.json()["code"]) == (409, "wrong_state")


@pytest.mark.parametrize("force", [False, True])
def test_the_worker_of_an_active_run_is_asked_to_stop(api: Api, force: bool) -> None:
    directory = add_running(api)
    assert api.post("/runs/one/stop", {"force": force}).status_code == 202
    assert api.stops == [(directory, force)]


def test_a_stop_sees_what_the_index_has_not_read_yet(api: Api) -> None:
    directory = journals.queue(api.settings.runs_directory, "one")
    api.index("one")
    journals.start(directory)
    assert api.post("/runs/one/stop").status_code == 202
    assert api.stops == [(directory, False)]


def test_events_are_listed_behind_an_id(api: Api) -> None:
    add_running(api)
    events = api.get("/runs/one/events").json()["items"]
    assert [(event["id"], event["name"]) for event in events] == [
        (1, "queued"), (2, "starting"), (3, "prepare"), (4, "running"), (5, "soak"),
    ]  # fmt: skip
    assert [event["id"] for event in api.get("/runs/one/events?after=3").json()["items"]] == [4, 5]
    first = api.get("/runs/one/events?limit=3").json()
    rest = api.get("/runs/one/events", params={"page": first["next_page"]}).json()
    assert [event["id"] for event in rest["items"]] == [4, 5]
    assert rest["next_page"] is None


def test_windows_are_listed_behind_a_number_with_histograms_when_asked(api: Api) -> None:
    add_running(api, windows=5)
    body = api.get("/runs/one/windows?after=1&limit=2").json()
    assert [window["seq"] for window in body["items"]] == [2, 3]
    assert body["items"][0]["histograms"] is None
    rest = api.get("/runs/one/windows", params={"page": body["next_page"], "histograms": True}).json()
    assert [window["seq"] for window in rest["items"]] == [4]
    assert rest["items"][0]["histograms"]["write"].startswith("HISTFAAA")
    assert api.get("/runs/one/windows?limit=1001").status_code == 422


def test_findings_are_listed_of_one_run_and_of_all(api: Api) -> None:
    for name in ("a", "b"):
        journals.find(journals.queue(api.settings.runs_directory, name))
        api.index(name)
    assert [finding["run_id"] for finding in api.get("/findings").json()["items"]] == ["b", "a"]
    found = api.get("/runs/a/findings").json()["items"]
    assert [(item["run_id"], item["name"], item["detail"]) for item in found] == [("a", "cliff", {"ratio": 40.0})]


def test_a_report_is_served_once_it_is_made(api: Api) -> None:
    directory = add_running(api)
    for path in ("report", "report.html"):
        response = api.get(f"/runs/one/{path}")
        assert (response.status_code, response.json()["code"]) == (409, "report_not_ready")
    (directory / files.REPORT_JSON).write_text(json.dumps({"verdict": "pass"}))
    (directory / files.REPORT_HTML).write_text("<p>pass</p>")
    assert api.get("/runs/one/report").json() == {"verdict": "pass"}
    page = api.get("/runs/one/report.html")
    assert (page.text, page.headers["content-type"]) == ("<p>pass</p>", "text/html; charset=utf-8")
    assert "sandbox" in page.headers["content-security-policy"]
    assert api.get("/runs/one").json()["report"] == str(directory / files.REPORT_HTML)


def test_drives_are_listed_with_what_speaks_against_them(api: Api) -> None:
    body = api.get("/drives").json()
    assert body["next_page"] is None
    for drive in body["items"]:
        assert drive["size_bytes"] > 0
        assert all(set(objection) == {"code", "meaning", "message"} for objection in drive["objections"])
