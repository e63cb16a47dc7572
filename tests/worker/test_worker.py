"""What a worker does with a run, from its start to its report, in real processes."""

import math
import shutil
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from testkit.storage_engine import SMALL
from testkit.waiting import wait_until
from testkit.worker_runs import (
    assert_no_window_twice,
    events,
    execute_run,
    names,
    queue_run,
    report,
    start_worker,
    status,
    window_count,
)

from cliffwatch.app.launcher import request_stop, worker_is_alive
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import EventLog, JournalReader
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import DirectoryTarget, SyntheticTarget

FIO = {"job": "[w]\nrw=write\nbs=16k\nsize=16m\ndirect=1\nrate_iops=100\n"}


def test_a_run_goes_through_its_phases_to_a_verdict(tmp_path: Path) -> None:
    phases = {"warm_up": "300ms", "baseline": "400ms", "soak": "600ms", "cool_down": "100ms"}
    directory = queue_run(tmp_path / "whole", phases=phases)
    finished = execute_run(directory)
    assert finished.state is RunState.FINISHED
    assert finished.verdict is VerdictName.PASS
    assert names(directory, "state") == ["queued", "starting", "running", "reporting", "finished"]
    # A load that was moved because its engine came late records its first phase again.
    phases_reported = list(dict.fromkeys(names(directory, "phase")))
    assert phases_reported == ["prepare", "warm_up", "baseline", "soak", "cool_down"]
    windows = list(JournalReader(directory).windows())
    assert [window.phase for window in windows] == ["warm_up"] * 3 + ["baseline"] * 4 + ["soak"] * 6
    assert names(directory, "gap") == []
    assert report(directory)["verdict"]["name"] == "pass"
    assert (directory / "report.html").stat().st_size > 1000


def test_windows_lie_on_the_grid_of_the_wall_clock(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "grid", window="200ms")
    execute_run(directory)
    for window in JournalReader(directory).windows():
        assert window.start / 0.2 == pytest.approx(round(window.start / 0.2), abs=1e-4)
        assert window.end - window.start == pytest.approx(0.2)


def test_thirty_six_hours_pass_in_virtual_time(tmp_path: Path) -> None:
    directory = queue_run(
        tmp_path / "virtual",
        {"time": "virtual", "cliff_after": "12h"},
        window="60s",
        phases={"warm_up": "1h", "baseline": "1h", "soak": "34h"},
    )
    finished = execute_run(directory)
    assert finished.verdict is VerdictName.DEGRADED
    windows = list(JournalReader(directory).windows())
    assert len(windows) == 36 * 60
    before, after = (windows[index].latency["publish"]["p50"] for index in (11 * 60, 13 * 60))
    assert before is not None
    assert after is not None
    assert after / before > 50
    assert report(directory)["coverage"]["ratio"] == 1.0


def test_an_engine_that_dies_is_started_again_and_the_pause_is_a_gap(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "dies", {"fail_after_windows": 10}, phases={"soak": "4s"}, engine_restarts=5)
    finished = execute_run(directory)
    assert finished.state is RunState.FINISHED
    assert finished.verdict is VerdictName.INVALID
    assert "died" in names(directory, "engine")
    gaps = [event for event in events(directory) if event.type == "gap" and event.name == "engine_restarted"]
    assert gaps
    # What is left of the load after the last one may be less than the pause.
    assert all(gap.detail["seconds"] >= 1 or gap.detail["end"] == finished.load_stop for gap in gaps)
    assert_no_window_twice(directory)
    coverage = report(directory)["coverage"]
    assert coverage["ratio"] < 0.99
    assert coverage["measured_seconds"] == pytest.approx(window_count(directory) * 0.1)


def test_an_engine_that_keeps_dying_fails_the_run(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "keeps-dying", {"fail_after_windows": 1}, phases={"soak": "1h"}, engine_restarts=1)
    finished = execute_run(directory)
    assert finished.verdict is VerdictName.FAILED
    assert "the engine died 2 times; the last time: " in finished.reasons[0]
    assert window_count(directory) == 2
    assert report(directory)["verdict"]["name"] == "failed"


