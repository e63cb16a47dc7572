"""The worker's side, in real processes: a run goes on whatever becomes of its telemetry, and records it once."""

from pathlib import Path
from typing import Any

import pytest
from testkit.ports import free_port
from testkit.waiting import wait_until
from testkit.worker_runs import assert_no_window_twice, events, names, queue_run, start_worker, status, window_count
from tests.telemetry import hostile_server
from tests.telemetry.filled_runs import OPERATIONS, counter, make_run, the_one, times
from tests.telemetry.hostile_server import Behaviour, HostileServer
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.app.launcher import request_stop
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import Event, EventType, JournalReader
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.telemetry import collection
from cliffwatch.telemetry.collection import CollectionTask, interval_seconds
from cliffwatch.telemetry.reader import read


class RecordedEvents(list[tuple[str, dict[str, Any]]]):
    """What a task records, instead of a journal."""

    def record_event(self, type_: EventType, name: str, /, **detail: Any) -> None:
        assert type_ is EventType.NOTE
        self.append((name, detail))


def attempt(task: CollectionTask, now: float) -> None:
    """Let the attempt that is due at `now` begin, and end."""
    task.poll(now)
    assert task.is_busy
    wait_until(lambda: not_busy(task, now), "the attempt's end")


def not_busy(task: CollectionTask, now: float) -> bool:
    task.poll(now)
    return not task.is_busy


def test_an_attempt_is_due_every_5_minutes_or_60_windows() -> None:
    by_window = {0.1: 30, 0.5: 30, 1.0: 60, 2.0: 120, 5.0: 300, 10.0: 300, 60.0: 300}
    assert {window: interval_seconds(window) for window in by_window} == by_window


def test_it_is_reported_once_that_telemetry_is_missing_and_once_that_it_is_back(tmp_path: Path) -> None:
    server = PrometheusServer(tmp_path / "prometheus")
    fill(server.data, counter(OPERATIONS, times(360), range(361)))
    directory = make_run(tmp_path / "run-1", 360)
    recorded = RecordedEvents()
    begin = times(0)[0]
    task = CollectionTask(directory, server.url, 10.0, recorded.record_event)
    task.poll(begin)
    assert not task.is_busy
    for number in (1, 2, 3):
        attempt(task, begin + number * 300)
    ((name, detail),) = recorded
    assert (name, "does not answer" in detail["reason"]) == ("telemetry_missing", True)
    earlier = [Event(begin, EventType.NOTE, name, detail)]
    resumed = CollectionTask(directory, server.url, 10.0, recorded.record_event, earlier)
    resumed.poll(begin + 900)
    attempt(resumed, begin + 1200)
    assert len(recorded) == 1, "a new worker does not record again what the last one recorded"
    with server:
        attempt(resumed, begin + 1500)
        attempt(resumed, begin + 1800)
    assert [name for name, _ in recorded] == ["telemetry_missing", "telemetry_resumed"]
    # 5 s are left for what may be on its way.
    assert the_one(read(directory), "operations_total").times[-1] == begin + 1790


def test_an_attempt_that_takes_too_long_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_KILL_AFTER_SECONDS", -59.0)
    directory = make_run(tmp_path / "run-1", 360)
    recorded = RecordedEvents()
    with HostileServer(hostile_server.hang) as server:
        task = CollectionTask(directory, server.url, 10.0, recorded.record_event)
        task.poll(0.0)
        attempt(task, times(30)[-1])
    assert recorded == [
        ("telemetry_missing", {"reason": "the process that asks Prometheus took too long and was killed"})
    ]


def finish(directory: Path) -> None:
    """Start a worker and wait for it; its exit status must be 0."""
    assert start_worker(directory).wait(60) == 0


def assert_the_run_is_whole(directory: Path, windows: int) -> None:
    assert status(directory).state is RunState.FINISHED
    assert status(directory).verdict in {VerdictName.PASS, VerdictName.INVALID}
    assert names(directory, "state") == ["queued", "starting", "running", "reporting", "finished"]
    seqs = [window.seq for window in JournalReader(directory).windows()]
    assert seqs == list(range(len(seqs)))
    assert len(seqs) >= windows - 1, "an engine that starts late on a busy machine misses a window; no more"


def telemetry_notes(directory: Path) -> list[str]:
    """On a busy machine there may be another: that the load was moved to when its engine was there."""
    return [name for name in names(directory, "note") if name.startswith("telemetry_")]


def test_a_run_without_prometheus_reports_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", f"http://127.0.0.1:{free_port()}")
    directory = queue_run(tmp_path / "alone")
    finish(directory)
    assert_the_run_is_whole(directory, 10)
    assert telemetry_notes(directory) == ["telemetry_missing"]


def test_a_run_with_telemetry_turned_off_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", "")
    directory = queue_run(tmp_path / "off")
    finish(directory)
    (note,) = [event for event in events(directory) if event.name.startswith("telemetry_")]
    assert (note.name, note.detail) == ("telemetry_missing", {"reason": "no Prometheus is configured"})
    assert not (directory / "telemetry").exists()


def test_a_run_in_virtual_time_has_no_telemetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLIFFWATCH_PROMETHEUS_URL", raising=False)
    directory = queue_run(tmp_path / "virtual", {"time": "virtual"})
    finish(directory)
    assert telemetry_notes(directory) == []
    assert not (directory / "telemetry").exists()


@pytest.mark.parametrize("behaviour", [hostile_server.hang, hostile_server.drip, hostile_server.drip_head])
def test_a_prometheus_that_hangs_delays_no_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour
) -> None:
    with HostileServer(behaviour) as server:
        monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", server.url)
        directory = queue_run(tmp_path / "hangs")
        finish(directory)
    assert_the_run_is_whole(directory, 10)
    assert telemetry_notes(directory) == ["telemetry_missing"]


def test_a_real_run_takes_home_what_a_real_prometheus_scraped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus is killed in the middle of the load and comes back: the run is whole, and so is what was scraped."""
    server = PrometheusServer(tmp_path / "prometheus")
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", server.url)
    directory = queue_run(tmp_path / "real", window="1s", phases={"soak": "1h"})
    worker = start_worker(directory)
    try:
        wait_until(lambda: Heartbeat.read(directory) is not None, "the worker's heartbeat")
        heartbeat = Heartbeat.read(directory)
        assert heartbeat is not None
        assert heartbeat.metrics_port is not None
        server.scrape("cliffwatch-worker", heartbeat.metrics_port)
        with server:
            scraped = 'count_over_time(cliffwatch_last_window_timestamp_seconds{run_id="real"}[1h]) >= 3'
            wait_until(lambda: server.has(scraped), "a third scrape of the load")
            server.kill()
            windows = window_count(directory)
            wait_until(lambda: window_count(directory) >= windows + 2, "two windows without Prometheus")
            server.start()
            request_stop(directory, force=False)
            assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
    assert_no_window_twice(directory)
    assert status(directory).verdict in {VerdictName.STOPPED, VerdictName.INVALID}
    assert telemetry_notes(directory) == []
    telemetry = read(directory)
    assert telemetry is not None
    assert (telemetry.gaps, telemetry.faults) == ((), ())
    operations = the_one(telemetry, "operations_total")
    assert len(operations.times) >= 3
    assert operations.values[-1] > 0
    assert operations.labels["run_id"] == "real"
    load_stop = list(JournalReader(directory).windows())[-1].end
    assert operations.times[-1] <= load_stop - 1, "what was not scraped is not made up"
