"""From a run's own metrics through the real Prometheus and the real Alertmanager to a webhook."""

import json
import time
from collections.abc import Iterator
from datetime import datetime

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from testkit.ports import free_address
from testkit.waiting import wait_until
from tests.alerts.watchers import Site, alertmanager_alerts, get, query, run_alertmanager, run_prometheus

from cliffwatch.coordinator.metrics import RunCollector, RunFileSystem, WorkerFigures
from cliffwatch.part.lines import DriveBelow
from cliffwatch.stack.configuration import alertmanager_configuration, prometheus_configuration

TOKEN = "cw_test_token"


#: What node_exporter says of a host with 4,000 mounts of containers, and one of a drive.
CROWDED = "".join(
    f'node_filesystem_{name}{{device="{device}",fstype="{kind}",mountpoint="{place}"}} 1\n'
    for name in ("avail_bytes", "size_bytes", "free_bytes", "files", "files_free", "readonly", "device_error")
    for device, kind, place in [("/dev/loop7", "ext4", "/srv"), *(("shm", "tmpfs", f"/m/{n}") for n in range(4000))]
)


class Run:
    """A run of 1 s windows as its worker shows it: a window ends at every scrape, unless it is stalled."""

    def __init__(self, phase: str) -> None:
        self.stalled = False
        self.figures = WorkerFigures(
            run_id="drill-1",
            workload="drill",
            engine="fio",
            target="directory:/srv",
            start=time.time(),
            window_seconds=1.0,
            last_window_end=time.time(),
            devices=(DriveBelow("loop7", 128),),
            file_systems=(RunFileSystem("/srv", "target"), RunFileSystem("/", "journal")),
        )
        self.figures.move(phase, 0.0)
        self._registry = CollectorRegistry()
        self._registry.register(RunCollector(self.figures))

    def exposition(self) -> str:
        if not self.stalled:
            self.figures.last_window_end = time.time()
        return generate_latest(self._registry).decode()


class Stack:
    """A service (discovery and webhook), a worker, a node exporter, two foreign targets, and the watchers between."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.began = time.time()
        #: Of the drive; set once what holds its alert back is there.
        self.queue_is_full = False
        self.worker = Site({"/metrics": run.exposition})
        #: Another worker that takes the run over; discovered once `taken_over` is set.
        self.successor = Site({"/metrics": run.exposition})
        self.taken_over = False
        self.node = Site({"/metrics": lambda: self._full_queue() + CROWDED})
        self.pretender = Site({"/metrics": self._pretend})
        self.flood = Site({"/metrics": lambda: "".join(f'flood{{n="{n}"}} 1\n' for n in range(20_001))})
        self.service = Site(
            {
                "/metrics": lambda: "",
                "/api/v1/discovery/workers": lambda: json.dumps(
                    [{"targets": [worker], "labels": {"run_id": run.figures.run_id}} for worker in self.workers()]
                ),
                "/api/v1/discovery/targets": lambda: json.dumps(
                    [{"targets": [self.pretender.address, self.flood.address], "labels": {}}]
                ),
            }
        )
        self.prometheus, self.alertmanager = free_address(), free_address()

    def close(self) -> None:
        for site in (self.worker, self.successor, self.node, self.pretender, self.flood, self.service):
            site.close()

    def workers(self) -> list[str]:
        return [self.worker.address, *([self.successor.address] if self.taken_over else [])]

    def _full_queue(self) -> str:
        """Ten times as full as can be, so that a rate over the first seconds shows it already."""
        if not self.queue_is_full:
            return ""
        return f'node_disk_io_time_weighted_seconds_total{{device="loop7"}} {1280 * (time.time() - self.began)}\n'

    def _pretend(self) -> str:
        return (
            'cliffwatch_run_phase{run_id="drill-1",phase="prepare"} 1\n'
            "up 0\n"
            "run:cliffwatch_run_window_seconds:max 60\n"
            "broker_requests_total 5\n"
        )


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One for all: each test looks at series that no other test moves."""
    tmp_path = tmp_path_factory.mktemp("stack")
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    stack = Stack(Run("warm_up"))
    try:
        for_prometheus = prometheus_configuration(
            service_address=stack.service.address,
            prometheus_address=stack.prometheus,
            alertmanager_address=stack.alertmanager,
            exporters={"node": stack.node.address},
            token_file=token_file,
            scrape_interval_seconds=1.0,
        )
        for_alertmanager = alertmanager_configuration(f"http://{stack.service.address}/api/v1/alerts", token_file)
        with (
            run_alertmanager(tmp_path / "alertmanager", for_alertmanager, stack.alertmanager),
            run_prometheus(tmp_path / "prometheus", for_prometheus, stack.prometheus),
        ):
            yield stack
    finally:
        stack.close()


