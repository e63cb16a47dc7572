"""A service on PostgreSQL that is far away, or another server than before: runs go on, and nothing is lost."""

import signal
from pathlib import Path

import pytest
from testkit.postgres import PostgresqlServer, running_server, standby_of
from testkit.service import Service
from testkit.slow_link import slow_link
from testkit.waiting import wait_until
from tests.api.beside_a_database import submit, windows_of

#: As between cities: a round of the reconciler asks a dozen questions.
DELAY_SECONDS = 0.05


def test_a_slow_server_slows_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server() as server, slow_link(server.port, DELAY_SECONDS) as port:
        url = server.new_database_url().replace(f":{server.port}/", f":{port}/")
        monkeypatch.setenv("CLIFFWATCH_DATABASE_URL", url)
        with Service(tmp_path / "state") as service:
            going, stopped = submit(service, "going"), submit(service, "stopped", phases={"soak": "10m"})
            wait_until(lambda: windows_of(service, stopped) > 2, "some windows")
            service.client.post(f"/api/v1/runs/{stopped}/stop").raise_for_status()
            assert service.wait_for(going, "finished")["verdict"] == "pass"
            assert windows_of(service, going) == 60
            assert service.wait_for(stopped, "finished")["verdict"] == "stopped"


def test_a_standby_that_is_promoted_is_used_where_the_url_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_server() as first:
        url = first.new_database_url()
        with standby_of(first) as second:
            both = f"?host=127.0.0.1:{first.port}&host=127.0.0.1:{second.port}&target_session_attrs=read-write"
            monkeypatch.setenv("CLIFFWATCH_DATABASE_URL", url.replace(f"127.0.0.1:{first.port}", "") + both)
            with Service(tmp_path / "state") as service:
                going = submit(service, "going")
                token = service.client.post("/api/v1/tokens", json={"name": "kept", "scope": "read"})
                token.raise_for_status()
                wait_until(lambda: windows_of(service, going) > 2, "some windows")
                wait_until(lambda: is_level(first, second), "a standby that has everything")
                first.stop(signal.SIGQUIT)
                assert second.ask("SELECT pg_promote()") is True
                wait_until(lambda: service.client.get("/readyz").status_code == 200, "the other server")
                assert service.wait_for(going, "finished")["verdict"] == "pass"
                kept = service.client.get("/api/v1/tokens").raise_for_status().json()["items"]
                assert "kept" in [each["name"] for each in kept]
                again = submit(service, "again", phases={"soak": "1s", "cool_down": "0s"})
                assert service.wait_for(again, "finished")["verdict"] == "pass"


def is_level(first: PostgresqlServer, second: PostgresqlServer) -> bool:
    return first.ask("SELECT pg_current_wal_lsn()::text") == second.ask("SELECT pg_last_wal_replay_lsn()::text")
