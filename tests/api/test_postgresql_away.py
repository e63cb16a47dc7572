"""A service on PostgreSQL whose server falls or hangs, and comes back: runs go on, and nothing is lost."""

import signal
import time
from pathlib import Path

import pytest
from testkit.postgres import running_server
from testkit.service import Service
from testkit.waiting import wait_until
from testkit.worker_runs import assert_no_window_twice
from tests.api.beside_a_database import WORKLOAD, directory_of, submit, windows_of

from cliffwatch.store.postgresql import ANSWER_SECONDS, CONNECT_SECONDS


def test_runs_go_on_without_the_database_and_are_in_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server() as server:
        monkeypatch.setenv("CLIFFWATCH_DATABASE_URL", server.new_database_url())
        with Service(tmp_path / "state") as service:
            going, stopped = submit(service, "going"), submit(service, "stopped", phases={"soak": "10m"})
            for run_id in (going, stopped):
                wait_until(lambda run_id=run_id: windows_of(service, run_id) > 2, "some windows")  # type: ignore[misc]
            server.stop(signal.SIGQUIT)
            check_away(service, going, stopped)
            server.start()
            wait_until(lambda: service.client.get("/readyz").status_code == 200, "the database's return")
            assert service.wait_for(going, "finished")["verdict"] == "pass"
            service.client.post(f"/api/v1/runs/{stopped}/stop").raise_for_status()
            assert service.wait_for(stopped, "finished")["verdict"] == "stopped"
            for run_id in (going, stopped):
                assert_no_window_twice(directory_of(service, run_id))
            again = submit(service, "again", phases={"soak": "1s", "cool_down": "0s"})
            assert service.wait_for(again, "finished")["verdict"] == "pass"


def check_away(service: Service, going: str, stopped: str) -> None:
    """Requests get an answer that says so, and what does not need the database is done."""
    unready = service.client.get("/readyz")
    assert (unready.status_code, unready.json()["code"]) == (503, "not_ready"), unready.text
    for path in ("/api/v1/runs", f"/api/v1/runs/{going}"):
        answer = service.client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable"), answer.text
    refused = service.client.post(
        "/api/v1/runs", json={"workload": WORKLOAD, "target": {"kind": "synthetic", "name": "x"}}
    )
    assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable"), refused.text
    before = windows_of(service, going)
    wait_until(lambda: windows_of(service, going) > before + 5, "windows beside the database's absence")
    assert windows_of(service, stopped) > 2


def test_a_server_that_hangs_keeps_no_client_waiting_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connections stay, and TCP acknowledges for it, so that no other limit of time is ever reached."""
    with running_server() as server:
        monkeypatch.setenv("CLIFFWATCH_DATABASE_URL", server.new_database_url())
        with Service(tmp_path / "state") as service:
            going = submit(service, "going", phases={"soak": "25s", "cool_down": "0s"})
            wait_until(lambda: windows_of(service, going) > 2, "some windows")
            with server.frozen():
                before = windows_of(service, going)
                for path, code in (("/api/v1/runs", "database_unavailable"), ("/readyz", "not_ready")):
                    began = time.monotonic()
                    answer = service.client.get(path, timeout=60)
                    assert (answer.status_code, answer.json()["code"]) == (503, code), answer.text
                    assert time.monotonic() - began < ANSWER_SECONDS + CONNECT_SECONDS + 3
                wait_until(lambda: windows_of(service, going) > before + 5, "windows beside a database that hangs")
            wait_until(lambda: service.client.get("/readyz").status_code == 200, "the database's return")
            assert service.wait_for(going, "finished")["verdict"] == "pass"
