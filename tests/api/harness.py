"""A real service in this process: uvicorn in a thread, and a client that reaches it over a socket."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from testkit.databases import make_tables

from cliffwatch.app.index import index_run
from cliffwatch.base.clock import Clock, SystemClock
from cliffwatch.cli.serve import connection_options
from cliffwatch.http.context import Services
from cliffwatch.model.scope import Scope
from cliffwatch.model.settings import Settings
from cliffwatch.server.app import create_app
from cliffwatch.store.database import Database, open_database
from cliffwatch.store.tokens import create_token

WORKLOAD = {"version": 1, "name": "steady", "engine": "synthetic", "window": "1s", "phases": {"soak": "1m"}}
ORDER = {"workload": WORKLOAD, "target": {"kind": "synthetic", "name": "nowhere"}}


class NoReconciler:
    """No worker is started: tests write what a worker would."""

    def __init__(self, database: Database, clock: Clock) -> None:
        pass

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def busy_seconds(self) -> float:
        return 0.0


@dataclass(slots=True)
class Api:
    """A running service, and a client with a token of each scope."""

    app: FastAPI
    client: httpx.Client
    settings: Settings
    tokens: dict[str, str]
    stops: list[tuple[Path, bool]] = field(default_factory=list)

    @property
    def services(self) -> Services:
        services = self.app.state.services
        assert isinstance(services, Services)
        return services

    def call(self, method: str, path: str, body: Any = None, scope: str = "admin", **options: Any) -> httpx.Response:
        """The response to a request below /api/v1."""
        headers = {"Authorization": f"Bearer {self.tokens[scope]}", **options.pop("headers", {})}
        if body is not None:
            # Written by hand: httpx would not send what is not UTF-8, and clients do.
            options["content"] = json.dumps(body)
            headers["Content-Type"] = "application/json"
        return self.client.request(method, f"/api/v1{path}", headers=headers, **options)

    def get(self, path: str, scope: str = "read", **options: Any) -> httpx.Response:
        return self.call("GET", path, scope=scope, **options)

    def post(self, path: str, body: Any = None, scope: str = "operate", **options: Any) -> httpx.Response:
        return self.call("POST", path, body, scope, **options)

    def put(self, path: str, body: Any = None, scope: str = "operate", **options: Any) -> httpx.Response:
        return self.call("PUT", path, body, scope, **options)

    def index(self, run_id: str) -> Path:
        """Have the index read a run's journal, as the reconciler would; gives the journal."""
        directory = self.settings.runs_directory / run_id
        with self.services.database.session() as session:
            index_run(session, directory)
        return directory


@contextmanager
def serving(settings: Settings, clock: Clock | None = None, open_files: int = 1024) -> Iterator[Api]:
    """A service on a free port, until the block ends."""
    tokens = make_tokens(settings)
    stops: list[tuple[Path, bool]] = []
    app = create_app(
        settings,
        clock or SystemClock(),
        reconciler=NoReconciler,
        request_stop=lambda directory, force: stops.append((directory, force)),
    )
    with (
        listening(app, open_files) as url,
        # There is no TLS, and to read the machine's certificates takes as long as to start the service.
        httpx.Client(base_url=url, trust_env=False, timeout=30, verify=False) as client,  # noqa: S501
    ):
        # Waits in the socket's queue until the service has started.
        client.get("/healthz").raise_for_status()
        yield Api(app, client, settings, tokens, stops)


@contextmanager
def listening(app: FastAPI, open_files: int = 1024) -> Iterator[str]:
    """uvicorn with the application, in a thread."""
    # Named as TCP, or asyncio would leave Nagle's algorithm on and every answer would take 40 ms longer.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        configuration = uvicorn.Config(
            app, log_config=None, lifespan="on", timeout_graceful_shutdown=5, **connection_options(open_files)
        )
        server = uvicorn.Server(configuration)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def make_tokens(settings: Settings) -> dict[str, str]:
    """A token of each scope, by its scope."""
    make_tables(settings.database_url)
    database = open_database(settings.database_url)
    with database.session() as session:
        tokens = {scope.label: create_token(session, scope.label, scope, 1.0)[1] for scope in Scope}
    database.close()
    return tokens


def scope_of(method: str, path: str) -> str:
    """Scope that a route needs: GET and login links need read, tokens admin, the rest operate; what only checks a body
    changes nothing."""
    if "/tokens" in path:
        return "admin"
    return "read" if method == "GET" or path.endswith(("/validate", "/comparable", "/login-links")) else "operate"