def test_a_stop_lets_the_window_end_and_makes_the_report(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "stopped", phases={"soak": "1h"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    request_stop(directory, force=False)
    assert worker.wait(60) == 0
    assert status(directory).verdict is VerdictName.STOPPED
    assert names(directory, "state")[-3:] == ["stopping", "reporting", "finished"]
    assert report(directory)["verdict"]["name"] == "stopped"
    assert report(directory)["coverage"]["ratio"] > 0.5


def test_a_signal_without_a_stop_interrupts_and_a_new_worker_resumes(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "resumed", phases={"soak": "10s"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    assert status(directory).state is RunState.INTERRUPTED
    measured = window_count(directory)
    change_state(EventLog(directory), RunState.STARTING, status(directory).since)
    finished = execute_run(directory)
    assert finished.state is RunState.FINISHED
    assert window_count(directory) > measured
    assert_no_window_twice(directory)
    assert finished.load_stop == pytest.approx((finished.load_start or 0) + 10)
    last = JournalReader(directory).last_window()
    assert last is not None
    assert last.end == pytest.approx(finished.load_stop or 0)


@pytest.mark.parametrize(
    ("engine", "load"), [("synthetic", {}), ("fio", FIO), ("storage", SMALL)], ids=["synthetic", "fio", "storage"]
)
def test_a_clock_that_was_set_back_holds_up_neither_a_new_worker_nor_its_engine(
    tmp_path: Path, engine: str, load: dict[str, Any]
) -> None:
    """The run's time goes on from where it was, and the engine has it from its worker."""
    place = tmp_path / "target"
    place.mkdir()
    target = SyntheticTarget(name="x") if engine == "synthetic" else DirectoryTarget(path=str(place))
    directory = queue_run(tmp_path / "set-back", load, target, engine=engine, window="500ms", phases={"soak": "10s"})
    begin, log = float(round(time.time()) + 3600), EventLog(directory)
    change_state(log, RunState.RUNNING, begin, {"load_start": begin, "load_stop": begin + 10})
    change_state(log, RunState.INTERRUPTED, begin)
    change_state(log, RunState.STARTING, begin)
    finished = execute_run(directory)
    assert (finished.load_start, finished.load_stop) == (begin, begin + 10)
    # The time in which the worker and its engine start counts, which is seconds on a busy machine.
    assert window_count(directory) >= 3
    assert all(begin <= window.start < window.end <= begin + 10.1 for window in JournalReader(directory).windows())


def test_a_journal_that_cannot_be_reached_by_its_name_for_a_while_gets_all_its_windows(tmp_path: Path) -> None:
    phases = {"warm_up": "5s", "soak": "5s", "cool_down": "0s"}
    directory = queue_run(tmp_path / "run", {"time": "real"}, window="1s", phases=phases)
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "the second window")
    away = directory.rename(tmp_path / "away")
    try:
        # Over several heartbeats, a phase's event, and the end of the load.
        wait_until(lambda: window_count(away) >= 10, "the last window")
        ends = time.monotonic() + 2.0
        wait_until(lambda: time.monotonic() >= ends, "the end of the load")
    finally:
        away.rename(directory)
    assert worker.wait(60) == 0
    assert {"warm_up", "soak", "cool_down"} <= set(names(directory, "phase"))
    assert names(directory, "gap") == []
    assert names(directory, "engine").count("started") == 1
    assert status(directory).verdict is VerdictName.PASS


def test_a_worker_whose_journal_was_removed_ends_with_its_engine(tmp_path: Path) -> None:
    """What it measures will not be read, and the load must not go on for hours unseen."""
    directory = queue_run(tmp_path / "run", {"time": "real"}, window="1s", phases={"soak": "10m"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "the second window")
    beat = Heartbeat.read(directory)
    assert beat is not None
    engine = beat.engine
    assert engine is not None
    shutil.rmtree(directory)
    assert worker.wait(30) != 0
    wait_until(lambda: not engine.is_alive(), "the end of the engine")


def test_a_load_that_was_complete_is_not_stopped_by_a_kill_after_it(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "run", phases={"soak": "1s", "cool_down": "10m"})
    worker = start_worker(directory)
    wait_until(lambda: "cool_down" in names(directory, "phase"), "the end of the load")
    request_stop(directory, True)
    assert worker.wait(60) == -signal.SIGKILL
    change_state(EventLog(directory), RunState.INTERRUPTED, status(directory).since)
    change_state(EventLog(directory), RunState.STARTING, status(directory).since)
    execute_run(directory)
    assert status(directory).verdict is VerdictName.PASS


@pytest.mark.parametrize("victim", ["worker", "engine"])
def test_a_kill_loses_no_committed_window(tmp_path: Path, victim: str) -> None:
    directory = queue_run(tmp_path / f"killed-{victim}", phases={"soak": "10s"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 3, "a third window")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    assert heartbeat.engine is not None
    (heartbeat.worker if victim == "worker" else heartbeat.engine).send(signal.SIGKILL)
    before = [window.to_line() for window in JournalReader(directory).windows()]
    if victim == "worker":
        assert worker.wait(60) == -signal.SIGKILL
        engine = heartbeat.engine
        wait_until(lambda: not engine.is_alive(), "the engine's death with its worker")
        assert not worker_is_alive(directory)
        change_state(EventLog(directory), RunState.INTERRUPTED, status(directory).since)
        change_state(EventLog(directory), RunState.STARTING, status(directory).since)
        execute_run(directory)
    else:
        assert worker.wait(60) == 0
    after = [window.to_line() for window in JournalReader(directory).windows()]
    assert after[: len(before)] == before
    assert_no_window_twice(directory)
    assert status(directory).state is RunState.FINISHED
    reason = "worker_interrupted" if victim == "worker" else "engine_restarted"
    assert reason in names(directory, "gap")


def test_a_workload_may_say_to_end_when_its_worker_dies(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "ends", phases={"soak": "1h"}, on_interruption="end")
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    worker.kill()
    worker.wait(60)
    change_state(EventLog(directory), RunState.INTERRUPTED, status(directory).since)
    change_state(EventLog(directory), RunState.STARTING, status(directory).since)
    finished = execute_run(directory)
    assert finished.verdict is VerdictName.FAILED
    assert report(directory)["verdict"]["name"] == "failed"


def test_a_run_that_comes_back_too_late_for_a_window_has_no_engine_that_died(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "late", window="60s", phases={"soak": "60s"}, engine_restarts=0)
    now = time.time()
    load_stop = min(now + 5, math.ceil(now / 60) * 60)
    log = EventLog(directory)
    change_state(log, RunState.RUNNING, now, {"load_start": load_stop - 60, "load_stop": load_stop})
    change_state(log, RunState.INTERRUPTED, now)
    change_state(log, RunState.STARTING, now)
    finished = execute_run(directory)
    assert "No window was measured" in finished.reasons[0]
    assert "died" not in names(directory, "engine")
    ended = next(event for event in events(directory) if event.name == "load_ended")
    assert ended.detail == {"how": "completed", "message": ""}
    assert ended.at >= load_stop


def test_one_run_has_one_worker(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "one", phases={"soak": "1h"})
    first = start_worker(directory)
    wait_until(lambda: worker_is_alive(directory), "the first worker's lock")
    assert start_worker(directory).wait(60) == 4
    wait_until(lambda: window_count(directory) >= 1, "a first window")
    request_stop(directory, force=False)
    assert first.wait(60) == 0


def test_a_worker_shows_its_run_to_prometheus(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "metrics", phases={"soak": "1h"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    with urllib.request.urlopen(f"http://127.0.0.1:{heartbeat.metrics_port}/metrics") as answer:
        text = answer.read().decode()
    request_stop(directory, force=False)
    assert worker.wait(60) == 0
    assert 'cliffwatch_run_info{engine="synthetic",run_id="metrics",target="synthetic:metrics"' in text
    assert 'cliffwatch_run_phase{phase="soak",run_id="metrics"} 1.0' in text
    assert 'cliffwatch_latency_seconds_bucket{le="+Inf",operation="publish",run_id="metrics"}' in text
    assert 'cliffwatch_window_latency_seconds{operation="publish",quantile="0.99",run_id="metrics"}' in text
