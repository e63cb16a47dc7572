"""A database that is locked, deleted or replaced beneath a real service."""

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from testkit import journals
from tests.api.harness import ORDER, WORKLOAD, Api, NoReconciler, listening, make_tokens, serving

from cliffwatch.journal import JournalReader
from cliffwatch.journal.state import status_of
from cliffwatch.model.run_state import RunState
from cliffwatch.model.settings import Settings
from cliffwatch.server.app import create_app

#: Less than the minute for which the database stays locked; what is answered takes a second or four.
_SOON_SECONDS = 20


def _file(settings: Settings) -> Path:
    return settings.state_directory / "cliffwatch.sqlite3"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        yield
        holder.execute("ROLLBACK")


def test_a_run_is_stopped_while_the_database_is_locked(settings: Settings) -> None:
    headers = {"Authorization": f"Bearer {make_tokens(settings)['operate']}"}
    directory = journals.queue(settings.runs_directory, "one")
    journals.start(directory)
    queued = journals.queue(settings.runs_directory, "two")
    app = create_app(settings, reconciler=NoReconciler)
    with listening(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=60, headers=headers) as client:
        client.get("/readyz").raise_for_status()
        with _locked(_file(settings)):
            begun = time.monotonic()
            stopped = client.post("/api/v1/runs/one/stop")
            assert (stopped.status_code, stopped.json()["state"]) == (202, "stopping")
            assert client.post("/api/v1/runs/two/stop").json()["state"] == "finished"
            assert client.post("/api/v1/runs/two/stop").json()["code"] == "wrong_state"
            unready = client.get("/readyz")
            assert (unready.status_code, unready.json()["code"]) == (503, "not_ready")
            assert "database is locked" in unready.json()["detail"]
            refused = client.put("/api/v1/runs/three", json=ORDER)
            assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
            assert refused.headers["retry-after"] == "5"
            assert time.monotonic() - begun < _SOON_SECONDS
        assert client.get("/readyz").status_code == 200
        assert client.put("/api/v1/runs/three", json=ORDER).status_code == 201
    for path, state in ((directory, RunState.STOPPING), (queued, RunState.FINISHED)):
        status = status_of(stored.event for stored in JournalReader(path).events())
        assert status is not None
        assert status.state is state


def test_a_page_says_so_when_the_database_is_locked(settings: Settings) -> None:
    with serving(settings) as api:
        cookie = {"Cookie": f"cliffwatch_token={api.tokens['operate']}"}
        page = api.client.get("/schedules", headers=cookie).text
        word = page.partition('name="form_word" value="')[2].partition('"')[0]
        form = {"form_word": word, "name": "n", "workload": "nothing", "target_kind": "synthetic", "target": "x"}
        form |= {"expression": "0 2 * * sat", "time_zone": "UTC", "workload": _workload(api)}
        with _locked(_file(settings)):
            answer = api.client.post("/schedules", data=form, headers=cookie)
        assert (answer.status_code, "database" in answer.text) == (503, True)


def _workload(api: Api) -> str:
    api.put("/workloads/steady", WORKLOAD).raise_for_status()
    return "steady"


def test_a_database_that_is_deleted_is_noticed_and_written_again(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(settings) as api:
        api.put("/runs/one", ORDER).raise_for_status()
        for path in settings.state_directory.glob("cliffwatch.sqlite3*"):
            path.unlink()
        api.services.database_monitor.look()
        assert api.client.get("/readyz").status_code == 200
        assert "was deleted; it is there again" in caplog.text
        api.put("/runs/two", ORDER).raise_for_status()
        assert {run["id"] for run in api.get("/runs").json()["items"]} == {"one", "two"}
    # Not only this process believes it.
    with closing(sqlite3.connect(_file(settings))) as database:
        assert {name for (name,) in database.execute("SELECT id FROM runs")} == {"one", "two"}
        assert _file(settings).stat().st_mode & 0o077 == 0


def test_a_database_that_cannot_be_written_again_is_reported(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(settings) as api:
        _file(settings).unlink()
        # A name that cannot be taken: as on a disk that is full, or was mounted over.
        _file(settings).with_name(".cliffwatch.sqlite3.restored").mkdir()
        for _ in range(3):
            api.services.database_monitor.look()
        unready = api.client.get("/readyz")
        assert unready.status_code == 503
        assert "cliffwatch.sqlite3 is gone; put the file back or restart the service" in unready.json()["detail"]
        assert sum("is gone" in record.getMessage() for record in caplog.records if "store.monitor" in record.name) == 1
        assert not _file(settings).exists()
        _file(settings).with_name(".cliffwatch.sqlite3.restored").rmdir()


def test_a_database_that_is_replaced_is_reported(settings: Settings) -> None:
    with serving(settings) as api:
        other = _file(settings).with_name("other")
        other.write_bytes(b"")
        other.replace(_file(settings))
        assert "was replaced by another" in api.client.get("/readyz").json()["detail"]


def test_the_same_request_at_once_makes_one_run_and_succeeds_everywhere(api: Api) -> None:
    def ask(path: str, body: object) -> int:
        with httpx.Client(base_url=api.client.base_url, trust_env=False, timeout=60) as client:
            headers = {"Authorization": f"Bearer {api.tokens['operate']}"}
            return client.put(f"/api/v1{path}", json=body, headers=headers).status_code

    for name in ("one", "two", "three"):
        with ThreadPoolExecutor(20) as threads:
            statuses = list(threads.map(lambda _: ask(f"/runs/{name}", ORDER), range(20)))  # noqa: B023
        assert sorted(statuses) == [200] * 19 + [201]
    with ThreadPoolExecutor(20) as threads:
        statuses = list(threads.map(lambda _: ask("/workloads/steady", WORKLOAD), range(20)))
    assert sorted(statuses) == [200] * 19 + [201]


def test_changes_of_a_schedule_at_once_are_all_kept(api: Api) -> None:
    trigger = {"kind": "cron", "expression": "0 2 * * sat"}
    made = api.post("/schedules", {"name": "weekly", **ORDER, "trigger": trigger}).json()
    changes = [{"target": {"kind": "synthetic", "name": "other"}}, {"durations": {"soak": "2h"}}] * 5
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(lambda change: api.call("PATCH", f"/schedules/{made['id']}", change), changes))
    found = api.get(f"/schedules/{made['id']}").json()
    assert (found["target"]["name"], found["durations"]["soak"]) == ("other", "2h")