@pytest.mark.gate(why="smoke of Prometheus and Alertmanager")
def test_alerts_reach_the_service_with_their_run_and_a_warming_drive_is_left_in_peace(stack: Stack) -> None:
    service = stack.service

    def is_held_back() -> bool:
        found = alertmanager_alerts(stack.alertmanager, "CliffwatchQueueDepthSaturated")
        return bool(found) and found[0]["status"]["state"] == "suppressed"

    warming = "CliffwatchRunWarmingUp"
    wait_until(lambda: alertmanager_alerts(stack.alertmanager, warming), "the alert that holds the device's back")
    stack.queue_is_full = True
    wait_until(is_held_back, "the device alert, held back")
    stack.run.stalled = True
    wait_until(lambda: service.alerts("CliffwatchRunStalled", "firing"), "the stalled run's alert")
    path, authorization, body = service.posts[-1]
    assert (path, authorization) == ("/api/v1/alerts", f"Bearer {TOKEN}")
    assert body["version"] == "4"
    (alert,) = service.alerts("CliffwatchRunStalled", "firing")
    assert alert["labels"] == {
        "alertname": "CliffwatchRunStalled",
        "run_id": "drill-1",
        "severity": "critical",
        "layer": "run",
    }
    assert alert["annotations"]["runbook_url"] == "/runbooks/CliffwatchRunStalled"

    stack.run.stalled = False
    wait_until(lambda: service.alerts("CliffwatchRunStalled", "resolved"), "the end of the stalled run's alert")
    assert service.alerts("CliffwatchRunStalled", "resolved")[0]["startsAt"] == alert["startsAt"]
    assert is_held_back()
    assert not service.alerts("CliffwatchQueueDepthSaturated", "firing")
    assert not service.alerts("CliffwatchRunWarmingUp", "firing")
    assert service.alerts("CliffwatchWatchdog", "firing")

    stack.run.figures.move("baseline", 0.2)
    wait_until(lambda: service.alerts("CliffwatchQueueDepthSaturated", "firing"), "the device alert after warm-up")
    labels = service.alerts("CliffwatchQueueDepthSaturated", "firing")[0]["labels"]
    assert (labels["run_id"], labels["device"], labels["instance"]) == ("drill-1", "loop7", "local")


def test_a_host_of_thousands_of_mounts_is_scraped_and_what_is_not_read_of_it_is_not_kept(stack: Stack) -> None:
    wait_until(lambda: query(stack.prometheus, 'up{job="node"} == 1'), "the node")
    [free] = query(stack.prometheus, '{__name__=~"node_filesystem_.*"}')
    assert (free["metric"]["__name__"], free["metric"]["mountpoint"]) == ("node_filesystem_avail_bytes", "/srv")


def test_a_target_above_its_limit_has_an_alert_that_names_the_limit(stack: Stack) -> None:
    service = stack.service
    wait_until(lambda: service.alerts("CliffwatchExporterDown", "firing"), "the alert of what answers too much")
    [alert] = service.alerts("CliffwatchExporterDown", "firing")
    assert alert["labels"]["instance"] == stack.flood.address
    assert "answers 20001 samples, more than the limit of 20,000" in alert["annotations"]["description"]


def test_a_target_that_is_not_ours_speaks_neither_for_a_run_nor_for_prometheus(stack: Stack) -> None:
    wait_until(lambda: query(stack.prometheus, "broker_requests_total"), "the foreign target's own series")
    wait_until(lambda: query(stack.prometheus, 'up{job="cliffwatch-worker"} == 1'), "the worker's series")
    assert query(stack.prometheus, f'up{{instance="{stack.pretender.address}"}} == 1')
    assert not query(stack.prometheus, '{instance="' + stack.pretender.address + '", run_id!=""}')
    assert not query(stack.prometheus, 'run:cliffwatch_run_window_seconds:max{job="workload"}')
    (up,) = query(stack.prometheus, 'up{job="cliffwatch-worker"}')
    assert (up["metric"]["run_id"], up["metric"]["host"]) == ("drill-1", "local")
    (phase,) = query(stack.prometheus, 'cliffwatch_run_phase{phase="prepare"}')
    assert phase["metric"]["instance"] == stack.worker.address
    assert phase["metric"]["run_id"] == "drill-1"
    assert "exported_run_id" not in phase["metric"]


def test_a_target_that_shows_too_much_is_refused_and_that_is_an_alert(stack: Stack) -> None:
    wait_until(lambda: stack.service.alerts("CliffwatchExporterDown", "firing"), "the flood's alert")
    (alert,) = stack.service.alerts("CliffwatchExporterDown", "firing")
    assert (alert["labels"]["job"], alert["labels"]["instance"]) == ("workload", stack.flood.address)
    assert not query(stack.prometheus, "flood")
    assert query(stack.prometheus, 'cliffwatch_run_info{run_id="drill-1"}')


def test_a_run_that_has_two_workers_for_a_while_breaks_no_rule(stack: Stack) -> None:
    stack.taken_over = True
    both = 'count(cliffwatch_device_info{run_id="drill-1"}) == 2 and count(cliffwatch_file_system_info) == 4'
    wait_until(lambda: query(stack.prometheus, both), "the series of both workers")
    seen_at = time.time()

    def evaluated_since() -> list[dict[str, object]]:
        groups = get(f"http://{stack.prometheus}/api/v1/rules")["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        done = all(datetime.fromisoformat(rule["lastEvaluation"]).timestamp() > seen_at for rule in rules)
        return rules if done else []

    wait_until(evaluated_since, "an evaluation of every rule")
    assert {rule["name"]: rule["lastError"] for rule in evaluated_since() if rule["health"] != "ok"} == {}
