"""Runs of the Kafka engine, executed by a real worker against real brokers: what is acknowledged is there at the
end, and an outage is on the time line and in the latencies."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from testkit.kafka_broker import Cluster
from testkit.slow_programs import path_with_slow
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

from cliffwatch.app.launcher import request_stop
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import Event, JournalReader
from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.target import BrokerTarget
from cliffwatch.report.build import build

PARTITIONS, RATE = 24, 2000
WORKER_PATIENCE_SECONDS = 240
#: More than a window of a second and not a whole number of them; a run is planned half a second ahead.
LATE_SECONDS = 2.4
FROZEN_SECONDS = 20.0


def load(replicas: int, partitions: int = PARTITIONS) -> dict[str, Any]:
    return {
        "topics": {"partitions": partitions, "replication_factor": replicas, "settings": {"min.insync.replicas": "1"}},
        "producer": {"producers": 2, "rate": RATE, "record_size": "1KiB", "acks": "all", "linger": "5ms"},
        "consumer": {"consumers": 2},
        "drain_timeout": "60s",
    }


def queue(directory: Path, cluster: Cluster, body: dict[str, Any], soak: str) -> Path:
    target = BrokerTarget(bootstrap_servers=cluster.bootstrap.split(","), data_directories=[str(cluster.directory)])
    phases = {"baseline": "5s", "soak": soak}
    return queue_run(directory, body, target, engine="kafka", window="1s", phases=phases)


def verification(directory: Path) -> Event:
    return next(event for event in events(directory) if event.name == "verification")


def test_a_run_measures_proves_and_leaves_no_topic(tmp_path: Path, broker: Cluster) -> None:
    before = broker.topics()
    journal = queue(tmp_path / "one-broker", broker, load(1), "15s")
    finished = execute_run(journal)
    assert finished.verdict is VerdictName.PASS, finished.reasons
    windows = list(JournalReader(journal).windows())
    assert {"publish", "publish_service", "end_to_end"} <= set(windows[10].latency)
    produced = sum(window.counters["produced_records"] for window in windows)
    assert produced == pytest.approx(RATE * 20, rel=0.01)
    found = verification(journal).detail
    assert (found["lost"], found["duplicated"], found["reordered"], found["corrupted"]) == (0, 0, 0, 0)
    assert found["acknowledged"] == found["in_log"]
    # The drives below the broker's data are watched, though the run writes nothing there itself.
    assert sum(window.counters["device_written_bytes"] for window in windows) > 0
    assert broker.topics() == before


def test_topics_that_exist_are_used_and_left(tmp_path: Path, broker: Cluster) -> None:
    broker.create_topic("orders", 4)
    try:
        body = load(1) | {"topics": {"existing": ["orders"]}}
        assert execute_run(queue(tmp_path / "existing", broker, body, "5s")).verdict is VerdictName.PASS
        assert "orders" in broker.topics()
        assert sum(broker.end_offsets("orders").values()) == pytest.approx(RATE * 10, rel=0.01)
    finally:
        broker.delete_topic("orders")


def test_a_load_that_is_late_begins_on_a_later_line_and_lasts_as_long(
    tmp_path: Path, broker: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path_with_slow("setpriv", LATE_SECONDS, tmp_path))
    journal = queue(tmp_path / "late", broker, load(1), "5s")
    assert execute_run(journal).verdict is VerdictName.PASS
    assert "load_moved" in names(journal, "note")
    assert names(journal, "gap") == []
    windows = list(JournalReader(journal).windows())
    assert len(windows) == 10
    assert sum(window.counters["produced_records"] for window in windows) == pytest.approx(RATE * 10, rel=0.01)


def frozen_processes(journal: Path, together: bool) -> list[ProcessIdentity]:
    """The engine, and with `together` its part and worker, as a container that is paused has them all.

    The engine is first: a part that runs before its engine does sees that engine stopped, and says so.
    """
    wait_until(lambda: window_count(journal) >= 2, "a second window")
    heartbeat = Heartbeat.read(journal)
    assert heartbeat is not None
    assert len(heartbeat.engines) == len(heartbeat.parts) == 1
    return [*heartbeat.engines, *heartbeat.parts, heartbeat.worker] if together else [*heartbeat.engines]


@pytest.mark.real(why="brokers give up a client that is silent for long; test_freezes.py has short freezes")
def test_a_freeze_of_the_engine_or_of_engine_and_worker_is_a_gap_and_loses_nothing(
    tmp_path: Path, broker: Cluster
) -> None:
    """Both at once, since most of it is waiting."""
    journals = {
        together: queue(tmp_path / ("together" if together else "engine"), broker, load(1, 4), "30s")
        for together in (False, True)
    }
    workers = {together: start_worker(journal) for together, journal in journals.items()}
    frozen = [process for together, journal in journals.items() for process in frozen_processes(journal, together)]
    try:
        begun = time.monotonic()
        for process in frozen:
            process.send(signal.SIGSTOP)
        wait_until(lambda: time.monotonic() - begun >= FROZEN_SECONDS, "the end of the freeze")
    finally:
        for process in frozen:
            process.send(signal.SIGCONT)
    frozen_seconds = time.monotonic() - begun
    assert {together: worker.wait(WORKER_PATIENCE_SECONDS) for together, worker in workers.items()} == {
        False: 0,
        True: 0,
    }
    for together, journal in journals.items():
        assert_no_window_twice(journal)
        assert all(window.end - window.start < 1.5 for window in JournalReader(journal).windows())
        name = "worker_frozen" if together else "engine_frozen"
        gaps = [event for event in events(journal) if event.type == "gap" and event.name.endswith("_frozen")]
        assert {gap.name for gap in gaps} == {name}
        assert sum(gap.detail["seconds"] for gap in gaps) == pytest.approx(frozen_seconds, abs=2.0)
        assert ("frozen" in names(journal, "engine")) is not together
        finished, coverage = status(journal), report(journal)["coverage"]
        assert finished.verdict is VerdictName.INVALID
        assert any("of the requested time was measured" in reason for reason in finished.reasons), finished.reasons
        assert coverage["asked_seconds"] - coverage["measured_seconds"] >= frozen_seconds - 1.0
        found = verification(journal).detail
        assert (found["lost"], found["reordered"], found["corrupted"]) == (0, 0, 0)


def test_brokers_that_are_not_there_end_the_run_with_their_address(tmp_path: Path) -> None:
    target = BrokerTarget(bootstrap_servers=["127.0.0.1:1"])
    journal = queue_run(tmp_path / "unreachable", load(1), target, engine="kafka", window="1s", phases={"soak": "5s"})
    finished = execute_run(journal)
    assert finished.verdict is VerdictName.FAILED
    assert any("127.0.0.1:1" in reason for reason in finished.reasons), finished.reasons


@pytest.mark.real(why="a broker has to be given up and to come back; test_kafka_cluster.py has the engine alone")
def test_a_broker_that_dies_and_comes_back_loses_nothing_and_is_on_the_time_line(
    tmp_path: Path, three_brokers: Cluster
) -> None:
    body = load(3)
    body["topics"]["settings"] = {"min.insync.replicas": "2"}
    journal = queue(tmp_path / "outlived", three_brokers, body, "1h")
    worker = start_worker(journal)
    try:
        wait_until(lambda: window_count(journal) >= 12, "the first windows of the soak")
        killed = three_brokers.nodes[1]
        killed.kill()
        wait_until(lambda: window_count(journal) >= 24, "windows without the broker")
        killed.start()
        killed.wait_ready()
        back = window_count(journal)
        wait_until(lambda: window_count(journal) >= back + 12, "windows with the broker")
        request_stop(journal, False)
        assert worker.wait(WORKER_PATIENCE_SECONDS) == 0
    finally:
        worker.kill()
    found = verification(journal).detail
    assert (found["lost"], found["duplicated"], found["reordered"], found["corrupted"]) == (0, 0, 0, 0)
    assert found["partitions_not_drained"] == 0
    recorded = names(journal, "engine")
    assert "leader_changed" in recorded
    assert {"disconnected", "connection_failed"} & set(recorded)
    windows = list(JournalReader(journal).windows())
    assert sum(window.counters["leader_changes"] for window in windows) > 0
    # What was due while the broker was away waited for the new leaders, and says so.
    longest = max(window.latency.get("publish", {}).get("max") or 0 for window in windows)
    healthy = max(window.latency.get("publish", {}).get("max") or 0 for window in windows[5:11])
    assert longest > 2 * healthy
    assert status(journal).verdict is not VerdictName.FAILED
    document = build(journal).document
    assert any(event["name"] == "leader_changed" for event in document["events"])
