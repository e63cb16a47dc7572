"""Three short runs and a Prometheus, an Alertmanager, exporters and a service that watched them, all of them real.

One run is of fio on an aging drive, two are of the synthetic engine, of which one watches that drive as another host's:
its node_exporter is scraped a second time. What no machine of a test has answers from what
was recorded of it: NVMe drives, brokers, and a worker whose run drifts.
"""

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from testkit import probe
from testkit.ports import free_address
from testkit.waiting import wait_until
from testkit.worker_runs import events, queue_run, start_worker, status
from tests.alerts.watchers import Site, query, run_alertmanager, run_prometheus
from tests.api.harness import ORDER, Api, serving
from tests.dashboards.documents import Variable
from tests.exporters.drive.exporter import Machine, running
from tests.labs.aging.machine import SMALL, State
from tests.worker.golden_exposition import GOLDEN, START

from cliffwatch.base.clock import SystemClock
from cliffwatch.journal import EventType
from cliffwatch.labs.aging.lifecycle import AttachRequest
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.settings import Settings, read_settings
from cliffwatch.model.target import DirectoryTarget, SyntheticTarget
from cliffwatch.stack import processes
from cliffwatch.stack.components import NODE_EXPORTER
from cliffwatch.stack.configuration import WEBHOOK_PATH, alertmanager_configuration, prometheus_configuration

