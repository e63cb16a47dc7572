"""A ten-minute run through the service against three brokers, one of which is killed in the middle and restarted.

Figures are faults that must not happen (records lost, repeated, reordered, corrupted, given up) and effects that must
show: the outage among the run's events, and latencies as long as records waited.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure
from testkit.kafka_broker import Cluster, start_cluster
from testkit.service import Service
from testkit.waiting import wait_until
from testkit.worker_runs import window_count

from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.model.run_state import RunState
from cliffwatch.report.build import build

PARTITIONS, RATE = 288, 2000
#: The outage fills several windows, so that it differs from a momentary disturbance.
WINDOW_SECONDS = 2
#: Brokers that have just started are slow, which must not be in the baseline.
WARM_UP_SECONDS, BASELINE_SECONDS, SOAK_SECONDS = 60, 120, 420
#: Seconds of load before one broker is killed, and how long it stays down.
KILL_AFTER_SECONDS, AWAY_SECONDS = 300, 60
KILLED_WINDOW = KILL_AFTER_SECONDS // WINDOW_SECONDS
#: Time besides the load: topics are made before it; after it the run drains, deletes them and writes its report.
PATIENCE_SECONDS = 180
FAULTS = ("lost", "duplicated", "reordered", "corrupted", "unacknowledged", "unsent", "partitions_not_drained")
OUTAGE_EVENTS = ("disconnected", "leader_changed", "connection_failed", "reconnected")


def order(cluster: Cluster) -> dict[str, Any]:
    load = {
        "topics": {
            "partitions": PARTITIONS,
            "replication_factor": 3,
            "settings": {"min.insync.replicas": "2"},
        },
        "producer": {"producers": 2, "rate": RATE, "record_size": "1KiB", "acks": "all"},
        "consumer": {"consumers": 2},
        "drain_timeout": "60s",
    }
    workload = {
        "version": 1,
        "name": "kafka-outage",
        "engine": "kafka",
        "window": f"{WINDOW_SECONDS}s",
        "phases": {
            "warm_up": f"{WARM_UP_SECONDS}s",
            "baseline": f"{BASELINE_SECONDS}s",
            "soak": f"{SOAK_SECONDS}s",
        },
        "load": load,
    }
    servers = cluster.bootstrap.split(",")
    return {"workload": workload, "target": {"kind": "broker", "bootstrap_servers": servers}}


def longest_seconds(windows: list[JournalWindow], name: str) -> float:
    return max(window.latency.get(name, {}).get("max") or 0.0 for window in windows)


def execute_run(service: Service, cluster: Cluster) -> Path:
    """Execute the run, with the outage in its middle; returns its journal once it has ended."""
    answer = service.client.put("/api/v1/runs/outage", json=order(cluster))
    answer.raise_for_status()
    journal = Path(answer.json()["directory"])
    wait_until(lambda: window_count(journal) >= KILLED_WINDOW, "half of the run", KILL_AFTER_SECONDS + PATIENCE_SECONDS)
    victim = cluster.nodes[1]
    victim.kill()
    print(f"# broker {victim.node_id} killed after {window_count(journal)} windows", flush=True)
    time.sleep(AWAY_SECONDS)
    victim.start()
    victim.wait_ready()
    print(f"# broker {victim.node_id} is back after {window_count(journal)} windows", flush=True)
    rest = WARM_UP_SECONDS + BASELINE_SECONDS + SOAK_SECONDS - KILL_AFTER_SECONDS - AWAY_SECONDS + PATIENCE_SECONDS
    wait_until(
        lambda: service.client.get("/api/v1/runs/outage").json()["state"] == RunState.FINISHED,
        "the end",
        rest + PATIENCE_SECONDS,
    )
    return journal


def figures() -> list[Figure]:
    base = Path(tempfile.mkdtemp(prefix="cliffwatch-outage-", dir="/var/tmp"))
    cluster = start_cluster(base / "brokers", nodes=3)
    try:
        with Service(base / "state") as service:
            found = judge(execute_run(service, cluster))
    finally:
        cluster.stop()
        shutil.rmtree(base)
    return found


def judge(journal: Path) -> list[Figure]:
    reader = JournalReader(journal)
    windows = list(reader.windows())
    stored = [stored.event for stored in reader.events()]
    names = [event.name for event in stored]
    proof = next(event.detail for event in stored if event.name == "verification")
    document = build(journal).document
    healthy = windows[WARM_UP_SECONDS // WINDOW_SECONDS : KILLED_WINDOW]
    outage = windows[KILLED_WINDOW : KILLED_WINDOW + AWAY_SECONDS // WINDOW_SECONDS]
    reported = {event["name"] for event in document["events"]}
    for finding in document["findings"]:
        print(f"# found: {finding['sentence']}")
    print(f"# verdict {document['verdict']['name']}; {len(windows)} windows; records {proof}")
    for name in ("publish", "end_to_end"):
        before, during = longest_seconds(healthy, name), longest_seconds(outage, name)
        print(f"# {name}: longest before the outage {before:.3f} s, in it {during:.3f} s")
    counters = ("retries", "disconnects", "reconnects", "leader_changes", "broker_errors", "throttle_milliseconds")
    print("#", {name: sum(int(window.counters[name]) for window in windows) for name in counters})
    faults = sum(int(proof[name]) for name in FAULTS)
    expected = RATE * (WARM_UP_SECONDS + BASELINE_SECONDS + SOAK_SECONDS)
    longest = longest_seconds(outage, "publish")
    return [
        Figure("kafka-outage: acknowledged records lost", float(proof["lost"]), "", 0),
        Figure("kafka-outage: faults of any kind", float(faults), "", 0),
        Figure("kafka-outage: records that were due and are not acknowledged", expected - proof["acknowledged"], "", 0),
        Figure("kafka-outage: acknowledged and not in the log", proof["acknowledged"] - proof["in_log"], "", 0),
        Figure("kafka-outage: kinds of outage events in the run", len(set(OUTAGE_EVENTS) & set(names)), "", 3, True),
        Figure("kafka-outage: of them on the report's time line", len(set(OUTAGE_EVENTS) & reported), "", 3, True),
        Figure("kafka-outage: longest publish in the outage", longest, "s", 1, at_least=True),
    ]
