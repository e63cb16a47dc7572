"""A service process for a test or benchmark, with its own state directory and port; it can be killed and restarted."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
from testkit.ports import free_port
from testkit.waiting import wait_until

PATIENCE_SECONDS = 60.0
_COMMAND = str(Path(sys.executable).with_name("cliffwatch"))


class Service:
    """`cliffwatch serve` on loopback, with an admin token; `before` is a command prefix to start it with."""

    def __init__(self, state_directory: Path, before: Sequence[str] = ()) -> None:
        self.state_directory = state_directory
        self._before = before
        self.port = free_port()
        self._token_file = state_directory / "token"
        self._environment = os.environ | {
            "CLIFFWATCH_STATE_DIRECTORY": str(state_directory),
            "CLIFFWATCH_LISTEN_PORT": str(self.port),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)

    def __enter__(self) -> "Service":
        self.state_directory.mkdir(parents=True)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_SECONDS)

    @property
    def pid(self) -> int:
        assert self._process is not None, "the service was not started"
        return self._process.pid

    def start(self) -> None:
        """Start the service and wait until it is ready. Raises RuntimeError with the log's end if it exits first."""
        with (self.state_directory / "service.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._before, _COMMAND, "serve", "--token-file", str(self._token_file)],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        process = self._process
        log_of = self.state_directory / "service.log"
        wait_until(lambda: process.poll() is not None or self._is_ready(), lambda: log_of.read_text()[-2000:])
        if process.poll() is not None:
            raise RuntimeError(log_of.read_text()[-2000:])
        self.client.headers["Authorization"] = f"Bearer {self._token_file.read_text().strip()}"

    def rebuild_index(self) -> None:
        """Rebuild the database from the journals."""
        subprocess.run([_COMMAND, "index", "rebuild"], env=self._environment, check=True, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE_SECONDS)

    def wait_for(self, run_id: str, state: str) -> dict[str, Any]:
        """Wait until the run is in `state`; returns the run."""
        seen: list[dict[str, Any]] = []

        def in_state() -> dict[str, Any] | None:
            seen[:] = [self.client.get(f"/api/v1/runs/{run_id}").raise_for_status().json()]
            return seen[0] if seen[0]["state"] == state else None

        return wait_until(in_state, lambda: f"run {run_id} is {seen[0]['state']}, not {state}")

    def _is_ready(self) -> bool:
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False
