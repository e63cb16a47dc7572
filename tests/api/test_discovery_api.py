"""What Prometheus is given to scrape."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from testkit import journals
from tests.api.harness import Api

from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import files


def live(api: Api, run_id: str, port: int | None = None, **workload: Any) -> Path:
    """The journal of a run whose worker is this very process."""
    directory = journals.queue(api.settings.runs_directory, run_id, workload=journals.synthetic_workload(**workload))
    journals.start(directory)
    process = ProcessIdentity.of(os.getpid())
    assert process is not None
    Heartbeat(1.0, process, port).write(directory)
    api.index(run_id)
    return directory


def found(api: Api, what: str) -> list[dict[str, Any]]:
    response = api.get(f"/discovery/{what}")
    assert response.headers["content-type"] == "application/json"
    groups: list[dict[str, Any]] = response.json()
    return groups


def test_workers_are_found_at_their_ports_as_often_as_their_windows_need(api: Api) -> None:
    live(api, "quick", 4001, window="500ms")
    live(api, "slow", 4002, window="60s", phases={"soak": "1h"})
    assert found(api, "workers") == [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {
                "job": "cliffwatch-worker",
                "run_id": run_id,
                "__scrape_interval__": interval,
                "__scrape_timeout__": interval,
            },
        }
        for run_id, port, interval in (("quick", 4001, "1s"), ("slow", 4002, "10s"))
    ]


def test_queued_finished_dead_portless_and_damaged_runs_are_not_discovered(api: Api) -> None:
    journals.queue(api.settings.runs_directory, "waiting")
    api.index("waiting")
    live(api, "portless", None)
    journals.finish(live(api, "finished", 4001))
    api.index("finished")
    dead = live(api, "dead", 4002)
    heartbeat = Heartbeat.read(dead)
    assert heartbeat is not None
    # Its pid, and so its port, belongs to another process by now.
    replace(heartbeat, worker=replace(heartbeat.worker, start_ticks=1)).write(dead)
    damaged = live(api, "damaged", 4003)
    (damaged / files.ORDER).write_text("{")
    assert found(api, "workers") == []


def test_scrape_targets_of_workloads_are_listed_once_while_their_runs_are_live(api: Api) -> None:
    broker = {"job": "broker", "targets": ["a.example.org:1", "b.example.org:1"], "path": "/public_metrics"}
    live(api, "one", scrape=[broker], window="5s")
    two = live(api, "two", scrape=[broker | {"targets": ["b.example.org:1"]}, {"job": "zoo", "targets": ["z:2"]}])

    def group(job: str, target: str, path: str, interval: str) -> dict[str, Any]:
        labels = {"__metrics_path__": path, "__scrape_interval__": interval, "__scrape_timeout__": interval}
        return {"targets": [target], "labels": {"job": job, **labels}}

    both = found(api, "targets")
    assert both == [
        group("broker", "a.example.org:1", "/public_metrics", "5s"),
        group("broker", "b.example.org:1", "/public_metrics", "1s"),
        group("zoo", "z:2", "/metrics", "1s"),
    ]
    journals.finish(two)
    api.index("two")
    assert found(api, "targets") == [group("broker", f"{host}.example.org:1", "/public_metrics", "5s") for host in "ab"]
