"""What keeps a watcher from running is named, and recorded in the runs that are live."""

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cliffwatch_drive_exporter.controllers import Controller
from testkit import journals
from testkit.waiting import wait_until
from tests.stack.machine import Machine, events_of

from cliffwatch.app.index import index_run
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.journal import EventLog, EventType, JournalReader
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState
from cliffwatch.stack import components
from cliffwatch.stack.components import (
    ALERTMANAGER,
    COMPONENTS,
    DRIVE_EXPORTER,
    EBPF_EXPORTER,
    NODE_EXPORTER,
    PROMETHEUS,
)
from cliffwatch.stack.launch import start_stack, stop_stack, token_path
from cliffwatch.stack.processes import Outcome, State, reload, watchers
from cliffwatch.stack.watch import DOWN_NOTE, WATCHERS_NOTE, Watch, record_changes, refusal_words
from cliffwatch.store.database import open_database, upgrade
from cliffwatch.store.tokens import find_token

CLOCK = SystemClock()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine with a database and no service; its watchers are stopped at the end."""
    machine = Machine(tmp_path)
    upgrade(machine.settings.database_url)
    yield machine
    stop_stack(machine.settings, CLOCK)


def live_run(machine: Machine) -> Path:
    directory = journals.queue(machine.settings.runs_directory, "one")
    journals.start(directory)
    database = open_database(machine.settings.database_url)
    with database.session() as session:
        index_run(session, directory)
    database.close()
    return directory


@contextmanager
def watching(machine: Machine, stale_seconds: float) -> Iterator[Watch]:
    database = open_database(machine.settings.database_url)
    watch = Watch(machine.settings, database, CLOCK, lambda: None, stale_seconds=stale_seconds)
    try:
        yield watch
    finally:
        watch.stop()
        database.close()


def by_name(outcomes: list[Outcome]) -> dict[str, Outcome]:
    return {outcome.component.name: outcome for outcome in outcomes}


def test_a_broken_rule_file_costs_prometheus_and_nothing_else(machine: Machine, tmp_path: Path) -> None:
    broken = tmp_path / "alerts"
    shutil.copytree(ALERTS_DIRECTORY, broken)
    (broken / "rules" / "own.yaml").write_text("groups: [{name: own, rules: [{alert: A, expr: 'sum('}]}]\n")
    outcomes = by_name(start_stack(machine.settings, CLOCK, alerts_directory=broken))
    assert outcomes[PROMETHEUS.name].state is State.WITHOUT
    assert "it ended:" in outcomes[PROMETHEUS.name].reason
    log = outcomes[PROMETHEUS.name].log
    assert log is not None
    assert "own.yaml" in log.read_text()
    assert {outcomes[component.name].state for component in (NODE_EXPORTER, ALERTMANAGER)} == {State.STARTED}
    said = {each["name"]: each for each in json.loads(machine.run("status", "--output", "json").stdout)["watchers"]}
    assert (said[NODE_EXPORTER.name]["up"], said[NODE_EXPORTER.name]["reason"]) == (True, None)
    assert (said[PROMETHEUS.name]["up"], "it ended:" in said[PROMETHEUS.name]["reason"]) == (False, True)
    machine.process(NODE_EXPORTER.name).send(signal.SIGKILL)
    wait_until(lambda: "node_exporter: its process is gone" in machine.run("status").stdout, "status to name it")
    assert start_stack(machine.settings, CLOCK, alerts_directory=broken)
    directory = live_run(machine)
    with watching(machine, 60) as watch:
        watch.tick()
        assert watch.up_of_possible()[PROMETHEUS.name] is False
        has_use = DRIVE_EXPORTER.obstacle(DRIVE_EXPORTER, machine.settings) is None
        assert (DRIVE_EXPORTER.name in watch.up_of_possible()) is has_use
        assert DRIVE_EXPORTER.name in watch.up()
    [note] = events_of(directory, EventType.NOTE, WATCHERS_NOTE)
    assert "it ended:" in note.detail["without"][PROMETHEUS.name]
    assert NODE_EXPORTER.name in note.detail["there"]
    (broken / "rules" / "own.yaml").unlink()
    outcomes = by_name(start_stack(machine.settings, CLOCK, alerts_directory=broken))
    assert outcomes[PROMETHEUS.name].state is State.STARTED
    assert outcomes[ALERTMANAGER.name].state is State.RUNNING


def test_a_full_disk_under_prometheus_is_reported_to_the_run(machine: Machine) -> None:
    data = PROMETHEUS.directory(machine.settings) / "data"
    data.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(data)], check=True)
    try:
        assert by_name(start_stack(machine.settings, CLOCK))[PROMETHEUS.name].state is State.STARTED
        directory = live_run(machine)
        wait_until(lambda: machine.query('up{job="prometheus"}'), "the first sample")
        with watching(machine, 12) as watch:
            watch.tick()
            assert watch.up()[PROMETHEUS.name]
            subprocess.run(["dd", "if=/dev/zero", f"of={data / 'filler'}", "bs=4k"], check=False, capture_output=True)

            def recorded() -> bool:
                watch.tick()
                return bool(events_of(directory, EventType.NOTE, DOWN_NOTE))

            wait_until(recorded, "the note")
        [note] = events_of(directory, EventType.NOTE, DOWN_NOTE)
        assert note.detail["watcher"] == PROMETHEUS.name
        assert "stored no sample" in note.detail["reason"]
    finally:
        stop_stack(machine.settings, CLOCK)
        subprocess.run(["umount", str(data)], check=True)


def test_an_absent_watcher_program_is_named_with_its_package(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    outcomes = by_name(start_stack(machine.settings, CLOCK))
    assert {outcome.state for outcome in outcomes.values()} == {State.WITHOUT}
    for component in (NODE_EXPORTER, DRIVE_EXPORTER, ALERTMANAGER, PROMETHEUS):
        assert f"apt-get install {component.package}" in outcomes[component.name].reason
    assert outcomes[EBPF_EXPORTER.name].reason
    assert set(watchers(machine.settings)) == {component.name for component in COMPONENTS}


def test_a_port_of_another_process_is_named_with_its_variable(machine: Machine) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", machine.ports["node_exporter"]))
        other.listen()
        outcome = by_name(start_stack(machine.settings, CLOCK))[NODE_EXPORTER.name]
    assert outcome.state is State.WITHOUT
    assert "CLIFFWATCH_NODE_EXPORTER_PORT" in outcome.reason


def test_a_token_is_kept_and_one_that_was_lost_is_revoked(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    path = token_path(machine.settings, PROMETHEUS)

    def token() -> str:
        start_stack(machine.settings, CLOCK)
        return path.read_text().strip()

    first = token()
    assert token() == first
    path.unlink()
    second = token()
    database = open_database(machine.settings.database_url)
    with database.snapshot() as session:
        assert find_token(session, first) is None
        known = find_token(session, second)
        assert known is not None
        assert known.scope == "read"
    database.close()


def test_a_run_records_each_change_once_and_not_after_its_end(tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    assert [event.name for event in record_changes(directory, {"a": "", "b": "it is gone"}, 1.0)] == [WATCHERS_NOTE]
    assert record_changes(directory, {"a": "", "b": "it is gone"}, 2.0) == []
    changes = record_changes(directory, {"a": "it hangs", "b": "", "c": ""}, 3.0)
    assert [(event.name, event.detail["watcher"]) for event in changes] == [
        ("watcher_down", "a"),
        ("watcher_back", "b"),
        ("watcher_back", "c"),
    ]
    assert changes[0].detail["reason"] == "it hangs"
    assert record_changes(directory, {"a": "still", "b": "", "c": ""}, 4.0) == []
    change_state(EventLog(directory), RunState.FINISHED, 5.0, {"verdict": "stopped"})
    assert record_changes(directory, {"a": ""}, 6.0) == []
    assert JournalReader(directory).faults == []
    with pytest.raises(FileNotFoundError):
        record_changes(tmp_path / "gone", {"a": ""}, 7.0)


def test_the_drive_exporter_is_scraped_where_there_are_drives(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the machine has one decides whether it is started; what it reports of drives has tests of its own."""
    monkeypatch.setattr(components, "find_controllers", lambda: [Controller("nvme0", "nvme0n1", "ONE")])
    outcome = by_name(start_stack(machine.settings, CLOCK))[DRIVE_EXPORTER.name]
    assert outcome.state is State.STARTED, outcome.reason
    found = wait_until(lambda: machine.query('up{job="drive"} == 1'), "a scrape of the drive exporter")
    assert found[0]["metric"]["instance"] == "local"
    assert machine.query("cliffwatch_drive_exporter_commands_total")


