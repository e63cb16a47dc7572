"""Growth of memory, open files and CPU during a soak: the whole stack in real time, two hours or as many as are given.

python -m bench.real_soak 2

Two runs at once, on an aging drive and on a plain directory, with service, watchers and a browser that shows one
of them. Once a minute each process is sampled; the last quarter of the time is compared with the first quarter, which
begins after ten minutes of settling.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.pages import browse
from bench.stack import PORTS
from testkit.ports import free_port
from testkit.process_cost import ProcessCost, cost_of
from testkit.waiting import wait_until

from cliffwatch.cli.daemon import find_daemon
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.model.settings import read_settings
from cliffwatch.stack.processes import watchers

HOURS = 2.0
SAMPLE_SECONDS = 60.0
SETTLE_SECONDS = 600.0
DRIVE = "real-soak"
PAGE = "page"
_COMMAND = str(Path(sys.executable).with_name("cliffwatch"))
_PROBE = Path(__file__).parents[1] / ".cliffwatch" / "ebpf"


@dataclass(frozen=True, slots=True)
class Sample:
    """Cost of one process `at` seconds after the start; of the page, which has no own process, only its heap."""

    at: float
    cost: ProcessCost


class Stack:
    """A service with its watchers, with their own state directory and ports."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.state = place / "state"
        self.state.mkdir()
        ports = {f"CLIFFWATCH_{name}_PORT": str(free_port()) for name in PORTS}
        self.url = f"http://127.0.0.1:{ports['CLIFFWATCH_LISTEN_PORT']}"
        self._environment = os.environ | ports | {"CLIFFWATCH_STATE_DIRECTORY": str(self.state)}
        self.settings = read_settings(state_directory=self.state)
        # The probe was built for the checkout; it is the same whatever state directory it is started from.
        (self.state / "ebpf").symlink_to(_PROBE)

    def command(self, *words: str) -> Any:
        """Run a `cliffwatch` command; returns its JSON output, None when it prints nothing."""
        done = subprocess.run(
            [_COMMAND, "--output", "json", *words], env=self._environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return json.loads(done.stdout) if done.stdout.strip() else None

    def processes(self, runs: dict[str, Path]) -> dict[str, int]:
        """Process ids of the service, watchers, workers and engines at the moment, by name."""
        daemon = find_daemon(self.state)
        found = {} if daemon is None else {"service": daemon.process.pid}
        for name, watcher in watchers(self.settings).items():
            if watcher.process is not None:
                found[name] = watcher.process.pid
        for name, directory in runs.items():
            heartbeat = Heartbeat.read(directory)
            if heartbeat is not None:
                found[f"worker, {name}"] = heartbeat.worker.pid
                if heartbeat.engine is not None:
                    found[f"engine, {name}"] = heartbeat.engine.pid
        return found


@contextmanager
def _stack() -> Iterator[Stack]:
    with tempfile.TemporaryDirectory(prefix="cliffwatch-bench-") as place:
        stack = Stack(Path(place))
        stack.command("up")
        try:
            yield stack
        finally:
            stack.command("down")


def workload(name: str, hours: float, **retention: Any) -> dict[str, Any]:
    """Workload with the load of the preset `drill`, at a rate that leaves time to others on two processors."""
    return {
        "version": 1,
        "name": name,
        "engine": "storage",
        "window": "10s",
        "phases": {"warm_up": "2m", "baseline": "8m", "soak": f"{round(hours * 60) - 11}m", "cool_down": "1m"},
        "load": {
            "style": "redpanda",
            "style_changes": {"segment_size": "16MiB", "preallocation": "16MiB", "segment_jitter": 0.5},
            "partitions": 32,
            "record_size": "1KiB",
            "batch_records": 64,
            "rate": "3MB",
            "verify_size": "64MiB",
            **retention,
        },
    }


def start(stack: Stack, name: str, target: str, hours: float, **retention: Any) -> Path:
    """Start a run; returns its journal."""
    document = stack.place / f"{name}.json"
    document.write_text(json.dumps(workload(name, hours, **retention)))
    return Path(stack.command("run", "start", str(document), "--target", target)["directory"])


def soak(hours: float) -> tuple[dict[str, list[Sample]], dict[str, dict[str, Any]]]:
    """Execute both runs; returns samples by process, and the ended runs by name."""
    with _stack() as stack:
        drive = stack.command("drive", "attach", DRIVE)
        try:
            plain = stack.place / "plain"
            plain.mkdir()
            runs = {
                "aging drive": start(
                    stack, "real-soak-drive", f"directory:{drive['mount_point']}", hours, retention_ratio=0.75
                ),
                "directory": start(stack, "real-soak-directory", f"directory:{plain}", hours, retention_size="1536MiB"),
            }
            samples = _watch(stack, runs, hours)
            ended = {name: stack.command("run", "show", directory.name) for name, directory in runs.items()}
        finally:
            for run in stack.command("run", "list", "--state", "running"):
                stack.command("run", "stop", run["id"], "--force")
                wait_until(
                    lambda run=run: stack.command("run", "show", run["id"])["state"] == "finished",  # type: ignore[misc]
                    "the run's end",
                )
            stack.command("drive", "detach", DRIVE, "--delete")
    return samples, ended


def _watch(stack: Stack, runs: dict[str, Path], hours: float) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = defaultdict(list)
    began = time.monotonic()
    with browse() as browser:
        page = browser.new_context(base_url=stack.url).new_page()
        page.goto(f"/runs/{runs['aging drive'].name}")
        page.get_by_label("Token").fill((stack.state / "token").read_text().strip())
        page.get_by_role("button", name="Log in").click()
        page.wait_for_selector("#live[data-ready=true]", timeout=60_000)
        session = page.context.new_cdp_session(page)
        while time.monotonic() - began < hours * 3600 + 180:
            # The browser's own events are handled only while it is waited for.
            page.wait_for_timeout(SAMPLE_SECONDS * 1000)
            at = time.monotonic() - began
            living = stack.processes(runs)
            for name, pid in living.items():
                cost = cost_of(pid)
                if cost is not None:
                    samples[name].append(Sample(at, cost))
            session.send("HeapProfiler.collectGarbage")
            heap_bytes = int(page.evaluate("performance.memory.usedJSHeapSize"))
            samples[PAGE].append(Sample(at, ProcessCost(heap_bytes, 0, 0.0, 0)))
            sizes = ", ".join(f"{name} {taken[-1].cost.memory_bytes / 1e6:.1f} MB" for name, taken in samples.items())
            print(f"# {at / 60:.0f} min: {sizes}", flush=True)
            if at > hours * 3600 - 120 and not any(name.startswith("worker") for name in living):
                break
    return samples


@dataclass(frozen=True, slots=True)
class Change:
    """Cost of a process in the first and the last quarter: median memory, least open files, share of a core."""

    name: str
    memory_bytes: tuple[float, float]
    open_files: tuple[int, int]
    cpu_share: tuple[float, float]

    def __str__(self) -> str:
        memory, files, share = self.memory_bytes, self.open_files, self.cpu_share
        return (
            f"| {self.name} | {memory[0] / 1e6:.1f} | {memory[1] / 1e6:.1f} | {memory[1] / memory[0]:.3f} "
            f"| {files[0]} | {files[1]} | {share[0]:.2%} | {share[1]:.2%} |"
        )


def change_of(name: str, samples: list[Sample], seconds: float) -> Change | None:
    """Compare a process's samples of the first and the last quarter; None when it did not run throughout."""
    quarter = (seconds - SETTLE_SECONDS) / 4
    first = [each for each in samples if SETTLE_SECONDS <= each.at <= SETTLE_SECONDS + quarter]
    last = [each for each in samples if seconds - quarter <= each.at < seconds - SAMPLE_SECONDS]
    if len(first) < 3 or len(last) < 3:
        return None
    both = first, last
    medians = [statistics.median(each.cost.memory_bytes for each in part) for part in both]
    files = [min(each.cost.open_files for each in part) for part in both]
    spans = [(part[-1].cost.cpu_seconds - part[0].cost.cpu_seconds, part[-1].at - part[0].at) for part in both]
    shares = [cpu_seconds / seconds for cpu_seconds, seconds in spans]
    return Change(name, (medians[0], medians[1]), (files[0], files[1]), (shares[0], shares[1]))


def figures(hours: float = HOURS) -> list[Figure]:
    samples, ended = soak(hours)
    changes = [change for name, taken in samples.items() if (change := change_of(name, taken, hours * 3600))]
    print("| | memory, MB: first | last quarter | ratio | open files: first | last | CPU, of one core: first | last |")
    print("|---|---|---|---|---|---|---|---|")
    for change in changes:
        print(change)
    for name, run in ended.items():
        print(f"# {name}: {run['verdict']}, {run['windows']} windows, {'; '.join(run['reasons'])}")
    own = [each for each in changes if each.name in ("service", PAGE) or each.name.startswith(("worker", "engine"))]
    return [
        *(
            Figure(f"{each.name}: memory, last / first quarter", each.memory_bytes[1] / each.memory_bytes[0], "", 1.05)
            for each in own
        ),
        *(Figure(f"{each.name}: open files, growth", each.open_files[1] - each.open_files[0], "", 0) for each in own),
    ]


if __name__ == "__main__":
    for figure in figures(float(sys.argv[1]) if len(sys.argv) > 1 else HOURS):
        print(figure)
