"""PostgreSQL servers for tests, each with a cluster in a temporary directory that is removed afterwards.

PostgreSQL refuses to run as root, so as root it is run as the user `postgres` that its package makes.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from testkit.ports import free_port

USER = "postgres"
#: Settings of a server of which nothing outlives the test.
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


@dataclass(slots=True)
class PostgresqlServer:
    """A server whose log and Unix socket are in `home`, and its cluster in `data`; it also listens on 127.0.0.1."""

    home: Path
    data: Path
    port: int
    user: str
    settings: Mapping[str, str]
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        programs = _programs_directory()
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(_as_user(self.user, *_command(programs, self)), stdout=log, stderr=log)
        _wait_until_ready(programs, self)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server. SIGINT: fast shutdown, which ends open connections; SIGQUIT: immediate, as in a crash."""
        assert self.process is not None
        pid_file = self.data / "postmaster.pid"
        if self.process.poll() is None and pid_file.exists():
            os.kill(int(pid_file.read_text().splitlines()[0]), how)
        self.process.wait()

    def ask(self, question: LiteralString) -> object:
        """Execute a query; returns the first value of its first row, None without a row."""
        with self.connected() as connection:
            row = connection.execute(question).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the server and its child processes for the block: connections stay open, nothing is answered."""
        main = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        os.kill(main, signal.SIGSTOP)
        # While the parent is stopped it starts no child, and no other process gets the id of a child that ends.
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
        """Create an empty database; returns its URL."""
        name = f"test_{uuid.uuid4().hex}"
        with self.connected() as connection:
            connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        return f"postgresql+psycopg://{self.user}@127.0.0.1:{self.port}/{name}"

    def connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(host=str(self.home), port=self.port, user=self.user, dbname="postgres", autocommit=True)


@contextmanager
def running_server(
    settings: Mapping[str, str] = NOT_DURABLE, directory: Path | None = None
) -> Iterator[PostgresqlServer]:
    """Start a server with a new cluster, below `directory` if that is given; removed when the block ends."""
    making = ("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
    with _cluster(*making, settings=settings, directory=directory) as server:
        yield server


@contextmanager
def standby_of(primary: PostgresqlServer) -> Iterator[PostgresqlServer]:
    """Start a standby that follows `primary` by streaming replication."""
    source = ("-h", str(primary.home), "-p", str(primary.port), "-U", primary.user)
    with _cluster("pg_basebackup", *source, "--write-recovery-conf", "--checkpoint=fast", "--no-sync") as server:
        yield server


@contextmanager
def _cluster(
    *making: str, settings: Mapping[str, str] = NOT_DURABLE, directory: Path | None = None
) -> Iterator[PostgresqlServer]:
    # A unix socket's path may be 107 bytes long at most, which pytest's own temporary directories exceed at times.
    home = Path(tempfile.mkdtemp(prefix="cliffwatch-pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            shutil.chown(home, USER)
        home.chmod(0o755)
        data = home / "data" if directory is None else directory / home.name
        data.mkdir(mode=0o700)
        for parent in data.parents:
            # The server's user has to reach its directory, and temporary ones are closed to others.
            if not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o001)
        if os.geteuid() == 0:
            shutil.chown(data, USER)
        program, *options = making
        _run(USER, str(_programs_directory() / program), "-D", str(data), *options)
        server = PostgresqlServer(home, data, free_port(), USER, settings)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
        if directory is not None:
            shutil.rmtree(directory / home.name, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """PostgreSQL server that all tests of a session share."""
    with running_server() as server:
        yield server


def _command(programs: Path, server: PostgresqlServer) -> list[str]:
    settings = {
        "port": server.port,
        "unix_socket_directories": server.home,
        "listen_addresses": "127.0.0.1",
        **server.settings,
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(programs / "postgres"), "-D", str(server.data), *options]


def _programs_directory() -> Path:
    """Directory of the newest server's programs: Debian keeps them off PATH."""
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
