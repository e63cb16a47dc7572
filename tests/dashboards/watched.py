"""Two short runs, of fio on a loop device and of the synthetic engine, and a real Prometheus that watched them."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.alerts.watchers import Site, free_address, query, run_prometheus, running
from tests.drives.loops import MIB, command, loop_drive, mounted
from tests.exporters.ebpf import probe
from tests.worker.runs import queue_run, start_worker, wait_until

from cliffwatch.runs.specification import DirectoryTarget, SyntheticTarget
from cliffwatch.settings import read_settings
from cliffwatch.stack.components import NODE_EXPORTER
from cliffwatch.stack.configuration import DISCOVERY_PATHS, prometheus_configuration
from cliffwatch.worker.heartbeat import Heartbeat

RUNS = ("with-fio", "synthetic")
SCRAPE_SECONDS = 1.0
#: Workers are discovered every 5 s, and the baseline has to be seen; rates are taken over four scrapes.
LOAD = {"baseline": "9s", "soak": "6s"}
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

    def series(self, expression: str, step_seconds: float = SCRAPE_SECONDS) -> list[dict[str, Any]]:
        """The range vector's series over the time of the runs. Fails with Prometheus' own words."""
        span = {"start": self.start, "end": self.end, "step": step_seconds}
        result: list[dict[str, Any]] = self._get("query_range", query=expression, **span)["result"]
        return result

    def label_values(self, metric: str, label: str) -> list[str]:
        """Ascending."""
        parameters = {"match[]": metric, "start": self.start, "end": self.end}
        values: list[str] = self._get(f"label/{label}/values", **parameters)
        return sorted(values)

    def _get(self, path: str, **parameters: Any) -> Any:
        url = f"http://{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error


@contextmanager
def watched_runs(directory: Path) -> Iterator[Watched]:
    """Both runs at once, watched from before their first window until after their last, and until an alert fires."""
    probe.build()
    with ExitStack() as stack:
        drive = stack.enter_context(loop_drive(directory / "drive.img", 64 * MIB))
        command("mkfs.ext4", "-q", drive.node)
        mount_point = stack.enter_context(mounted(drive.node, directory / "drive"))
        journals = [
            queue_run(
                directory / "with-fio",
                {"job": JOB},
                DirectoryTarget(path=str(mount_point)),
                engine="fio",
                window="1s",
                phases=LOAD,
            ),
            queue_run(
                directory / "synthetic",
                target=SyntheticTarget(name="synthetic"),
                window="1s",
                phases=LOAD,
                name="shape",
            ),
        ]
        prometheus = stack.enter_context(_prometheus(directory, journals))
        start = time.time()
        workers = [start_worker(journal) for journal in journals]
        for worker in workers:
            stack.callback(_end, worker)
        for worker in workers:
            assert worker.wait(120) == 0
        firing = 'ALERTS{alertname="CliffwatchExporterDown", alertstate="firing"}'
        wait_until(lambda: bool(query(prometheus, firing)), "the alert of the target that is not there")
        yield Watched(prometheus, start, time.time())


def _end(worker: "subprocess.Popen[bytes]") -> None:
    if worker.poll() is None:
        worker.kill()
        worker.wait()


@contextmanager
def _prometheus(directory: Path, journals: list[Path]) -> Iterator[str]:
    """Configured and fed as in the stack; its address."""
    with ExitStack() as stack:
        ebpf = stack.enter_context(probe.running_probe())
        node = free_address()
        settings = read_settings(state_directory=directory, node_exporter_port=int(node.partition(":")[2]))
        node_log = directory / "node.log"
        stack.enter_context(running(NODE_EXPORTER.command(settings), NODE_EXPORTER.ready_url(settings), node_log))
        service = Site({path: lambda: "[]" for path in DISCOVERY_PATHS.values()} | {"/metrics": lambda: ""})
        stack.callback(service.close)
        service.pages[DISCOVERY_PATHS["cliffwatch-worker"]] = lambda: json.dumps(_targets(journals))
        nowhere = [{"targets": [free_address()], "labels": {}}]
        service.pages[DISCOVERY_PATHS["workload"]] = lambda: json.dumps(nowhere)
        token = directory / "token"
        token.write_text("cw_test")
        address = free_address()
        configuration = prometheus_configuration(
            service_address=service.address,
            prometheus_address=address,
            token_file=token,
            exporters={"node": node, "ebpf": f"127.0.0.1:{ebpf.port}"},
            scrape_interval_seconds=SCRAPE_SECONDS,
        )
        stack.enter_context(run_prometheus(directory / "prometheus", configuration, address))
        wait_until(lambda: len(query(address, 'up{job=~"node|ebpf"} == 1')) == 2, "a scrape of both exporters")
        yield address


def _targets(journals: list[Path]) -> list[dict[str, Any]]:
    """What the service's discovery says of these runs' workers."""
    beats = [(journal.name, Heartbeat.read(journal)) for journal in journals]
    return [
        {"targets": [f"127.0.0.1:{beat.metrics_port}"], "labels": {"run_id": run_id}}
        for run_id, beat in beats
        if beat is not None and beat.metrics_port is not None
    ]
