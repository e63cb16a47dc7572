"""The real block-layer probe, and the real fio that its counts are compared with."""

import json
import math
import os
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testkit.checkout import ROOT, STATE
from testkit.ports import free_port
from testkit.waiting import wait_until

SOURCES = ROOT / "exporters" / "ebpf"
EXPORTER = STATE / "ebpf" / "bin" / "ebpf_exporter"
CONFIGURATION = STATE / "ebpf" / "config"
PREFIX = "ebpf_exporter_cliffwatch_block_"
#: Timeout, for a machine that is very busy with other things: the kernel's counts are published every 0.25 s.
PATIENCE_SECONDS = 30.0

#: A line of /metrics, parsed here because other parsers rename a counter whose name does not show that it is one.
SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')

Labels = frozenset[tuple[str, str]]


def build() -> None:
    """Build the probe. Raises AssertionError with make's output when that fails."""
    arguments = ["make", "--no-print-directory", "-C", str(SOURCES), f"STATE={STATE}", "packages", "all"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@dataclass(frozen=True, slots=True)
class Scrape:
    """One reading of /metrics: values by sample name (without the prefix) and labels."""

    samples: dict[tuple[str, Labels], float]

    def value(self, name: str, **labels: str) -> float:
        """Value of one series; 0 when it is absent, because series start with their first request."""
        return self.samples.get((name, frozenset(labels.items())), 0.0)

    def series(self, name: str) -> dict[Labels, float]:
        return {labels: value for (of, labels), value in self.samples.items() if of == name}

    def count(self, histogram: str, device: str, operation: str) -> int:
        return int(self.value(f"{histogram}_count", device=device, operation=operation))

    def sum(self, histogram: str, device: str, operation: str) -> float:
        return self.value(f"{histogram}_sum", device=device, operation=operation)

    def bounds(self, histogram: str, device: str, operation: str) -> list[float]:
        """Upper bounds of the histogram's buckets, ascending, infinity last."""
        return sorted(self._buckets(histogram, device, operation))

    def quantile(self, histogram: str, device: str, operation: str, q: float, before: "Scrape") -> float:
        """Upper bound of the bucket that holds quantile `q` of what was counted since `before`."""
        now = self._buckets(histogram, device, operation)
        earlier = before._buckets(histogram, device, operation)
        counts = {bound: value - earlier.get(bound, 0.0) for bound, value in now.items()}
        wanted = q * counts[math.inf]
        return min(bound for bound, value in counts.items() if value >= wanted)

    def counts(self, histogram: str, device: str, operation: str, before: "Scrape") -> dict[float, float]:
        """How many were counted since `before` in each bucket that has any, by upper bound."""
        earlier = before._buckets(histogram, device, operation)
        below = 0.0
        counts = {}
        for bound, value in sorted(self._buckets(histogram, device, operation).items()):
            upto = value - earlier.get(bound, 0.0)
            if upto > below:
                counts[bound] = upto - below
            below = upto
        return counts

    def _buckets(self, histogram: str, device: str, operation: str) -> dict[float, float]:
        wanted = {("device", device), ("operation", operation)}
        return {
            float(dict(labels)["le"]): value
            for labels, value in self.series(f"{histogram}_bucket").items()
            if wanted <= labels
        }


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """The kernel's statistics of one BPF program; runs and nanoseconds need `kernel.bpf_stats_enabled`."""

    runs: int
    nanoseconds: int
    misses: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A running exporter with its BPF programs attached."""

    pid: int
    port: int

    def text(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE_SECONDS) as answer:
            body: bytes = answer.read()
        return body.decode()

    def scrape(self) -> Scrape:
        samples = {}
        for line in self.text().splitlines():
            if found := SAMPLE.fullmatch(line):
                labels = frozenset(LABEL.findall(found["labels"] or ""))
                samples[found["name"].removeprefix(PREFIX), labels] = float(found["value"])
        return Scrape(samples)

    def scrape_when(self, holds: Callable[[Scrape], bool], reading: Callable[[Scrape], object]) -> Scrape:
        """The first scrape for which `holds` is true. Raises AssertionError with the last `reading` on timeout."""
        seen: list[Scrape] = []

        def scraped() -> Scrape | None:
            seen[:] = [self.scrape()]
            return seen[0] if holds(seen[0]) else None

        return wait_until(scraped, lambda: f"the probe says {reading(seen[0])}", PATIENCE_SECONDS)

    def costs(self) -> list[ProgramCost]:
        """Statistics of the probe's programs, which run at issue and at completion of requests."""
        found = []
        for path in Path(f"/proc/{self.pid}/fdinfo").iterdir():
            fields = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
            if "run_cnt" in fields:
                found.append(
                    ProgramCost(int(fields["run_cnt"]), int(fields["run_time_ns"]), int(fields["recursion_misses"]))
                )
        return found


@contextmanager
def running_probe() -> Iterator[Probe]:
    """Start the exporter on a free loopback port; it drops all capabilities once attached, as in the stack."""
    port = free_port()
    process = subprocess.Popen(
        [
            EXPORTER,
            f"--config.dir={CONFIGURATION}",
            "--config.names=block",
            "--config.strict",
            "--capabilities.keep=none",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if "Listening on" in line:
                break
        else:
            raise AssertionError("".join(said))
        probe = Probe(process.pid, port)
        wait_until(lambda: _listens(probe), "the exporter that listens")
        yield probe
    finally:
        process.terminate()
        process.communicate()


def _listens(probe: Probe) -> bool:
    try:
        probe.text()
    except urllib.error.URLError:
        return False
    return True


def fio_command(device: Path, **settings: str | int) -> list[str]:
    """Command line of fio: direct I/O of 4 KiB, without the page cache, unless `settings` change it."""
    chosen = {"name": "load", "filename": str(device), "direct": 1, "bs": "4k", "ioengine": "libaio", **settings}
    return ["fio", "--output-format=json", *(f"--{key}={value}" for key, value in chosen.items())]


def fio(
    device: Path, before: tuple[str, ...] = (), cgroup: Path | None = None, **settings: str | int
) -> dict[str, Any]:
    """Run fio, prefixed with the command `before`, in `cgroup` if given; returns the first job of its JSON output."""
    join = ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(cgroup)) if cgroup else ()
    arguments = [*join, *before, *fio_command(device, **settings)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    job: dict[str, Any] = json.loads(done.stdout)["jobs"][0]
    return job


@contextmanager
def control_group(name: str) -> Iterator[Path]:
    """Make a control group in the hierarchy to which the kernel charges I/O: cgroup v1 where it is mounted, else v2."""
    first = Path("/sys/fs/cgroup/blkio")
    parent = first if first.is_dir() else Path("/sys/fs/cgroup")
    switch = parent / "cgroup.subtree_control"
    was_off = switch.exists() and "io" not in switch.read_text().split()
    if was_off:
        switch.write_text("+io")
    group = parent / f"{name}-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        group.rmdir()
        if was_off:
            switch.write_text("-io")


def bucket_distance(one_seconds: float, other_seconds: float) -> int:
    """Number of buckets, whose bounds are powers of two, between two latencies."""
    return abs(math.ceil(math.log2(one_seconds)) - math.ceil(math.log2(other_seconds)))
