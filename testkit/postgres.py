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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from testkit.ports import free_port

USER = "postgres"


@dataclass(slots=True)
class PostgresqlServer:
    """A server of a cluster in `home`, where its socket is; it listens on TCP's 127.0.0.1 too."""

    home: Path
    port: int
    user: str
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Returns once it answers."""
        programs = _programs_directory()
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(_as_user(self.user, *_command(programs, self)), stdout=log, stderr=log)
        _wait_until_ready(programs, self)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is the fast shutdown, which ends open connections; SIGQUIT that of a server that falls."""
        assert self.process is not None
        pid_file = self.home / "data" / "postmaster.pid"
        if self.process.poll() is None and pid_file.exists():
            os.kill(int(pid_file.read_text().splitlines()[0]), how)
        self.process.wait()

    def ask(self, question: LiteralString) -> object:
        """The first value of an answer."""
        with self._connected() as connection:
            row = connection.execute(question).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """While the block lasts, the server and its children are stopped: connections stay, nothing is answered."""
        main = int((self.home / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(main, signal.SIGSTOP)
        # Nothing is started or ends while its parent is stopped, or at least no other process gets its id.
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        pids = [*map(int, children), main]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            # runuser stops itself when what it runs is stopped.
            for pid in (*pids, *([] if self.process is None else [self.process.pid])):
                os.kill(pid, signal.SIGCONT)

    def new_database_url(self, encoding: str = "UTF8") -> str:
        """The URL of a new, empty database."""
        name = f"test_{uuid.uuid4().hex}"
        with self._connected() as connection:
            connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        return f"postgresql+psycopg://{self.user}@127.0.0.1:{self.port}/{name}"

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(host=str(self.home), port=self.port, user=self.user, dbname="postgres", autocommit=True)


@contextmanager
def running_server() -> Iterator[PostgresqlServer]:
    """A server with a cluster of its own."""
    with _cluster("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync") as server:
        yield server


@contextmanager
def standby_of(primary: PostgresqlServer) -> Iterator[PostgresqlServer]:
    """A server that follows another one, as streaming replication has it."""
    source = ("-h", str(primary.home), "-p", str(primary.port), "-U", primary.user)
    with _cluster("pg_basebackup", *source, "--write-recovery-conf", "--checkpoint=fast", "--no-sync") as server:
        yield server


@contextmanager
def _cluster(*making: str) -> Iterator[PostgresqlServer]:
    # A unix socket's path may be 107 bytes long at most, which pytest's own temporary directories exceed at times.
    home = Path(tempfile.mkdtemp(prefix="cliffwatch-pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            shutil.chown(home, USER)
        home.chmod(0o755)
        program, *options = making
        _run(USER, str(_programs_directory() / program), "-D", str(home / "data"), *options)
        server = PostgresqlServer(home, free_port(), USER)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """The server that tests share, for as long as they run."""
    with running_server() as server:
        yield server


def _command(programs: Path, server: PostgresqlServer) -> list[str]:
    settings = {
        "port": server.port,
        "unix_socket_directories": server.home,
        "listen_addresses": "127.0.0.1",
        # Nothing here outlives the tests.
        "fsync": "off",
        "full_page_writes": "off",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(programs / "postgres"), "-D", str(server.home / "data"), *options]


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


def _wait_until_ready(programs: Path, server: PostgresqlServer) -> None:
    assert server.process is not None
    address = ["-h", str(server.home), "-p", str(server.port), "-t", "1"]
    while subprocess.run([str(programs / "pg_isready"), *address], capture_output=True).returncode != 0:
        assert server.process.poll() is None, (server.home / "log").read_text()
