"""Another database beneath the same state directory: there is a way in, and a way back; one that is away is awaited."""

import signal
import subprocess
from typing import Any

import httpx
import pytest
from testkit.postgres import PostgresqlServer
from tests.cli.machine import PATIENCE_SECONDS, Machine

from cliffwatch.store.database import open_database
from cliffwatch.store.tokens import find_token


def _serve(idle: Machine, url: str) -> tuple["subprocess.Popen[str]", str]:
    """A service that has started, and what it said until then."""
    process = _with_database(idle, url) if url else idle.start("serve")
    return process, _said_until(process, "Application startup complete")


def _said_until(process: "subprocess.Popen[str]", words: str) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            return said
    raise AssertionError(f"{words!r} did not come:\n{said}")


def _with_database(idle: Machine, url: str) -> "subprocess.Popen[str]":
    # Read by the service from its environment, as the state directory is.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Machine, "variables", property(lambda machine: _variables(machine) | {"CLIFFWATCH_DATABASE_URL": url})
        )
        return idle.start("serve")


def _variables(machine: Machine) -> dict[str, str]:
    return {
        "CLIFFWATCH_STATE_DIRECTORY": str(machine.state),
        "CLIFFWATCH_LISTEN_PORT": str(machine.port),
        "CLIFFWATCH_WATCHERS": "false",
    }


def _status(idle: Machine, path: str = "/readyz", token: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return httpx.get(
            f"http://127.0.0.1:{idle.port}{path}", trust_env=False, headers=headers, timeout=30
        ).status_code
    except httpx.TransportError:
        return 0


def _end(process: "subprocess.Popen[str]") -> str:
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=PATIENCE_SECONDS)[1]


def test_there_is_a_way_in_after_a_change_of_databases_and_back(
    idle: Machine, postgresql_server: PostgresqlServer
) -> None:
    file = idle.state / "token"
    _end(_serve(idle, "")[0])
    first = file.read_text().strip()
    elsewhere = postgresql_server.new_database_url()
    process, said = _serve(idle, elsewhere)
    _end(process)
    second = file.read_text().strip()
    assert (second != first, (idle.state / "token.1").read_text().strip()) == (True, first)
    assert f"kept in {idle.state / 'token.1'}" in said
    process, _ = _serve(idle, "")
    third = file.read_text().strip()
    assert [_status(idle, "/api/v1/tokens", token) for token in (third, first, second)] == [200, 200, 401]
    assert (idle.state / "token.2").read_text().strip() == second
    _end(process)
    # Known to the database: nothing is made, also when it was revoked.
    database = open_database(f"sqlite:///{idle.state / 'cliffwatch.sqlite3'}")
    with database.session() as session:
        row: Any = find_token(session, third)
        row.revoked_at = 1.0
    database.close()
    _end(_serve(idle, "")[0])
    assert file.read_text().strip() == third


def test_a_database_that_is_away_is_awaited(idle: Machine, postgresql_server: PostgresqlServer) -> None:
    url = postgresql_server.new_database_url()
    name = url.rpartition("/")[2]
    _rename(postgresql_server, name, f"{name}_away")
    process = _with_database(idle, url)
    assert process.stderr is not None
    said = [process.stderr.readline() for _ in range(2)]
    assert ["trying again in 1 s" in said[0], "trying again in 2 s" in said[1]] == [True, True]
    assert _status(idle) == 503
    _rename(postgresql_server, f"{name}_away", name)
    rest = _said_until(process, "Application startup complete")
    assert _status(idle) == 200
    assert "Traceback" not in "".join(said) + rest + _end(process)


def _rename(server: PostgresqlServer, name: str, to: str) -> None:
    import psycopg

    address = {"host": str(server.home), "port": server.port, "user": server.user, "dbname": "postgres"}
    with psycopg.connect(**address, autocommit=True) as connection:  # type: ignore[arg-type]  # of mixed types
        connection.execute(f"ALTER DATABASE {name} RENAME TO {to}")
