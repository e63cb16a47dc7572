"""The API in a process of its own."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from cliffwatch.model.settings import Settings

PROGRAM = """
import socket, sys
import uvicorn
from cliffwatch.server.app import create_app
from cliffwatch.model.settings import read_settings
from tests.api.harness import NoReconciler
app = create_app(read_settings(state_directory=sys.argv[1]), reconciler=NoReconciler)
server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
server.run(sockets=[socket.socket(fileno=int(sys.argv[2]))])
"""


@contextmanager
def process(settings: Settings) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """A service that answers, and a client of it; the process is killed at the end if it is still there."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        arguments = [sys.executable, "-c", PROGRAM, str(settings.state_directory), str(listener.fileno())]
        with subprocess.Popen(arguments, pass_fds=[listener.fileno()]) as service:
            try:
                port = listener.getsockname()[1]
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
                    client.get("/readyz").raise_for_status()
                    yield service, client
            finally:
                service.kill()
