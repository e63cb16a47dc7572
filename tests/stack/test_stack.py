"""The real watchers around real runs, from `cliffwatch up` to `cliffwatch down`."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from cliffwatch_drive_exporter.controllers import find_controllers
from testkit.waiting import wait_until
from tests.alerts.watchers import Site
from tests.stack.machine import BUILT, Machine, events_of, load_start

from cliffwatch.cli.daemon import find_daemon
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import EventType, JournalReader
from cliffwatch.journal.state import RunStatus, status_of
from cliffwatch.journal.windows import JournalWindow
from cliffwatch.model.run_state import RunState
from cliffwatch.stack.components import COMPONENTS
from cliffwatch.stack.processes import watchers
from cliffwatch.stack.watch import BACK_NOTE, DOWN_NOTE, WATCHERS_NOTE

#: What cannot be started on every machine, and whether it can here.
THERE = {"ebpf_exporter": BUILT.exists(), "drive_exporter": bool(find_controllers())}
NAMES = [component.name for component in COMPONENTS if THERE.get(component.name, True)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine whose service and watchers are up, for tests that leave them up."""
    machine = Machine(tmp_path_factory.mktemp("stack"))
    try:
        done = machine.run("up")
        assert done.returncode == 0, done.stderr
        yield machine
    finally:
        for run_id in ("steady", "failing", "taken-over"):
            machine.run("run", "stop", run_id, "--force")
        machine.run("down")


def changed(journal: Path, watcher: str, *names: str) -> bool:
    """Whether these, in this order, are the notes of the watcher."""
    notes = events_of(journal, EventType.NOTE, DOWN_NOTE, BACK_NOTE)
    return [note.name for note in notes if note.detail["watcher"] == watcher] == list(names)


def status_in(journal: Path) -> RunStatus:
    status = status_of(stored.event for stored in JournalReader(journal).events())
    assert status is not None
    return status


def finished(journal: Path) -> bool:
    return status_in(journal).state is RunState.FINISHED


def ends_in(people: Site) -> dict[str, str]:
    """What people were notified of, by the run that ended."""
    alerts = people.alerts("CliffwatchRunFinished", "firing")
    return {alert["labels"]["run_id"]: alert["annotations"]["description"] for alert in alerts}


def test_the_stack_comes_up_once_and_each_watcher_is_named(machine: Machine) -> None:
    before = {name: machine.process(name) for name in NAMES}
    again = machine.run("up")
    assert again.returncode == 0
    for name in NAMES:
        assert f"{name}:" in again.stderr
        assert machine.process(name) == before[name]
    for token in machine.state.glob("stack/*/token"):
        assert token.stat().st_mode & 0o777 == 0o600
    tokens = {row["name"]: row["scope"] for row in json.loads(machine.run("--output", "json", "token", "list").stdout)}
    assert tokens == {
        "admin": "admin",
        "prometheus of this machine": "read",
        "alertmanager of this machine": "operate",
    }


