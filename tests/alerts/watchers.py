"""The real Prometheus and Alertmanager on free ports of loopback, and HTTP servers for them to talk to."""

import json
import shutil
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testkit.waiting import wait_until

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Site:
    """An HTTP server on a free port. `pages` maps a path to what makes its text; what is posted is kept in `posts`, and
    answered 404 at the paths in `absent`."""

    def __init__(self, pages: dict[str, Callable[[], str]]) -> None:
        self.pages = pages
        self.absent: set[str] = set()
        self.posts: list[tuple[str, str | None, dict[str, Any]]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = site.pages.get(self.path)
                content_type = "application/json" if self.path.startswith("/api/") else TEXT
                self._answer(200 if page else 404, (page() if page else "").encode(), content_type)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
                site.posts.append((self.path, self.headers["Authorization"], body))
                self._answer(404 if self.path in site.absent else 204, b"", TEXT)

            def _answer(self, status: int, body: bytes, content_type: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # the base class names it so
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def alerts(self, name: str, status: str) -> list[dict[str, Any]]:
        """Alerts of that name that were posted with that status, in the order of their arrival."""
        return [
            alert
            for _, _, body in list(self.posts)
            for alert in body["alerts"]
            if alert["labels"]["alertname"] == name and alert["status"] == status
        ]


def program(*names: str) -> str:
    """The first of the names that is installed: Debian names some programs otherwise."""
    for name in names:
        if found := shutil.which(name):
            return found
    raise AssertionError(f"{names[0]} is not installed: apt-get install prometheus prometheus-alertmanager")


@contextmanager
def running(command: list[str], ready_url: str, log_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process from when it is ready until the block's end."""
    with log_path.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: process.poll() is not None or _answers(ready_url), f"{ready_url} of {log_path}")
            assert process.poll() is None, log_path.read_text()
            yield process
        finally:
            process.terminate()
            process.wait()


def run_prometheus(directory: Path, configuration: str, address: str) -> Any:
    directory.mkdir()
    path = directory / "prometheus.yaml"
    path.write_text(configuration)
    command = [
        program("prometheus"),
        f"--config.file={path}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
        "--rules.alert.resend-delay=5s",
    ]
    return running(command, f"http://{address}/-/ready", directory / "log")


def run_alertmanager(directory: Path, configuration: str, address: str) -> Any:
    directory.mkdir()
    path = directory / "alertmanager.yaml"
    path.write_text(configuration)
    command = [
        program("prometheus-alertmanager", "alertmanager"),
        f"--config.file={path}",
        f"--storage.path={directory / 'data'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    return running(command, f"http://{address}/-/ready", directory / "log")


def query(address: str, expression: str) -> list[dict[str, Any]]:
    """The instant vector that Prometheus makes of the expression."""
    parameters = urllib.parse.urlencode({"query": expression})
    body = get(f"http://{address}/api/v1/query?{parameters}")
    result: list[dict[str, Any]] = body["data"]["result"]
    return result


def alertmanager_alerts(address: str, name: str) -> list[dict[str, Any]]:
    matcher = urllib.parse.urlencode({"filter": f"alertname={name}"})
    alerts: list[dict[str, Any]] = get(f"http://{address}/api/v2/alerts?{matcher}")
    return alerts


def get(url: str) -> Any:
    """The JSON document there."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 # a loopback address
        return json.load(answer)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):  # noqa: S310 # a loopback address
            return True
    except OSError:
        return False
