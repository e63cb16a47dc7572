"""What a scrape of a worker looks like, to the letter."""

import subprocess
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from tests.worker.golden_exposition import GOLDEN, START

from cliffwatch.analysis.finding import Baseline, FindingKind, LimitedBy, Role, Series, Size
from cliffwatch.analysis.forecast import Forecast
from cliffwatch.base.histogram import Histogram
from cliffwatch.coordinator.detection_metrics import DetectionFigures
from cliffwatch.coordinator.metrics import RunCollector, RunFileSystem, WorkerFigures
from cliffwatch.journal.windows import JournalWindow, WindowLog
from cliffwatch.model.window import EngineWindow
from cliffwatch.part.lines import DriveBelow

DETECTION = DetectionFigures(
    series=(
        Series("write.p99", Role.LATENCY, operation="write", quantile=0.99),
        Series("device.write_latency", Role.DEVICE_LATENCY),
        Series("device.write_latency.259:0", Role.DEVICE_LATENCY, device="259:0"),
        Series("device.queue_depth", Role.QUEUE_DEPTH),
    ),
    baselines={"write.p99": 0.004, "device.write_latency": 0.0015, "device.write_latency.259:0": 0.001},
    ratios={("write.p99", "slow"): 1.5, ("write.p99", "fast"): 60.0, ("device.write_latency.259:0", "fast"): 40.0},
    active=frozenset({("write.p99", FindingKind.CLIFF), ("write.p99", FindingKind.DRIFT)}),
    sizes={("write.p99", FindingKind.CLIFF): Size(Baseline("write.p99", 0.004, 0.0, 60.0, 0.003, 0.005), 0.5, 1.0)},
    sentences={("write.p99", FindingKind.CLIFF): "The write p99 rose 125× (4 ms to 500 ms; at worst 1 s, 250×)."},
    undone={(FindingKind.STALL, None): 30.0, (FindingKind.SHORTFALL, LimitedBy.CLIENT): 1200.0},
    forecasts={"write.p99": Forecast(0.02, 3600.0, 7200.0, float("inf"))},
)


def exposition(figures: WorkerFigures) -> str:
    registry = CollectorRegistry()
    registry.register(RunCollector(figures))
    return generate_latest(registry).decode()


def new_figures() -> WorkerFigures:
    return WorkerFigures(
        run_id="nightly-7",
        workload="append-streams",
        engine="fio",
        target='directory:/srv/a "quoted" place',
        start=START,
        window_seconds=1.0,
    )


def committed(window: EngineWindow, directory: Path) -> JournalWindow:
    log = WindowLog(directory, START)
    try:
        return log.append(window, "soak")
    finally:
        log.close()


def test_a_scrape_is_what_the_golden_file_holds(tmp_path: Path) -> None:
    figures = new_figures()
    figures.plan(START, START + 300)
    figures.settle(
        (DriveBelow("nvme0n1", 1023, "259:0"), DriveBelow("sdb")),
        (RunFileSystem("/srv", "target"), RunFileSystem("/", "journal")),
    )
    latency = Histogram.from_values({50_000: 1, 100_000: 1, 200_000: 1, 4_000_000: 1, 70_000_000_000: 1})
    window = EngineWindow(
        start=START,
        end=START + 1,
        counters={"operations": 5, "bytes": 20480, "errors": 1, "of_no_interest": 9},
        gauges={
            "schedule_debt_seconds": 0.25,
            "oldest_outstanding_seconds": 0.5,
            "target_rate": 5.0,
            "requested_bytes_per_second": 20480.0,
            "growth_left_bytes": 4096.0,
            "backlog_records": 12.0,
            "backlog_bytes": 12288.0,
            "of_no_interest": 9.0,
        },
        latency={"write": latency},
    )
    figures.observe(window, committed(window, tmp_path))
    figures.move("soak", 0.5)
    figures.engine_restarts = 2
    figures.detect(DETECTION, failed=False)
    assert exposition(figures) == GOLDEN.read_text(encoding="utf-8")


def test_the_names_are_clean_by_prometheus_own_linter() -> None:
    text = GOLDEN.read_text(encoding="utf-8")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_before_the_first_window_counters_are_zero_and_what_is_not_known_is_absent() -> None:
    lines = exposition(new_figures()).splitlines()
    assert 'cliffwatch_errors_total{run_id="nightly-7"} 0.0' in lines
    assert 'cliffwatch_run_phase{phase="prepare",run_id="nightly-7"} 1.0' in lines
    absent = ("last_window_timestamp_seconds", "run_end_timestamp_seconds", "schedule_debt_seconds", "device_info")
    for name in (*absent, "requested_bytes_per_second", "baseline_latency_seconds", "finding_active"):
        assert not [line for line in lines if line.startswith(f"cliffwatch_{name}")]


def test_drives_of_other_hosts_have_the_labels_of_their_exporters() -> None:
    figures = new_figures()
    figures.settle(
        (DriveBelow("b1/nvme0n1", None, "0:1", "b1:9896"), DriveBelow("b2/cciss!c0d0", None, "0:2", "b2:9896")), ()
    )
    series = Series("device.write_latency.0:2", Role.DEVICE_LATENCY, device="0:2")
    figures.detect(replace(DETECTION, series=(series,), baselines={series.name: 0.001}, ratios={}), failed=False)
    lines = exposition(figures).splitlines()
    about = 'device="cciss!c0d0",device_instance="b2:9896",run_id="nightly-7"'
    assert f"cliffwatch_device_info{{{about}}} 1.0" in lines
    assert 'cliffwatch_device_info{device="nvme0n1",device_instance="b1:9896",run_id="nightly-7"} 1.0' in lines
    assert f"cliffwatch_device_baseline_write_latency_seconds{{{about}}} 0.001" in lines
    assert not [line for line in lines if line.startswith("cliffwatch_device_queue_requests{")]
