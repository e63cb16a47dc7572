"""A machine of a test's own: a state directory, a port, and the command called on it."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cliffwatch.cli.daemon import find_daemon
from cliffwatch.cli.main import main

#: Longer than anything takes here; a test that waits so long has failed.
PATIENCE_SECONDS = 120
WORKLOAD = """
version: 1
name: {name}
engine: synthetic
window: {window}
engine_restarts: 0
phases: {{soak: {soak}}}
load: {{operations_per_second: 1000, {load}}}
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What a call of the command left behind."""

    returncode: int
    stdout: str
    stderr: str


@contextmanager
def own_umask() -> Iterator[None]:
    """What a command does to its process's umask ends with it."""
    before = os.umask(0o022)
    os.umask(before)
    try:
        yield
    finally:
        os.umask(before)


@dataclass(slots=True)
class Machine:
    """A state directory and a port of a test's own."""

    directory: Path
    port: int
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "CLIFFWATCH_STATE_DIRECTORY": str(self.state),
            "CLIFFWATCH_LISTEN_PORT": str(self.port),
            "CLIFFWATCH_WATCHERS": "false",
        }

    def run(self, *arguments: str, **variables: str) -> Done:
        """Call the command within this process, which is many times as fast as starting one."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, own_umask():
            for name in [name for name in os.environ if name.startswith("CLIFFWATCH_")]:
                patch.delenv(name)
            for name, value in (self.variables | variables).items():
                patch.setenv(name, value)
            patch.chdir(self.directory)
            patch.setattr(sys, "argv", ["cliffwatch", *arguments])
            patch.setattr(sys, "stdin", io.StringIO())
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as caught:
                main()
        out.seek(0)
        code = caught.value.code
        assert isinstance(code, int)
        return Done(code, out.read(), err.getvalue())

    def data(self, *arguments: str) -> Any:
        done = self.run("--output", "json", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "cliffwatch.cli.main", *arguments],
            env={name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
            | self.variables,
            cwd=self.directory,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def workload(self, name: str, *, soak: str = "30m", window: str = "10s", load: str = "time: virtual") -> str:
        """The path of a new workload's file."""
        path = self.directory / f"{name}.yaml"
        path.write_text(WORKLOAD.format(name=name, soak=soak, window=window, load=load))
        return str(path)


def end(machine: Machine) -> None:
    """Stop what still runs, so that nothing outlives the test."""
    if find_daemon(machine.state) is not None:
        for run in machine.data("run", "list"):
            if run["state"] != "finished":
                machine.run("run", "stop", run["id"], "--force")
                machine.run("run", "watch", run["id"])
        machine.run("down")
    for process in machine.started:
        process.kill()
        process.communicate()
