"""python -m testkit.release_state DIRECTORY: what a user of this release has, kept to be upgraded by later ones.

A service is asked for it as a user would ask, so this runs with every release; by the Python of an installed one, whose
paths are in the journals. The directory gets `runs/`, the `token` of that service's administrator, and `database.sql`,
of which SQLite makes the database again.
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
#: What stands for the state directory, whose path the database holds.
_STATE = "STATE_DIRECTORY"
#: What a journal holds only while its run goes on, and what is made of the rest again.
_LEFT_OUT = ("engine.log", "worker.log", "*.lock", "*.png", "report.html", "storage", "telemetry*")


def make(state: Path) -> None:
    """Raises AssertionError where the service refuses any of it."""
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
    """Make a state directory of what was kept; gives the administrator's token.

    `seen_at`: where a service finds it that has a view of its own of the machine's files.
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
