"""The rules over a whole run: 36 h of windows through detection into a real Prometheus, which evaluates them.

What a worker and the exporters would have shown is written as blocks by `promtool tsdb create-blocks-from`, and so is
what the rules record of it.
"""

import math
import subprocess
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from prometheus_client.core import Metric
from testkit.ports import free_address
from tests.alerts.watchers import get, program, running
from tests.worker.journal_by_hand import HOUR, START, WINDOW_SECONDS, Journal

from cliffwatch.analysis.finding import FindingKind
from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.base.units import parse_duration
from cliffwatch.coordinator.detection_metrics import detection_metrics
from cliffwatch.journal import EventType

RUN = {"run_id": "soak", "instance": "127.0.0.1:1", "job": "cliffwatch-worker", "host": "local"}
DRIVE = {"device": "nvme0n1", "instance": "local"}
WARM_UP, BASELINE, END = 4 * HOUR, 5 * HOUR, 36 * HOUR
#: The broker is restarted: so many windows are not measured, and so many more are slow.
RESTART, MISSED, SLOW_START = 12 * HOUR, 10, 20
#: Windows at which the drive begins to suffer and the client falls, and when it is over.
DEVICE_ONSET, ONSET, OVER = 20 * HOUR - 24, 20 * HOUR, 26 * HOUR
#: A scrape is kept every so many windows, and queries step by as much.
SCRAPE_WINDOWS = 3
STEP_SECONDS = SCRAPE_WINDOWS * WINDOW_SECONDS


#: What the alerts read of the recording rules, each made of the one before.
RECORDED = (
    "run:cliffwatch_run_window_seconds:max",
    "run_phase:cliffwatch_run_phase:max",
    "run_instance_device:cliffwatch_device_info:newest",
)


@dataclass(slots=True)
class Exposition:
    """Samples in the OpenMetrics format, where those of one metric have to stand together."""

    lines: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, at: float, name: str, labels: dict[str, str], value: float) -> None:
        inside = ",".join(f'{key}="{text}"' for key, text in sorted(labels.items()))
        number = "+Inf" if value == math.inf else repr(float(value))
        self.lines[name].append(f"{name}{{{inside}}} {number} {at:.3f}\n")

    def add_all(self, at: float, metrics: Iterator[Metric]) -> None:
        for metric in metrics:
            for sample in metric.samples:
                self.add(at, sample.name, RUN | sample.labels, sample.value)

    def write(self, path: Path) -> None:
        with path.open("w") as file:
            for lines in self.lines.values():
                file.writelines(lines)
            file.write("# EOF\n")


def phase_of(index: int) -> str:
    return "warm_up" if index < WARM_UP else "baseline" if index < BASELINE else "soak"


def factors(index: int) -> tuple[float, float]:
    """By how much the client and the drive are slower than healthy: hours of warm-up, a swing by day, the cliff."""
    swing = 1 + 0.1 * math.sin(2 * math.pi * index / (24 * HOUR))
    warming = 1 + 4 * math.exp(-index / HOUR)
    client = 80.0 if ONSET <= index < OVER else 1.0
    device = min(20.0, 1 + (index - DEVICE_ONSET) / 8) if DEVICE_ONSET <= index < OVER else 1.0
    return swing * warming * client, warming * device


def live_through(journal: Journal, exposition: Exposition) -> dict[str, set[FindingKind]]:
    """Fill both with the run; which kinds were found, by series."""
    detection = journal.detection()
    written = 0.0
    for index in (index for index in range(END) if not RESTART <= index < RESTART + MISSED):
        if index == RESTART + MISSED:
            journal.missed = MISSED
            detection.notice(journal.record_event(EventType.ENGINE, "broker_restarted"))
        client, device = factors(index)
        restarting = 6.0 if RESTART <= index < RESTART + MISSED + SLOW_START else 1.0
        # Compaction: three slow windows, two times an hour.
        compacting = 1.5 if index % (HOUR // 2) < 3 else 1.0
        window = journal.commit(client * restarting * compacting, device_times=device, phase=phase_of(index))
        detection.take(window)
        written += 4e9
        if index % SCRAPE_WINDOWS == 0:
            at = window.end + 1.0
            figures = detection.figures
            exposition.add_all(at, detection_metrics("soak", figures, {"259:0": {"device": "nvme0n1"}}))
            exposition.add(at, "cliffwatch_detection_running", RUN, float(not detection.has_failed))
            exposition.add(at, "cliffwatch_run_window_seconds", RUN, WINDOW_SECONDS)
            exposition.add(at, "cliffwatch_run_start_timestamp_seconds", RUN, START)
            exposition.add(at, "cliffwatch_run_end_timestamp_seconds", RUN, START + END * WINDOW_SECONDS)
            exposition.add(at, "cliffwatch_device_info", RUN | {"device": "nvme0n1"}, 1)
            for phase in ("warm_up", "baseline", "soak"):
                shown = float(phase == window.phase)
                exposition.add(at, "cliffwatch_run_phase", RUN | {"phase": phase}, shown)
            exposition.add(at, "node_disk_written_bytes_total", DRIVE | {"job": "node"}, written)
            # Clean blocks are used up steadily, until the drive keeps what is left by collecting.
            clean = max(0.04, 0.95 - 0.91 * index / DEVICE_ONSET)
            exposition.add(at, "cliffwatch_drive_free_blocks_ratio", DRIVE | {"job": "drive", "serial": "7"}, clean)
            exposition.add(at, "cliffwatch_drive_mapped_ratio", DRIVE | {"job": "drive", "serial": "7"}, 1 - clean)
    found: dict[str, set[FindingKind]] = defaultdict(set)
    for event in journal.events_named(EventType.FINDING):
        found[event.detail["series"]].add(FindingKind(event.detail["kind"]))
    return found


def promtool(*arguments: str) -> None:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True, slots=True)
class Evaluated:
    """`firing` holds, for each alert, the moments of the run (in windows) at which it fired."""

    found: dict[str, set[FindingKind]]
    firing: dict[str, list[float]]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    directory = tmp_path_factory.mktemp("whole-run")
    exposition = Exposition()
    found = live_through(Journal(directory), exposition)
    exposition.write(directory / "measured.om")
    blocks = str(directory / "data")
    promtool("tsdb", "create-blocks-from", "openmetrics", "--quiet", str(directory / "measured.om"), blocks)
    _record(directory)
    rules = yaml.safe_load((ALERTS_DIRECTORY / "rules" / "cliffs.yaml").read_text(encoding="utf-8"))
    firing: dict[str, list[float]] = defaultdict(list)
    with _prometheus(directory) as address:
        for rule in (rule for group in rules["groups"] for rule in group["rules"]):
            firing[rule["alert"]] += _firing(address, rule["expr"], parse_duration(rule["for"]))
    return Evaluated(found, {name: moments for name, moments in firing.items() if moments})


