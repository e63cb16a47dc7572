"""A database that is locked, deleted or replaced beneath a real service."""

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
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
from cliffwatch.store import monitor

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


def test_a_table_that_is_not_there_any_more_is_said(settings: Settings) -> None:
    with serving(settings) as api:
        cookie = {"Cookie": f"cliffwatch_token={api.tokens['operate']}"}
        with closing(sqlite3.connect(_file(settings))) as other:
            other.execute("ALTER TABLE findings RENAME TO elsewhere")
        time.sleep(monitor.PERIOD_SECONDS)
        for answer in (api.client.get("/readyz"), api.get("/findings"), api.client.get("/runs", headers=cookie)):
            assert answer.status_code == 503, answer.text
            assert "no such table: findings" in answer.text
            assert "damaged" in answer.text
            assert "restart the service, which says what can be done" in answer.text
        with closing(sqlite3.connect(_file(settings))) as other:
            other.execute("ALTER TABLE elsewhere RENAME TO findings")
        time.sleep(monitor.PERIOD_SECONDS)
        assert api.client.get("/readyz").status_code == 200


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


def _put(api: Api, name: str) -> int:
    return api.put(f"/workloads/{name}", WORKLOAD | {"name": name}).status_code


def _names(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {name for (name,) in database.execute("SELECT name FROM workloads")}


def _delete(settings: Settings, *suffixes: str) -> None:
    for suffix in suffixes:
        _file(settings).with_name(f"cliffwatch.sqlite3{suffix}").unlink()


def _lose_file(settings: Settings) -> None:
    _delete(settings, "")


def _lose_all(settings: Settings) -> None:
    _delete(settings, "", "-wal", "-shm")


def _lose_log(settings: Settings) -> None:
    _delete(settings, "-wal", "-shm")


def _lose_index_of_log(settings: Settings) -> None:
    _delete(settings, "-shm")


def _replace(settings: Settings) -> None:
    other = _file(settings).with_name("other")
    other.write_bytes(b"")
    other.replace(_file(settings))


@pytest.mark.parametrize(
    ("lose", "words"),
    [
        (_lose_file, "cliffwatch.sqlite3 is gone; put the file back, or restart the service"),
        (_lose_all, "cliffwatch.sqlite3 is gone; put the file back, or restart the service"),
        (_lose_log, "or its index, is gone; restart the service"),
        (_lose_index_of_log, "or its index, is gone; restart the service"),
        (_replace, "was replaced by another; restart the service"),
    ],
)
def test_nothing_is_written_to_a_file_that_would_be_gone_with_the_service(
    settings: Settings, caplog: pytest.LogCaptureFixture, lose: Callable[[Settings], None], words: str
) -> None:
    with serving(settings) as api:
        assert _put(api, "before") == 201
        lose(settings)
        # In whichever connection: those that are open, and new ones.
        with ThreadPoolExecutor(20) as threads:
            assert set(threads.map(lambda number: _put(api, f"refused-{number}"), range(20))) == {503}
        unready = api.client.get("/readyz")
        assert (unready.status_code, unready.json()["code"]) == (503, "not_ready")
        assert words in unready.json()["detail"]
        for _ in range(3):
            api.services.database_monitor.look()
        assert sum(words in record.getMessage() for record in caplog.records if "store.monitor" in record.name) == 1


@pytest.mark.parametrize("lose", [_lose_log, _lose_index_of_log])
def test_a_restart_keeps_what_was_in_a_log_that_was_deleted(
    settings: Settings, lose: Callable[[Settings], None]
) -> None:
    with serving(settings) as api:
        assert _put(api, "before") == 201
        lose(settings)
        assert _put(api, "refused") == 503
    with serving(settings) as api:
        assert _put(api, "after") == 201
    assert {"before", "after"} <= _names(_file(settings))


def test_a_database_that_is_moved_away_and_back_is_written_again(settings: Settings) -> None:
    with serving(settings) as api:
        assert _put(api, "before") == 201
        away = _file(settings).with_name("away")
        _file(settings).rename(away)
        api.services.database_monitor.look()
        assert _put(api, "meanwhile") == 503
        away.rename(_file(settings))
        assert _put(api, "after") == 201
        assert api.client.get("/readyz").status_code == 200
    assert {"before", "after"} <= _names(_file(settings))


def test_nothing_that_was_acknowledged_is_lost_when_the_database_is_moved_away_again_and_again(
    settings: Settings,
) -> None:
    with serving(settings) as api:
        acknowledged: list[str] = []
        is_over = threading.Event()

        def put(writer: int) -> None:
            number = 0
            while not is_over.is_set():
                name = f"w{writer}-{number}"
                if _put(api, name) == 201:
                    acknowledged.append(name)
                number += 1

        with ThreadPoolExecutor(3) as threads:
            writers = [threads.submit(put, writer) for writer in range(3)]
            try:
                for number in range(5):
                    time.sleep(0.3)
                    away = _file(settings).with_name(f"away-{number}")
                    _file(settings).rename(away)
                    time.sleep(0.3)
                    away.rename(_file(settings))
            finally:
                is_over.set()
            assert [writer.exception() for writer in writers] == [None] * 3
    assert len(acknowledged) > 20
    assert set(acknowledged) - _names(_file(settings)) == set()


def test_a_file_that_took_the_place_of_the_database_is_not_damaged_by_its_log(settings: Settings) -> None:
    with serving(settings) as api:
        assert _put(api, "old") == 201
        backup = settings.state_directory / "backup"
        with closing(sqlite3.connect(_file(settings))) as source, closing(sqlite3.connect(backup)) as target:
            source.backup(target)
        # More than a write-ahead log holds, so that it begins again.
        for number in range(120):
            assert _put(api, f"later-{number}") == 201
        away = _file(settings).with_name("away")
        _file(settings).rename(away)
        backup.replace(_file(settings))
        api.services.database_monitor.look()
        assert _put(api, "refused") == 503
        assert api.get("/workloads").status_code == 200
        # Without its write-ahead log, the other one is whole where it was moved to.
        assert {f"later-{number}" for number in range(120)} <= _names(away)
    assert "old" in _names(_file(settings))
    assert "refused" not in _names(_file(settings))


#: Opens the database once a line comes, and closes it whole at the next.
_OTHER_PROGRAM = """
import sqlite3, sys
sys.stdin.readline()
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("CREATE TABLE theirs (number INTEGER)")
print("made", flush=True)
sys.stdin.readline()
print(database.execute("PRAGMA integrity_check").fetchone()[0], flush=True)
"""


def test_nothing_is_acknowledged_beside_a_write_ahead_log_that_another_program_made(settings: Settings) -> None:
    command = [sys.executable, "-c", _OTHER_PROGRAM, str(_file(settings))]
    with (
        serving(settings) as api,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as other,
    ):
        assert other.stdin is not None
        assert other.stdout is not None
        assert _put(api, "before") == 201
        for suffix in ("-wal", "-shm"):
            _file(settings).with_name(f"cliffwatch.sqlite3{suffix}").unlink()
        other.stdin.write("open\n")
        assert other.stdout.readline() == "made\n"
        api.services.database_monitor.look()
        assert _put(api, "after") == 503
        assert "the write-ahead log of the database" in api.client.get("/readyz").json()["detail"]
        other.stdin.write("close\n")
        assert other.stdout.readline() == "ok\n"


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
