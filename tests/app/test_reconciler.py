"""What the service does for its runs, round by round, with real workers."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from testkit import journals
from testkit.waiting import wait_until
from testkit.worker_runs import names, report, status, window_count
from tests.app.machine import Machine, left_alone

from cliffwatch.app.admission import RunTurns
from cliffwatch.app.indexer import Indexer
from cliffwatch.app.launcher import worker_is_alive
from cliffwatch.base.errors import Problem
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.coordinator.restarts import GIVE_UP_SECONDS, LEAST_WORKERS, LONGEST_PAUSE_SECONDS
from cliffwatch.gate import examine, hold
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, files
from cliffwatch.journal.state import change_state
from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import DirectoryTarget
from cliffwatch.store.models import RunRow


@pytest.mark.gate(why="smoke of the reconciler and a worker")
def test_a_queued_run_is_started_and_indexed_to_its_end(machine: Machine) -> None:
    directory = machine.submit("short", soak="500ms")
    machine.tick_until(directory, RunState.FINISHED)
    assert machine.indexed_state("short") == "finished"
    assert status(directory).verdict is VerdictName.PASS
    with pytest.raises(Problem, match=r"^run short is already finished$"):
        machine.service.stop("short", force=False)


def test_a_worker_that_ends_after_its_run_leaves_no_zombie(machine: Machine) -> None:
    directory = machine.submit("slow-to-end")
    machine.tick_until(directory, RunState.RUNNING)
    worker = machine.reconciler._workers["slow-to-end"]
    for state in (RunState.STOPPING, RunState.REPORTING, RunState.FINISHED):
        change_state(EventLog(directory), state, machine.clock.wall(), {"verdict": VerdictName.STOPPED, "reasons": []})
    worker.send_signal(signal.SIGSTOP)
    machine.reconciler.tick()
    assert machine.indexed_state("slow-to-end") == "finished"
    worker.kill()

    def is_reaped() -> bool:
        machine.reconciler.tick()
        return worker.returncode is not None

    wait_until(is_reaped, "the worker's end")
    assert machine.reconciler._workers == {}


def test_a_worker_whose_place_another_took_before_it_was_gone_is_waited_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = machine.submit("hangs", soak="1s")
    machine.tick_until(directory, RunState.STARTING)
    replaced = machine.reconciler._workers["hangs"]
    # As one that hangs in the kernel, or is about to exit: it counts as dead, and is there.
    monkeypatch.setattr("cliffwatch.app.reconciler._is_killed", lambda pid: pid == replaced.pid)
    monkeypatch.setattr("cliffwatch.app.launcher.worker_is_alive", lambda directory: False)
    replaced.send_signal(signal.SIGSTOP)

    def is_replaced() -> bool:
        machine.reconciler.tick()
        return machine.reconciler._workers["hangs"] is not replaced

    def is_collected() -> bool:
        machine.reconciler.tick()
        return machine.reconciler._replaced == []

    wait_until(is_replaced, "another worker")
    assert machine.reconciler._replaced == [replaced]
    replaced.kill()
    wait_until(is_collected, "the end of the first")
    assert replaced.returncode == -signal.SIGKILL


def test_runs_on_one_target_go_one_after_the_other(machine: Machine) -> None:
    first, second = machine.submit("first", soak="500ms"), machine.submit("second", soak="500ms")
    elsewhere = machine.submit("elsewhere", target="another-drive", soak="500ms")
    machine.reconciler.tick()
    assert (status(first).state, status(second).state) == (RunState.STARTING, RunState.QUEUED)
    assert status(elsewhere).state is RunState.STARTING
    machine.tick_until(second, RunState.STARTING)
    assert status(first).state is RunState.FINISHED
    machine.tick_until(second, RunState.FINISHED)


def test_no_more_runs_are_under_way_than_the_machine_takes(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("reconciler", "runs"):
        monkeypatch.setattr(f"cliffwatch.app.{module}.active_limit", lambda: 2)
    runs = [machine.submit(f"run-{number}", target=f"drive-{number}", soak="500ms") for number in range(3)]
    machine.reconciler.tick()
    assert [status(run).state for run in runs] == [RunState.STARTING, RunState.STARTING, RunState.QUEUED]
    with machine.database.snapshot() as session:
        waiting = session.get_one(RunRow, "run-2")
    assert machine.service.waits_for(waiting) == ["run-0", "run-1"]
    machine.tick_until(runs[2], RunState.FINISHED)


def test_a_restarted_service_adopts_the_living_worker(machine: Machine) -> None:
    directory = machine.submit("adopted")
    machine.tick_until(directory, RunState.RUNNING)
    worker = Heartbeat.read(directory)
    machine.restart()
    machine.reconciler.tick()
    machine.reconciler.tick()
    assert Heartbeat.read(directory) == worker or worker_is_alive(directory)
    assert names(directory, "state") == ["queued", "starting", "running"]
    machine.service.stop("adopted", force=False)
    machine.tick_until(directory, RunState.FINISHED)
    assert status(directory).verdict is VerdictName.STOPPED


def test_a_dead_worker_is_found_after_a_restart_and_its_run_resumed(machine: Machine) -> None:
    directory, _ = left_alone(machine, "resumed", "6s")
    machine.restart()
    machine.tick_until(directory, RunState.FINISHED)
    states = names(directory, "state")
    assert states[:3] == ["queued", "starting", "running"]
    assert states[3:6] == ["interrupted", "starting", "running"]
    assert "worker_interrupted" in names(directory, "gap")


def died(machine: Machine, directory: Path, count: int, windows: int = 0, seconds_apart: float = 0.0) -> None:
    """What the journal says of so many workers that died without a new window, the last of them just now."""
    log, last_at = EventLog(directory), machine.clock.wall()
    for left in reversed(range(count)):
        at = last_at - left * seconds_apart
        if status(directory).state in {RunState.QUEUED, RunState.INTERRUPTED}:
            change_state(log, RunState.STARTING, at)
        change_state(log, RunState.INTERRUPTED, at, {"windows": windows})


def has_died(machine: Machine, directory: Path, times: int) -> bool:
    machine.reconciler.tick()
    return names(directory, "state").count("interrupted") >= times


def test_workers_that_die_at_once_are_replaced_with_growing_pauses(machine: Machine) -> None:
    directory = machine.submit("unlucky", target="broken")
    (directory / files.ORDER).rename(directory / "order.away")
    wait_until(lambda: has_died(machine, directory, 1), "the first worker's death")
    wait_until(lambda: has_died(machine, directory, 2), "the second worker's death, without a pause")
    machine.clock.stand_still()
    machine.clock.passed_seconds += 0.9 - (machine.clock.wall() - status(directory).since)
    machine.reconciler.tick()
    assert status(directory).state is RunState.INTERRUPTED
    machine.clock.passed_seconds += 0.2
    wait_until(lambda: has_died(machine, directory, 3), "the third worker's death, after a pause")
    # The pauses are in the journal, not in the service.
    machine.restart()
    machine.clock.passed_seconds += 1.9 - (machine.clock.wall() - status(directory).since)
    machine.reconciler.tick()
    assert status(directory).state is RunState.INTERRUPTED
    (directory / "order.away").rename(directory / files.ORDER)
    machine.clock.passed_seconds += 0.2
    machine.tick_until(directory, RunState.RUNNING)
    machine.service.stop("unlucky", force=False)
    machine.tick_until(directory, RunState.FINISHED)
    assert status(directory).verdict is VerdictName.STOPPED


def test_a_run_is_given_up_by_time_and_gets_its_report(machine: Machine) -> None:
    patient, hopeless = machine.submit("patient", target="one"), machine.submit("hopeless", target="two")
    for directory, count in ((patient, 20), (hopeless, 40)):
        journals.start(directory, machine.clock.wall())
        journals.measure(directory, 3, machine.clock.wall())
        died(machine, directory, count, windows=3, seconds_apart=LONGEST_PAUSE_SECONDS)
    machine.clock.passed_seconds += LONGEST_PAUSE_SECONDS
    machine.reconciler.tick()
    assert status(patient).state is RunState.STARTING
    assert "load_ended" not in names(patient, "engine")
    machine.tick_until(hopeless, RunState.FINISHED)
    assert status(hopeless).verdict is VerdictName.FAILED
    assert "no worker measured anything for 30m" in status(hopeless).reasons[0]
    assert report(hopeless)["verdict"]["name"] == "failed"
    assert (hopeless / files.REPORT_HTML).exists()


@pytest.mark.parametrize("set_by_seconds", [3600.0, -3600.0], ids=["ahead", "back"])
def test_a_clock_that_is_set_keeps_no_worker_waiting_and_gives_no_run_up(
    machine: Machine, set_by_seconds: float
) -> None:
    directory = machine.submit("unlucky", target="broken")
    (directory / files.ORDER).rename(directory / "order.away")
    died(machine, directory, LEAST_WORKERS)
    machine.reconciler.tick()
    machine.clock.set_by_seconds = set_by_seconds
    machine.reconciler.tick()
    machine.reconciler.tick()
    assert "load_ended" not in names(directory, "engine")
    assert status(directory).state is RunState.INTERRUPTED, "a clock that was set is no pause that was waited"
    machine.clock.passed_seconds += LONGEST_PAUSE_SECONDS
    wait_until(lambda: has_died(machine, directory, LEAST_WORKERS + 1), "the next worker's death, after one pause")
    machine.clock.passed_seconds += GIVE_UP_SECONDS
    machine.tick_until(directory, RunState.FINISHED)
    assert "no worker measured anything for 30m" in status(directory).reasons[0]


def test_a_run_that_is_given_up_leaves_no_engine_files(machine: Machine, tmp_path: Path) -> None:
    place = tmp_path / "target"
    place.mkdir()
    job = {"job": "[w]\nrw=write\nbs=16k\nsize=1m\ndirect=1\nrate_iops=10\n"}
    document = {"version": 1, "name": "given-up", "engine": "fio", "phases": {"soak": "1h"}, "load": job}
    target = {"kind": "directory", "path": str(place)}
    machine.service.submit(RunRequest.model_validate({"workload": document, "target": target}), "test", "given-up")
    directory = machine.runs_directory / "given-up"
    with hold(examine(DirectoryTarget(path=str(place)), "given-up")) as held:
        (held.path / "w.0.0").write_bytes(b"x" * 4096)
    (directory / files.WINDOWS).symlink_to("/proc/self/mem")
    died(machine, directory, 40, windows=-1, seconds_apart=LONGEST_PAUSE_SECONDS)
    machine.tick_until(directory, RunState.FINISHED)
    assert list(place.iterdir()) == []
    assert (directory / files.REPORT_HTML).exists()


def test_a_run_that_cannot_even_be_reported_says_how_it_can_be(machine: Machine) -> None:
    directory = machine.submit("unreported")
    died(machine, directory, LEAST_WORKERS)
    EventLog(directory).append(
        Event(machine.clock.wall(), EventType.ENGINE, "load_ended", {"how": "failed", "message": "", "given_up": True})
    )
    died(machine, directory, LEAST_WORKERS)
    machine.reconciler.tick()
    assert status(directory).verdict is VerdictName.INVALID
    assert "`cliffwatch run report unreported` makes it" in status(directory).reasons[0]


def test_a_stop_that_takes_longer_than_its_grace_is_forced(machine: Machine) -> None:
    directory = machine.submit("stuck", stop_grace="1s")
    machine.tick_until(directory, RunState.RUNNING)
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    # The other way round the worker might be frozen while it holds the lock of its events.
    change_state(EventLog(directory), RunState.STOPPING, 0.0)
    heartbeat.worker.send(signal.SIGSTOP)
    machine.reconciler.tick()
    assert "worker_killed" not in names(directory, "note"), "when the stop was requested is the wall clock's"
    machine.clock.passed_seconds += 60.0
    machine.tick_until(directory, RunState.FINISHED)
    assert "worker_killed" in names(directory, "note")
    assert status(directory).verdict is VerdictName.STOPPED
    assert (directory / files.REPORT_HTML).exists()


def test_a_clock_that_is_set_ahead_forces_no_stop(machine: Machine) -> None:
    directory = machine.submit("stopping", stop_grace="1m")
    machine.tick_until(directory, RunState.RUNNING)
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    heartbeat.worker.send(signal.SIGSTOP)
    change_state(EventLog(directory), RunState.STOPPING, machine.clock.wall())
    machine.reconciler.tick()
    machine.clock.set_by_seconds = 3600.0
    machine.reconciler.tick()
    assert "worker_killed" not in names(directory, "note")
    machine.clock.passed_seconds += 3600.0
    machine.tick_until(directory, RunState.FINISHED)
    assert "worker_killed" in names(directory, "note")


def test_a_stop_by_force_makes_the_report_of_what_there_is(machine: Machine) -> None:
    directory = machine.submit("forced")
    machine.tick_until(directory, RunState.RUNNING)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    machine.service.stop("forced", force=True)
    assert not worker_is_alive(directory)
    machine.tick_until(directory, RunState.FINISHED)
    assert status(directory).verdict is VerdictName.STOPPED
    assert (directory / files.REPORT_HTML).exists()


@pytest.mark.parametrize(
    "name", ["worker.lock", "worker.json", "worker.log", "order.json", "facts.json", "windows.jsonl", "events.jsonl"]
)
def test_a_fifo_in_a_journal_does_not_keep_the_others_waiting(machine: Machine, name: str) -> None:
    spoilt = machine.submit("a-spoilt", target="one")
    healthy = machine.submit("b-healthy", target="two", soak="300ms")
    (spoilt / name).unlink(missing_ok=True)
    os.mkfifo(spoilt / name)
    machine.tick_until(healthy, RunState.FINISHED)
    machine.restart()
    Indexer(machine.database, machine.runs_directory, RunTurns(), machine.clock).index_first()
    machine.reconciler.tick()


@pytest.mark.parametrize("damage", ["noise", "an event without its detail"])
def test_one_damaged_journal_does_not_keep_the_others_waiting(machine: Machine, damage: str) -> None:
    damaged = machine.submit("a-damaged", target="one")
    healthy = machine.submit("b-healthy", target="two", soak="300ms")
    if damage == "noise":
        (damaged / files.EVENTS).write_bytes(b"\x00" * 100 + b"\n")
    else:
        EventLog(damaged).append(Event(1.0, EventType.STATE, RunState.RUNNING.value))
    machine.tick_until(healthy, RunState.FINISHED)


def test_an_event_of_a_newer_version_keeps_no_run_from_its_end(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    directory = machine.submit("newer", soak="1s")
    machine.tick_until(directory, RunState.RUNNING)
    EventLog(directory).append(Event(time.time(), EventType.STATE, "archived"))
    machine.tick_until(directory, RunState.FINISHED)
    assert status(directory).verdict is VerdictName.PASS
    said = [record.getMessage() for record in caplog.records if "archived" in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("run newer: the state event 'archived' cannot be followed: ")
    document = json.loads((directory / files.REPORT_JSON).read_text())
    assert any("'archived' cannot be followed" in json.dumps(fault) for fault in document["journal_faults"])


def test_a_worker_that_cannot_run_the_workload_leaves_the_reason_in_the_journal(machine: Machine) -> None:
    directory = machine.submit("unreadable")
    order = json.loads((directory / files.ORDER).read_text())
    order["workload"]["window"] = "sometimes"
    (directory / files.ORDER).write_text(json.dumps(order))
    machine.tick_until(directory, RunState.INTERRUPTED)
    events = (stored.event for stored in JournalReader(directory).events())
    reason = next(event.detail["reason"] for event in events if event.name == RunState.INTERRUPTED.value)
    assert reason.startswith("the worker died; its log ends with: the run in ")
    assert "'sometimes' is not a duration" in reason


@pytest.mark.parametrize("restarted", [False, True], ids=["seen before", "after a restart"])
def test_a_run_whose_events_say_nothing_any_more_is_ended(machine: Machine, restarted: bool) -> None:
    directory, heartbeat = left_alone(machine, "erased", "1h")
    events = directory / files.EVENTS
    events.write_bytes(b"\xff" * events.stat().st_size + b"\n")
    if restarted:
        machine.restart()
    machine.reconciler.tick()
    found = status(directory)
    assert (found.state, found.verdict) == (RunState.FINISHED, VerdictName.INVALID)
    assert "no state left that can be read" in found.reasons[0]
    assert "`cliffwatch run report erased` makes it" in found.reasons[0]
    assert machine.indexed_state("erased") == "finished"
    assert [process for process in (heartbeat.engine,) if process is not None and process.is_alive()] == []