@contextmanager
def _prometheus(directory: Path) -> Iterator[str]:
    """A Prometheus with the blocks made so far, for as long as the block lasts."""
    address = free_address()
    (directory / "prometheus.yaml").write_text("global: {}\n")
    command = [
        program("prometheus"),
        f"--config.file={directory / 'prometheus.yaml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
    ]
    with running(command, f"http://{address}/-/ready", directory / "log"):
        yield address


def _record(directory: Path) -> None:
    """What the alerts need of the recording rules. Each reads the one before, so each is made when that is loaded."""
    recording = yaml.safe_load((ALERTS_DIRECTORY / "rules" / "recording.yaml").read_text(encoding="utf-8"))
    (rules,) = [group["rules"] for group in recording["groups"] if group["name"] == "cliffwatch-long-windows"]
    for name in RECORDED:
        (rule,) = [rule for rule in rules if rule["record"] == name]
        path = directory / "recording.yaml"
        path.write_text(yaml.safe_dump({"groups": [{"name": "recorded", "rules": [rule]}]}))
        with _prometheus(directory) as address:
            promtool(
                *("tsdb", "create-blocks-from", "rules", "--quiet", f"--url=http://{address}"),
                *(f"--start={START:.0f}", f"--end={START + END * WINDOW_SECONDS:.0f}"),
                *(f"--eval-interval={STEP_SECONDS:.0f}s", f"--output-dir={directory / 'data'}", str(path)),
            )


def _firing(address: str, expression: str, held_seconds: float) -> list[float]:
    """When an alert of this expression fires, in windows since the start, at the resolution of the scrapes."""
    span = {"start": START, "end": START + END * WINDOW_SECONDS, "step": STEP_SECONDS}
    parameters = urllib.parse.urlencode({"query": expression} | span)
    found = get(f"http://{address}/api/v1/query_range?{parameters}")["data"]["result"]
    moments = []
    for series in found:
        pending = last = -math.inf
        for moment, _ in series["values"]:
            pending = pending if moment - last <= STEP_SECONDS else moment
            last = moment
            if moment - pending >= held_seconds:
                moments.append((moment - START) / WINDOW_SECONDS)
    return sorted(moments)


def test_detection_finds_the_cliff_and_its_end_and_nothing_else(evaluated: Evaluated) -> None:
    assert evaluated.found == {"publish.p99": {FindingKind.CLIFF, FindingKind.RECOVERY}}


def test_the_page_comes_within_three_minutes_of_the_cliff_and_never_before(evaluated: Evaluated) -> None:
    moments = evaluated.firing["CliffwatchLatencyCliff"]
    three_minutes = 180 / WINDOW_SECONDS
    assert ONSET < moments[0] <= ONSET + three_minutes + SCRAPE_WINDOWS


def test_the_page_lasts_as_long_as_the_cliff_and_ends_with_it(evaluated: Evaluated) -> None:
    moments = evaluated.firing["CliffwatchLatencyCliff"]
    assert all(after - before <= SCRAPE_WINDOWS for before, after in pairwise(moments))
    assert OVER - SCRAPE_WINDOWS <= moments[-1] <= OVER + HOUR


def test_the_drive_alerts_before_the_client(evaluated: Evaluated) -> None:
    slows, blocks = (evaluated.firing[name] for name in ("CliffwatchDriveSlowsDown", "CliffwatchFreeBlocksRunningOut"))
    assert DEVICE_ONSET < slows[0] < evaluated.firing["CliffwatchLatencyCliff"][0]
    assert slows[-1] <= evaluated.firing["CliffwatchLatencyCliff"][0] + SCRAPE_WINDOWS
    assert DEVICE_ONSET - HOUR - SCRAPE_WINDOWS <= blocks[0] < DEVICE_ONSET


def test_nothing_else_ever_fires(evaluated: Evaluated) -> None:
    assert set(evaluated.firing) == {
        "CliffwatchLatencyCliff",
        "CliffwatchDriveSlowsDown",
        "CliffwatchFreeBlocksRunningOut",
    }