FIO, SYNTHETIC, FAR = "with-fio", "synthetic", "far-drive"
#: The one that the recorded worker executes.
RECORDED = "nightly-7"
RUNS = (FIO, SYNTHETIC, FAR, RECORDED)
#: The label `instance` of the exporters of a host that is said to be another one.
FAR_HOST = "far:9896"
SCRAPE_SECONDS = 1.0
#: Workers are discovered every 5 s, and the baseline has to be seen; rates are taken over four scrapes; and nothing is
#: said of free space before the load, and what prepared it, are 40 s old, which a busy machine may see late.
LOAD = {"baseline": "9s", "soak": "50s"}
JOB = """
[global]
ioengine=psync
direct=1
[write]
rw=write
bs=16k
size=8m
fdatasync=1
rate_iops=50
[read]
rw=randread
bs=4k
size=8m
rate_iops=50
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """A Prometheus that has seen the runs, and from when to when, in seconds since the epoch."""

    prometheus: str
    start: float
    end: float
    #: Seconds from the beginning of the synthetic run's load until its worker recorded the soak.
    soak_begins_seconds: float
    #: What it said is asked once: it is about the past.
    _answers: dict[str, Any] = field(default_factory=dict)

    @property
    def metrics(self) -> set[str]:
        """The names of all that there is."""
        return set(self.label_values('{__name__!=""}', "__name__"))

    def series(self, expression: str, start: float | None = None) -> list[dict[str, Any]]:
        """The range vector's series over the time of the runs, or as long from `start` on. Fails with Prometheus' own
        words."""
        begin = self.start if start is None else start
        span = {"start": begin, "end": begin + self.end - self.start, "step": SCRAPE_SECONDS}
        result: list[dict[str, Any]] = self._get("query_range", query=expression, **span)["result"]
        return result

    def values_of(self, variable: Variable, chosen: dict[str, str], at: float | None = None) -> list[str]:
        """What Grafana offers for a variable while the others are as chosen, in its order; of a query's result, `at`
        that time or when the runs are over."""
        expression = variable.query.rendered(chosen)
        if variable.label is not None:
            return variable.in_order(self.label_values(expression, variable.label))
        assert variable.regex is not None
        at = self.end if at is None else at
        lines = []
        for one in self._get("query", query=expression, time=at)["result"]:
            labels = ",".join(f'{name}="{value}"' for name, value in one["metric"].items() if name != "__name__")
            lines.append(f"{one['metric'].get('__name__', '')}{{{labels}}} {one['value'][1]} {one['value'][0] * 1000}")
        return variable.in_order(found[1] for line in lines if (found := re.search(variable.regex, line)))

    def label_values(self, metric: str, label: str) -> list[str]:
        """Ascending."""
        parameters = {"match[]": metric, "start": self.start, "end": self.end}
        values: list[str] = self._get(f"label/{label}/values", **parameters)
        return sorted(values)

    def _get(self, path: str, **parameters: Any) -> Any:
        url = f"http://{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        if url in self._answers:
            return self._answers[url]
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                self._answers[url] = json.load(answer)["data"]
                return self._answers[url]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error


@contextmanager
def watched_runs(directory: Path) -> Iterator[Watched]:
    """All runs at once, watched from before their first window until after their last, and until alerts fire."""
    probe.build()
    with ExitStack() as stack:
        # In memory, since drives make their content durable.
        memory = Path(stack.enter_context(TemporaryDirectory(dir="/dev/shm", prefix="cliffwatch-test-")))
        node = int(free_address().partition(":")[2])
        settings = read_settings(state_directory=memory / "state", node_exporter_port=node)
        drives = State(settings.state_directory).make()
        stack.callback(drives.close)
        drive = drives.attach(AttachRequest(SMALL, discard=True))
        assert drive.mount_point is not None
        api = stack.enter_context(serving(settings))
        others = stack.enter_context(_others())
        far = PrometheusDrives(selector=f'instance="{FAR_HOST}",device="{drive.device}"')
        journals = _queue(api, drive.mount_point, others, far)
        prometheus = stack.enter_context(_watchers(directory, settings, api, others))
        reported = f'cliffwatch_drive_host_written_bytes_total{{device="{drive.device}"}}'
        wait_until(lambda: bool(query(prometheus, reported)), "a scrape of the aging drive")
        start = time.time()
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("CLIFFWATCH_PROMETHEUS_URL", f"http://{prometheus}")
            workers = [start_worker(journal) for journal in journals]
        for worker in workers:
            stack.callback(_end, worker)
        wait_until(lambda: len(query(prometheus, "cliffwatch_run_info")) == len(RUNS), "a scrape of each worker")
        for worker in workers:
            assert worker.wait(120) == 0
        for journal in journals:
            api.index(journal.name)
        # Several times, so that they are there at a step of what is queried.
        for what in (
            'count_over_time(ALERTS{alertname="CliffwatchExporterDown", alertstate="firing"}[1m]) > 2',
            "count_over_time(cliffwatch_service_watchdog_timestamp_seconds[1m]) > 2",
            "count_over_time(cliffwatch_service_watcher_up[1m]) > 2",
            f'count_over_time(cliffwatch_service_run_info{{run_id="{FIO}", verdict!=""}}[1m]) > 2',
        ):
            wait_until(lambda what=what: bool(query(prometheus, what)), what)  # type: ignore[misc]
        yield Watched(prometheus, start, time.time(), _soak_begins(api.settings.runs_directory / SYNTHETIC))


def _soak_begins(journal: Path) -> float:
    load_start = status(journal).load_start
    assert load_start is not None
    (soak,) = [event for event in events(journal) if (event.type, event.name) == (EventType.PHASE, "soak")]
    return soak.at - load_start


def _queue(api: Api, mount_point: Path, others: str, far: PrometheusDrives) -> list[Path]:
    """The runs' journals, as the service leaves them for their workers; and a schedule."""
    directory = api.settings.runs_directory
    scrape = [
        {"job": "broker", "targets": [others], "path": "/public_metrics"},
        {"job": "gone", "targets": [free_address()]},
    ]
    target = DirectoryTarget(path=str(mount_point))
    phases: dict[str, Any] = {"window": "1s", "phases": LOAD}
    journals = [
        queue_run(directory / FIO, {"job": JOB}, target, engine="fio", name="fio", scrape=scrape, **phases),
        queue_run(directory / SYNTHETIC, target=SyntheticTarget(name="synthetic"), name="shape", **phases),
        queue_run(directory / FAR, target=SyntheticTarget(name="far"), name="far", drives=far, **phases),
    ]
    for journal in journals:
        api.index(journal.name)
    trigger = {"kind": "cron", "expression": "0 3 * * *", "time_zone": "UTC"}
    assert api.post("/schedules", {"name": "nightly", **ORDER, "trigger": trigger}).status_code == 201
    return journals


