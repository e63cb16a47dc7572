"""Run the service in the foreground: one process, until a signal ends it."""

import ipaddress
import itertools
import logging
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from cliffwatch.app.index import UNFINISHED_PREFIX
from cliffwatch.app.tokens import TokenService
from cliffwatch.base import locks
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.durable import PRIVATE_DIRECTORY, write_durably
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.logs import Repetitions
from cliffwatch.base.privacy import tighten
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.cli.daemon import Daemon, remember_daemon
from cliffwatch.cli.output import say
from cliffwatch.cli.waiting import await_database
from cliffwatch.model.scope import Scope
from cliffwatch.model.settings import Settings
from cliffwatch.server.app import create_app
from cliffwatch.store.database import open_database, upgrade

#: How long requests in progress may take after a signal. Live streams never end by themselves.
_SHUTDOWN_GRACE_SECONDS = 3
#: How long to wait for another service of this state directory, which may be about to end.
_PATIENCE_SECONDS = 5.0
#: Maximum number of open files. More are of no use: connections are limited, and a run needs some ten files.
_OPEN_FILES = 16_384
_CONNECTIONS = 512


def serve_forever(settings: Settings, token_path: Path) -> None:
    """Serve until SIGTERM or SIGINT. Raises Problem when the service cannot be started."""
    _log_to_stderr()
    _make_state(settings)
    # Bound before the database and the token are touched, so that a port in use is reported first.
    listener = _listen(settings.listen_host, settings.listen_port)
    with (
        listener,
        _alone_in(settings.state_directory, "state", _lock_state),
        _alone_in(settings.runs_directory, "runs", _lock_runs),
    ):
        port = listener.getsockname()[1]
        await_database(settings.database_url, listener, SystemClock())
        _make_first_token(settings, token_path)
        _be_found(settings, f"http://{settings.listen_host}:{port}")
        configuration = uvicorn.Config(
            create_app(settings, SystemClock()),
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_GRACE_SECONDS,
            **connection_options(_most_open_files()),
        )
        server = uvicorn.Server(configuration)
        server.run(sockets=[listener])
    if not server.started:
        raise Problem(Code.NOT_READY, "the service could not be started; the reason is above")


def connection_options(open_files: int) -> dict[str, Any]:
    """uvicorn's options for connections: they use at most half of the `open_files` that the process may open.

    Slow clients are limited by the proxy in front of the service (docs/api.md).
    """
    return {"http": "h11", "ws": "none", "limit_concurrency": min(_CONNECTIONS, max(2, open_files // 2))}


def _most_open_files() -> int:
    """Raise the soft limit of open files and return it. Its low default is for programs that use `select`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def _be_found(settings: Settings, url: str) -> None:
    """Record this process, so that `up`, `down` and `status` find it however it was started."""
    say(f"listening on {url}")
    own = ProcessIdentity.of(os.getpid())
    assert own is not None, "this process is there"
    try:
        remember_daemon(settings.state_directory, Daemon(own, url))
    except OSError as error:
        say(f"`cliffwatch down` will not find this service: {error}")


@contextmanager
def _alone_in(directory: Path, purpose: str, lock: Callable[[Path], int]) -> Iterator[None]:
    """Lock the state or runs directory, so that two services never overwrite each other's files, nor start the same
    runs. Raises Problem(conflict)."""
    setting = f"CLIFFWATCH_{purpose.upper()}_DIRECTORY"
    try:
        descriptor = lock(directory)
    except TimeoutError as error:
        detail = (
            f"another service uses the {purpose} directory {directory}; stop it (`cliffwatch down`), or name another "
            f"with {setting}"
        )
        raise Problem(Code.CONFLICT, detail) from error
    except OSError as error:
        raise _unusable(directory, error, purpose) from error
    try:
        yield
    finally:
        os.close(descriptor)


def _lock_state(directory: Path) -> int:
    return locks.hold(directory / "service.lock", _PATIENCE_SECONDS)


def _lock_runs(directory: Path) -> int:
    """Lock the runs directory itself, which is possible where it is read-only; on NFS only a file in it can be."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        locks.take(descriptor, directory, _PATIENCE_SECONDS)
    except TimeoutError:
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        return locks.hold(directory / f"{UNFINISHED_PREFIX}service.lock", _PATIENCE_SECONDS)
    return descriptor


def _make_state(settings: Settings) -> None:
    place = settings.state_directory
    try:
        place.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        tighten(place, settings.runs_directory)
    except OSError as error:
        raise _unusable(place, error, "state") from error
    try:
        settings.runs_directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(settings.runs_directory, error, "runs") from error


def _unusable(place: Path, error: OSError, purpose: str) -> Problem:
    remedy = f"name a directory that this user may write to with CLIFFWATCH_{purpose.upper()}_DIRECTORY"
    return Problem(Code.NOT_READY, f"the {purpose} directory {place} cannot be used: {error.strerror}; {remedy}")


def make_local_token(settings: Settings, name: str, scope: str) -> dict[str, str]:
    """Create a token directly in the database, for an operator who may write to it but has lost the last token."""
    upgrade(settings.database_url)
    database = open_database(settings.database_url)
    try:
        made = TokenService(database, SystemClock()).create(name, Scope.of(scope))
        return {"id": made.id, "name": made.name, "scope": made.scope.label, "token": made.text}
    finally:
        database.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        detail = f"{host}:{port} cannot be listened on: {error.strerror}; choose another with CLIFFWATCH_LISTEN_PORT"
        raise Problem(Code.NOT_READY, detail) from error
    if not ipaddress.ip_address(address[0]).is_loopback:
        say(f"warning: {address[0]} is not a loopback address; tokens are sent unencrypted")
    return listener


def _make_first_token(settings: Settings, token_path: Path) -> None:
    """Create a token if the database has none, or does not know the one in the token file, as after a change of
    databases. The command line reads it from that file, which its owner alone can read; an earlier file is renamed.
    """
    upgrade(settings.database_url)
    database = open_database(settings.database_url)
    try:
        token = TokenService(database, SystemClock()).ensure_first(
            partial(_token_in, token_path), partial(_keep, token_path)
        )
    finally:
        database.close()
    if token is not None:
        say(f"the first token is in {token_path}")
        # Without a terminal, output is a log, and a log is no place for a secret.
        if sys.stdout.isatty():
            print(token)


def _token_in(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise Problem(Code.NOT_READY, f"the token file {path} cannot be read: {error.strerror}") from error


def _keep(path: Path, token: str) -> None:
    if _token_in(path):
        _keep_aside(path)
    _write(path, token)


def _keep_aside(path: Path) -> None:
    """Rename the token file of another database to the next free name, such as token.1, in case it is used again."""
    number = next(number for number in itertools.count(1) if not path.with_name(f"{path.name}.{number}").exists())
    aside = path.with_name(f"{path.name}.{number}")
    try:
        path.rename(aside)
    except OSError as error:
        raise Problem(Code.NOT_READY, f"{path} cannot be renamed to {aside}: {error.strerror}") from error
    say(f"the token in {path} was of another database; it is kept in {aside}")


def _write(path: Path, token: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A symbolic link stays a link.
        write_durably(path.resolve(), token + "\n")
    except OSError as error:
        raise Problem(Code.NOT_READY, f"the first token cannot be written to {path}: {error.strerror}") from error


def _log_to_stderr() -> None:
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    handler.addFilter(Repetitions(SystemClock()))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # Alembic logs at every readiness check.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # httpx logs every health check of a watcher.
    logging.getLogger("httpx").setLevel(logging.WARNING)
