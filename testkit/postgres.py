"""A PostgreSQL cluster of the tests' own, made in a temporary directory and removed with it.

PostgreSQL refuses to run as root, so as root it is run as the user `postgres` that its package makes.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from testkit.ports import free_port


@dataclass(frozen=True, slots=True)
class PostgresqlServer:
    """A running server; `socket_directory` and `port` say where it listens (TCP on 127.0.0.1 too)."""

    socket_directory: Path
    port: int
    user: str

    def new_database_url(self, encoding: str = "UTF8") -> str:
        """The URL of an empty database that nobody else uses."""
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(
            host=str(self.socket_directory), port=self.port, user=self.user, dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        return f"postgresql+psycopg://{self.user}@127.0.0.1:{self.port}/{name}"


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """The server, for as long as the tests run."""
    programs = _programs_directory()
    # A unix socket's path may be 107 bytes long at most, which pytest's own temporary directories exceed at times.
    home = Path(tempfile.mkdtemp(prefix="cliffwatch-pg-", dir="/tmp"))
    user = "postgres"
    try:
        if os.geteuid() == 0:
            shutil.chown(home, user)
        home.chmod(0o755)
        data = home / "data"
        _run(user, str(programs / "initdb"), "-D", str(data), "-U", user, "-A", "trust", "-E", "UTF8", "--no-sync")
        server = PostgresqlServer(socket_directory=home, port=free_port(), user=user)
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(_as_user(user, *_command(programs, data, server)), stdout=log, stderr=log)
        try:
            _wait_until_ready(programs, server, process, home / "log")
            yield server
        finally:
            # SIGINT is the fast shutdown, which ends open connections.
            _stop(process, data)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _command(programs: Path, data: Path, server: PostgresqlServer) -> list[str]:
    settings = {
        "port": server.port,
        "unix_socket_directories": server.socket_directory,
        "listen_addresses": "127.0.0.1",
        # Nothing here outlives the tests.
        "fsync": "off",
        "full_page_writes": "off",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(programs / "postgres"), "-D", str(data), *options]


def _programs_directory() -> Path:
    """Where Debian keeps the newest server's programs: they are not on PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    assert on_path, "the tests need PostgreSQL: apt-get install postgresql"
    return Path(on_path).resolve().parent


def _as_user(user: str, *command: str) -> list[str]:
    return ["runuser", "-u", user, "--", *command] if os.geteuid() == 0 else list(command)


def _run(user: str, *command: str) -> None:
    subprocess.run(_as_user(user, *command), check=True, capture_output=True, cwd="/")


def _wait_until_ready(programs: Path, server: PostgresqlServer, process: subprocess.Popen[bytes], log: Path) -> None:
    address = ["-h", str(server.socket_directory), "-p", str(server.port), "-t", "1"]
    while subprocess.run([str(programs / "pg_isready"), *address], capture_output=True).returncode != 0:
        assert process.poll() is None, log.read_text()


def _stop(process: subprocess.Popen[bytes], data: Path) -> None:
    pid_file = data / "postmaster.pid"
    if process.poll() is None and pid_file.exists():
        os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGINT)
    process.wait()