def test_a_machine_without_drives_runs_nothing_to_ask_them(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "find_controllers", list)
    outcome = by_name(start_stack(machine.settings, CLOCK))[DRIVE_EXPORTER.name]
    assert (outcome.state, outcome.reason) == (State.WITHOUT, "this machine has no NVMe drive")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("sample limit exceeded", "more samples than the sample_limit"),
        ("body size limit exceeded", "larger than the body_size_limit"),
        ("received unsupported Content-Type", "no Content-Type that Prometheus can read"),
        ("server returned HTTP status 500", "Prometheus cannot scrape it (server returned HTTP status 500)"),
    ],
)
def test_a_scrape_refused_by_prometheus_is_explained_by_its_cause(said: str, words: str) -> None:
    assert words in refusal_words(said)
    assert said in refusal_words(said)


def test_an_exporter_that_answers_what_prometheus_refuses_is_reported_to_the_run(machine: Machine) -> None:
    assert {outcome.state for outcome in start_stack(machine.settings, CLOCK) if outcome.component is PROMETHEUS}
    configuration = PROMETHEUS.directory(machine.settings) / "prometheus.yaml"
    limited = configuration.read_text().replace("sample_limit: 20000", "sample_limit: 10")
    configuration.write_text(limited)
    reload(machine.settings, PROMETHEUS)
    directory = live_run(machine)

    def reported() -> list[str]:
        watch.tick()
        without = [event.detail.get("without", {}) for event in events_of(directory, EventType.NOTE, WATCHERS_NOTE)]
        down = [event.detail for event in events_of(directory, EventType.NOTE, DOWN_NOTE)]
        return [
            *(reasons[NODE_EXPORTER.name] for reasons in without if NODE_EXPORTER.name in reasons),
            *(detail["reason"] for detail in down if detail["watcher"] == NODE_EXPORTER.name),
        ]

    with watching(machine, 60) as watch:
        [reason] = wait_until(reported, "what Prometheus refuses")
    assert "sample limit exceeded" in reason