def test_runs_are_watched_alerted_and_outlive_their_watchers(machine: Machine) -> None:
    """One run goes well and one loses its engine again and again; then every watcher is hung or killed."""
    people = Site({})
    for name in ("hook", "lost"):
        file = machine.directory / name
        file.write_text(f"http://{people.address}/{name}")
        assert machine.run("notify", "add", "webhook", "--name", name, "--url-file", str(file)).returncode == 0
    steady = machine.begin("steady", "1h")
    failing = machine.begin("failing", "1h", fail_after_windows=4)

    for run_id in ("steady", "failing"):
        series = f'cliffwatch_operations_total{{run_id="{run_id}"}}'
        found = wait_until(partial(machine.query, series), "the run's series")
        assert found[0]["metric"]["job"] == "cliffwatch-worker"
    [note] = wait_until(lambda: events_of(steady, EventType.NOTE, WATCHERS_NOTE), "the list of watchers")
    assert set(NAMES) <= set(note.detail["there"])

    [alert] = wait_until(lambda: events_of(failing, EventType.ALERT, "CliffwatchEngineRestarted")[:1], "the alert")
    restarts = events_of(failing, EventType.ENGINE, "died")
    assert alert.detail["starts_at"] > restarts[0].at
    assert alert.detail["labels"]["run_id"] == "failing"
    assert events_of(steady, EventType.ALERT, "CliffwatchEngineRestarted") == []

    hung, *killed = NAMES
    machine.process(hung).send(signal.SIGSTOP)
    for name in killed:
        machine.process(name).send(signal.SIGKILL)
    for name in NAMES:
        wait_until(partial(changed, steady, name, DOWN_NOTE), f"{name} is down")
    assert JournalReader(steady).last_window() is not None
    before = JournalReader(steady).last_window()
    wait_until(lambda: JournalReader(steady).last_window() != before, "a window without watchers")

    machine.process(hung).send(signal.SIGCONT)
    (machine.directory / "lost").unlink()
    up = machine.run("up")
    assert up.returncode == 0
    assert "warning: nothing is sent to lost: " in up.stderr
    for name in NAMES:
        wait_until(partial(changed, steady, name, DOWN_NOTE, BACK_NOTE), f"{name} is back")

    for journal in (steady, failing):
        assert machine.run("run", "stop", journal.name).returncode == 0
        wait_until(partial(finished, journal), "the end of the run")
    assert_whole(steady)
    news = wait_until(lambda: ends_in(people) if len(ends_in(people)) == 2 else None, "news of both runs")
    assert news["steady"].startswith(f"{status_in(steady).reasons[0]} Of the whole load: publish p99 ")
    assert " It is run steady of watched on synthetic:" in news["steady"]
    # Links in messages lead to this machine's address, where the ports listen, and not to its name.
    for _, _, body in people.posts:
        assert body["externalURL"].startswith("http://127.0.0.1:")
        assert all(alert["generatorURL"].startswith("http://127.0.0.1:") for alert in body["alerts"])
    assert events_of(steady, EventType.ALERT, "CliffwatchRunFinished") == []
    people.close()
    report = json.loads((failing / "report.json").read_text())
    [listed, *_] = [entry for entry in report["alerts"] if entry["name"] == "CliffwatchEngineRestarted"]
    assert listed["start_seconds"] == pytest.approx(alert.detail["starts_at"] - load_start(failing), abs=0.01)
    assert "CliffwatchEngineRestarted" in (failing / "report.html").read_text()


@pytest.mark.real(why="alerts/tests has the same hand-over of a run, without real processes")
def test_a_worker_that_is_killed_leaves_every_rule_healthy(machine: Machine) -> None:
    journal = machine.begin("taken-over", "5m")
    series = 'cliffwatch_file_system_info{run_id="taken-over"}'
    [first] = wait_until(partial(machine.query, series), "the series of the first worker")
    old = first["metric"]["instance"]
    beat = Heartbeat.read(journal)
    assert beat is not None
    beat.worker.send(signal.SIGKILL)
    wait_until(partial(machine.query, series.replace("}", f', instance!="{old}"}}')), "the series of the next worker")
    wait_until(lambda: not machine.query(series.replace("}", f', instance="{old}"}}')), "the end of the first's series")
    recorded = wait_until(
        partial(machine.query, 'run_instance_mountpoint:cliffwatch_file_system_info:max{run_id="taken-over"}'),
        "what is recorded of the run",
    )
    assert [sample["metric"]["instance"] for sample in recorded] == ["local"]
    assert machine.failed_evaluations() == {}
    assert machine.run("run", "stop", "taken-over", "--force").returncode == 0
    wait_until(partial(finished, journal), "the end of the run")


def assert_whole(journal: Path) -> None:
    """The journal can be read, and its windows follow each other without a gap that no event records."""
    reader = JournalReader(journal)
    windows: list[JournalWindow] = list(reader.windows())
    gaps = [event.detail["start"] for event in events_of(journal, EventType.GAP)]
    assert reader.faults == []
    assert [window.seq for window in windows] == list(range(len(windows)))
    for before, after in pairwise(windows):
        unrecorded = after.start - before.end if not any(before.start <= at <= after.end for at in gaps) else 0.0
        assert unrecorded == pytest.approx(0.0, abs=1e-6)


def test_down_leaves_nothing(machine: Machine) -> None:
    processes = [machine.process(name) for name in NAMES]
    daemon = find_daemon(machine.state)
    assert daemon is not None
    done = machine.run("down")
    assert "stopped the watchers" in done.stderr
    assert not any(process.is_alive() for process in [*processes, daemon.process])
    assert watchers(machine.settings) == {}
    for port in machine.ports.values():
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
    assert str(machine.state) not in _command_lines()
    assert machine.run("down").returncode == 0


def _command_lines() -> str:
    """Of all processes but this one."""
    texts = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if path.parent.name != str(os.getpid()):
            try:
                texts.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return "\n".join(texts)