@contextmanager
def _others() -> Iterator[str]:
    """What a test's machine has not: its address."""
    scrapes, worker = count(1), _worker_of_now()
    site = Site({"/public_metrics": lambda: _broker(next(scrapes)), "/metrics": lambda: worker})
    try:
        yield site.address
    finally:
        site.close()


def _worker_of_now() -> str:
    """The recorded worker, as if its run had just begun."""
    recorded, now = GOLDEN.read_text(encoding="utf-8"), round(time.time())
    return re.sub(r" (1\.79\d*e\+09)$", lambda at: f" {float(at[1]) - START + now}", recorded, flags=re.MULTILINE)


def _broker(scrapes: int) -> str:
    """What a Redpanda broker says of its latency, and a Kafka broker through the JMX exporter; it counts on."""
    name = "redpanda_kafka_request_latency_seconds"
    labels = 'redpanda_request="produce"'
    buckets = (f'{name}_bucket{{{labels},le="{bound}"}} {scrapes * 10}' for bound in ("0.001", "0.002", "+Inf"))
    return "\n".join(
        [
            f"# TYPE {name} histogram",
            *buckets,
            f"{name}_sum{{{labels}}} {scrapes * 0.01}",
            f"{name}_count{{{labels}}} {scrapes * 10}",
            'kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 2.5',
            "",
        ]
    )


def _end(worker: "subprocess.Popen[bytes]") -> None:
    if worker.poll() is None:
        worker.kill()
        worker.wait()


@contextmanager
def _watchers(directory: Path, settings: Settings, api: Api, others: str) -> Iterator[str]:
    """Configured and fed as in the stack, but faster; Prometheus' address."""
    with ExitStack() as stack:
        ebpf = stack.enter_context(probe.running_probe())
        nvme = Machine(directory / "nvme")
        for path in (nvme.sys / "class" / "nvme", nvme.answers):
            path.mkdir(parents=True)
        for number, answers in enumerate(("ocp", "cloud", "ebs")):
            nvme.add(number, f"NVME-{number}", answers)
        drive = stack.enter_context(running(nvme))
        clock = SystemClock()
        # As `up` starts it, so that the service looks at it too.
        (outcome,) = processes.start(settings, [NODE_EXPORTER], clock)
        stack.callback(processes.stop, settings, clock)
        assert outcome.state is processes.State.STARTED, outcome
        tokens = {}
        for scope in ("read", "operate"):
            tokens[scope] = directory / scope
            tokens[scope].write_text(api.tokens[scope])
        service, alertmanager, prometheus = api.client.base_url, free_address(), free_address()
        notify = alertmanager_configuration(f"{service}{WEBHOOK_PATH}", tokens["operate"])
        stack.enter_context(run_alertmanager(directory / "alertmanager", notify, alertmanager))
        configuration = prometheus_configuration(
            service_address=service.netloc.decode(),
            prometheus_address=prometheus,
            alertmanager_address=alertmanager,
            token_file=tokens["read"],
            exporters={
                "node": NODE_EXPORTER.address(settings),
                "ebpf": f"127.0.0.1:{ebpf.port}",
                "drive": drive.url.removeprefix("http://"),
            },
            scrape_interval_seconds=SCRAPE_SECONDS,
        )
        stack.enter_context(
            run_prometheus(
                directory / "prometheus", _hurried(configuration, others, NODE_EXPORTER.address(settings)), prometheus
            )
        )
        exporters = 'up{job=~"node|ebpf|drive", instance="local"} == 1'
        wait_until(lambda: len(query(prometheus, f"group by (job) ({exporters})")) == 3, "a scrape of each exporter")
        yield prometheus


def _hurried(configuration: str, others: str, node: str) -> str:
    """With all that is scraped, scraped every second; with the recorded worker, and what is said to be another host."""
    document = yaml.safe_load(configuration)
    for job in document["scrape_configs"]:
        job.pop("scrape_interval", None)
    recorded = {"targets": [others], "labels": {"host": "local"}}
    document["scrape_configs"].append({"job_name": "recorded", "honor_labels": True, "static_configs": [recorded]})
    elsewhere = {"targets": [node], "labels": {"instance": FAR_HOST}}
    document["scrape_configs"].append({"job_name": "far-node", "static_configs": [elsewhere]})
    return yaml.safe_dump(document)
