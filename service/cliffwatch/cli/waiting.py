"""Wait at start for a database that does not answer yet; until then every request is answered with 503."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sqlalchemy.exc import InterfaceError, OperationalError

from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import KINDS, Code
from cliffwatch.base.retries import growing_pause_seconds
from cliffwatch.cli.output import say
from cliffwatch.store.database import open_database

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 30.0


def await_database(url: str, listener: socket.socket, clock: Clock) -> None:
    """Wait until the database accepts connections; until then answer every request with 503 (not ready)."""
    reason = _why_away(url)
    if reason is None:
        return
    with _not_ready(listener):
        failures = 0
        while reason is not None:
            failures += 1
            pause_seconds = growing_pause_seconds(failures, _FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
            say(f"the database does not answer ({reason}); trying again in {pause_seconds:g} s")
            clock.sleep(pause_seconds)
            reason = _why_away(url)
    say("the database answers")


def _why_away(url: str) -> str | None:
    """Why the database server cannot be reached; None if it can, and for SQLite, which creates its file if absent."""
    if url.startswith("sqlite"):
        return None
    database = open_database(url)
    try:
        with database.engine.connect():
            return None
    except (OperationalError, InterfaceError) as error:
        return " ".join(str(error.orig or error).split())[:200]
    finally:
        database.close()


class _Answer(BaseHTTPRequestHandler):
    """HTTP handler that answers every request with 503, readiness checks too."""

    timeout = 2

    def _refuse(self) -> None:
        kind = KINDS[Code.NOT_READY]
        body = json.dumps(
            {
                "type": f"urn:cliffwatch:problem:{Code.NOT_READY}",
                "title": kind.title,
                "status": kind.status,
                "detail": "the service waits for its database, which does not answer",
                "instance": self.path,
                "code": Code.NOT_READY,
                "errors": [],
            }
        ).encode()
        self.send_response(kind.status)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Retry-After", "5")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _refuse  # noqa: N815  names of http.server

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  its name in http.server
        """Suppress the log line of each request."""


@contextmanager
def _not_ready(listener: socket.socket) -> Iterator[None]:
    # A thread for each client: none that sends nothing keeps the others, or the end of the wait.
    server = ThreadingHTTPServer(listener.getsockname()[:2], _Answer, bind_and_activate=False)
    server.socket.close()
    server.socket = listener.dup()
    server.socket.listen(16)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
