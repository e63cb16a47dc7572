"""python -m testkit.release_state DIRECTORY: save a state directory of this release, which later releases must upgrade.

The state is made through a service's API, as by a user, so this works with every release. Run it with the Python of an
installed release, whose paths the journals then contain. DIRECTORY gets `runs/`, the `token` of the service's
administrator, and `database.sql`, from which SQLite restores the database.
"""

import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from testkit.service import Service

_SYNTHETIC: dict[str, Any] = {"kind": "synthetic", "name": "nowhere"}
_STEADY: dict[str, Any] = {
    "version": 1,
    "name": "steady",
    "engine": "synthetic",
    "window": "1s",
    "phases": {"baseline": "10s", "soak": "10s"},
}
_FIO: dict[str, Any] = {
    "version": 1,
    "name": "log",
    "engine": "fio",
    "window": "1s",
    "phases": {"soak": "5s"},
    "load": {"job": "[log]\nioengine=psync\ndirect=0\nrw=write\nbs=16k\nsize=1m\nrate_iops=50\n"},
}
_SCHEDULES: dict[str, dict[str, Any]] = {
    "yearly": {"kind": "cron", "expression": "0 2 1 1 *", "time_zone": "Europe/Berlin"},
    "once": {"kind": "date", "at": "2199-01-01T00:00:00Z"},
}
#: Placeholder for the path of the state directory, which the database holds.
_STATE = "STATE_DIRECTORY"
#: Files of a journal that are not saved: those of a run in progress, and those that can be made again from the rest.
_LEFT_OUT = ("engine.log", "worker.log", "*.lock", "*.png", "report.html", "storage", "telemetry*")


def make(state: Path) -> None:
    """Make a workload, two finished runs and two schedules with a service. Raises AssertionError if one is refused."""
    with Service(state) as service, tempfile.TemporaryDirectory(prefix="cliffwatch-") as target:
        _ask(service, "PUT", "/workloads/steady", _STEADY)
        directory = {"kind": "directory", "path": target}
        for run, workload, on in (("measured", _STEADY, _SYNTHETIC), ("written", _FIO, directory)):
            _ask(service, "PUT", f"/runs/{run}", {"workload": workload, "target": on})
            service.wait_for(run, "finished")
        for name, trigger in _SCHEDULES.items():
            schedule = {"name": name, "workload": "steady", "target": _SYNTHETIC, "trigger": trigger}
            _ask(service, "POST", "/schedules", schedule)


def keep(state: Path, directory: Path) -> None:
    shutil.copytree(state / "runs", directory / "runs", ignore=shutil.ignore_patterns(*_LEFT_OUT))
    shutil.copy(state / "token", directory / "token")
    [database] = state.glob("*.sqlite*")
    connection = sqlite3.connect(database)
    try:
        lines = "\n".join(connection.iterdump()).replace(str(state), _STATE)
        (directory / "database.sql").write_text(f"{lines}\n", encoding="utf-8")
    finally:
        connection.close()


def restored(directory: Path, state: Path, seen_at: Path | None = None) -> str:
    """Restore a state directory from a saved one; returns the administrator's token.

    `seen_at`: path of the state directory for a service that sees the machine's files at other paths.
    """
    shutil.copytree(directory / "runs", state / "runs")
    connection = sqlite3.connect(state / "cliffwatch.sqlite3")
    try:
        lines = (directory / "database.sql").read_text(encoding="utf-8")
        connection.executescript(lines.replace(_STATE, str(seen_at or state)))
    finally:
        connection.close()
    return (directory / "token").read_text(encoding="utf-8").strip()


def _ask(service: Service, method: str, path: str, body: dict[str, Any]) -> None:
    answer = service.client.request(method, f"/api/v1{path}", json=body)
    assert answer.is_success, answer.text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="cliffwatch-") as made:
        make(Path(made) / "state")
        keep(Path(made) / "state", Path(sys.argv[1]))
