"""The report's section "Layers", from telemetry that a real Prometheus gave."""

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from testkit.recorded_runs import JournalPlan, make_journal
from tests.telemetry.filled_runs import DRIVE_FACTS, OPERATIONS, counter, times
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch import report as report_package
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventLog, EventType
from cliffwatch.report.build import Report, build, write
from cliffwatch.report.charts.series import as_data
from cliffwatch.report.schema.findings import LayerRow
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.collector import collect_telemetry
from cliffwatch.telemetry.parts import DIRECTORY, part_names

SCHEMA = json.loads((Path(report_package.__file__).parent / "report.schema.json").read_text())
WINDOWS = 120
CLIFF = 60
DEVICE = '{{job="{job}",instance="local",device="nvme0n1"{more}}}'
BOUNDS = [2.0**power for power in range(-13, 2)]
#: From the cliff on, each window has 100 requests of 0.3 s instead of 1000 of 0.3 ms, and the exporter restarts then.
QUICK, SLOW = 0.0003, 0.3
PATIENCE_SECONDS = 30.0


def device(job: str, more: str = "") -> str:
    return DEVICE.format(job=job, more=more)


def of_windows(before: float, after: float) -> np.ndarray:
    """A counter at each moment of the grid that rises so much a window before the cliff, and after it."""
    return np.concatenate([[0.0], np.cumsum([before] * CLIFF + [after] * (WINDOWS - CLIFF))])


def histogram_lines(metric: str, quick: float, slow: float) -> Iterator[str]:
    """Cumulative buckets that begin at 0 again at the cliff."""
    yield f"# TYPE {metric} histogram"
    for operation, share in (("write", 1.0), ("read", 0.0)):
        for bound in [*BOUNDS, float("inf")]:
            values = of_windows(1000 * share * (quick <= bound), 100 * share * (slow <= bound))
            values[CLIFF + 1 :] -= values[CLIFF]
            le = "+Inf" if bound == float("inf") else repr(bound)
            labels = device("ebpf", f',operation="{operation}",le="{le}"')
            for moment, value in zip(times(WINDOWS), values.tolist(), strict=True):
                yield f"{metric}_bucket{labels} {value!r} {moment:.3f}"


def node_lines() -> Iterator[str]:
    rises = {
        "node_disk_writes_completed_total": (1000, 100),
        "node_disk_write_time_seconds_total": (1000 * QUICK, 100 * SLOW),
        "node_disk_io_time_weighted_seconds_total": (20, 320),
    }
    for metric, (before, after) in rises.items():
        yield from counter(metric + device("node"), times(WINDOWS), of_windows(before, after).tolist())


def ebpf_lines() -> Iterator[str]:
    prefix = "ebpf_exporter_cliffwatch_block_"
    yield from histogram_lines(f"{prefix}device_latency_seconds", QUICK, SLOW)
    yield from histogram_lines(f"{prefix}queue_seconds", QUICK / 2, SLOW / 2)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with filled(tmp_path_factory.mktemp("both"), node_lines(), ebpf_lines()) as server:
        yield server


def filled(directory: Path, *lines: Iterator[str]) -> PrometheusServer:
    server = PrometheusServer(directory)
    fill(server.data, chain(counter(OPERATIONS, times(WINDOWS), range(WINDOWS + 1)), *lines))
    return server


def drive_run(directory: Path) -> Path:
    def latency(index: int) -> dict[str, Histogram]:
        return {"append": Histogram.from_values({2_000_000 if index < CLIFF else 900_000_000: 100})}

    plan = JournalPlan(
        windows=WINDOWS,
        baseline_windows=CLIFF,
        missing={30, 31},
        target="directory:/data",
        facts=DRIVE_FACTS,
        latency=latency,
    )
    return make_journal(directory, plan)


def report_of(directory: Path) -> Report:
    """Its document is of the schema, and making it again gives the same bytes."""
    write(directory, build(directory))
    first = [(directory / name).read_bytes() for name in ("report.json", "report.html")]
    report = build(directory)
    write(directory, report)
    assert [(directory / name).read_bytes() for name in ("report.json", "report.html")] == first
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(first[0]))
    return report


def section_of(directory: Path) -> str:
    page = (directory / "report.html").read_text()
    found = re.search(r'<section aria-labelledby="layers">.*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]


def rows(report: Report) -> dict[str, LayerRow]:
    return {row.get("phase", row["span"]): row for row in report.document["layers"]["rows"]}


def test_the_layers_stand_beside_the_client(tmp_path: Path, watched: PrometheusServer) -> None:
    directory = drive_run(tmp_path / "run-1")
    collect_telemetry(directory, watched.address, float("inf"), PATIENCE_SECONDS)
    report = report_of(directory)
    assert (report.document["layers"]["operation"], report.document["layers"]["drives"]) == ("write", ["nvme0n1"])
    found = rows(report)
    # A bucket's requests are taken as spread evenly over it: 0.3 ms are between 2^-12 and 2^-11 s, 0.3 s 2^-2 and 2^-1.
    assert found["baseline"]["device_p99_seconds"] == pytest.approx(2**-12 + 0.99 * 2**-12)
    assert found["soak"]["device_p99_seconds"] == pytest.approx(2**-2 + 0.99 * 2**-2)
    assert found["soak"]["queue_p99_seconds"] == pytest.approx(2**-3 + 0.99 * 2**-3)
    assert found["soak"]["client_p99_seconds"] == pytest.approx(0.9, rel=0.01)
    assert (found["baseline"]["queue_depth"], found["soak"]["queue_depth"]) == (2.0, 32.0)
    # 6,000 of the load's 66,000 requests were slow: its p99 is among them, at 1 - 0.01 * 66 / 6 of their bucket.
    assert found["load"]["device_p99_seconds"] == pytest.approx(2**-2 + (1 - 0.11) * 2**-2)
    columns = report.series.layers
    assert set(columns) == {"device_p99", "queue_p99", "queue_depth"}
    assert all(len(column) == len(report.series.elapsed) == WINDOWS - 1 for column in columns.values())
    assert [place for place, value in enumerate(columns["device_p99"]) if value is None] == [30]
    assert (columns["device_p99"][0], columns["device_p99"][-1]) == (485.8, 497500)
    section = section_of(directory)
    assert "device p99" in section
    assert "mean</th>" not in section


def test_with_the_kernels_totals_alone_there_is_a_mean_and_it_is_called_one(tmp_path: Path) -> None:
    directory = drive_run(tmp_path / "run-1")
    with filled(tmp_path / "node", node_lines()) as server:
        collect_telemetry(directory, server.address, float("inf"), PATIENCE_SECONDS)
    found = rows(report_of(directory))
    assert found["baseline"]["device_mean_seconds"] == pytest.approx(QUICK)
    assert found["soak"]["device_mean_seconds"] == pytest.approx(SLOW)
    assert "device_p99_seconds" not in found["load"]
    section = section_of(directory)
    assert "device mean</th>" in section
    assert "<em>mean</em>" in section


def test_without_telemetry_the_section_says_why(tmp_path: Path) -> None:
    directory = drive_run(tmp_path / "run-1")
    assert report_of(directory).document["layers"] == {"missing": "Nothing was collected from Prometheus."}
    reason = collect_telemetry(
        directory, PrometheusAddress("http://127.0.0.1:1"), float("inf"), PATIENCE_SECONDS
    ).missing
    layers = report_of(directory).document["layers"]
    assert reason in layers["missing"]
    assert [(gap["start_seconds"], gap["end_seconds"]) for gap in layers["gaps"]] == [(0, 1200)]
    assert "Connection refused" in section_of(directory)


def test_the_reason_that_the_worker_reported_is_given(tmp_path: Path) -> None:
    directory = drive_run(tmp_path / "run-1")
    recorded = Event(times(1)[-1], EventType.NOTE, "telemetry_missing", {"reason": "no Prometheus is <configured>"})
    EventLog(directory).append(recorded)
    assert "no Prometheus is <configured>" in report_of(directory).document["layers"]["missing"]
    assert "&lt;configured&gt;" in section_of(directory)


def test_a_run_without_drives_has_no_layers(tmp_path: Path, watched: PrometheusServer) -> None:
    directory = make_journal(tmp_path / "run-1", JournalPlan(windows=WINDOWS))
    collect_telemetry(directory, watched.address, float("inf"), PATIENCE_SECONDS)
    assert report_of(directory).document["layers"]["missing"] == "No drive is below the target."
    directory = make_journal(tmp_path / "run-2", JournalPlan(windows=WINDOWS, target="broker:10.0.0.1:9092"))
    assert "--drives names those of the brokers' hosts" in report_of(directory).document["layers"]["missing"]


def test_a_damaged_part_is_reported_and_the_rest_is_used(
    tmp_path: Path, watched: PrometheusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cliffwatch.telemetry.collector.PART_POINTS", 20)
    directory = drive_run(tmp_path / "run-1")
    collect_telemetry(directory, watched.address, float("inf"), PATIENCE_SECONDS)
    whole = report_of(directory)
    home = directory / DIRECTORY
    victim = home / part_names(home)[4]
    content = victim.read_bytes()
    for damaged in (b"", content[: len(content) // 2], content[:200] + bytes(len(content) - 300) + content[-100:]):
        victim.write_bytes(damaged)
        report = report_of(directory)
        layers = report.document["layers"]
        assert [fault.startswith(victim.name) for fault in layers["faults"]] == [True]
        assert [gap["reason"] for gap in layers["gaps"]] == [f"{victim.name} is missing or damaged"]
        assert report.conclusion == whole.conclusion
        column = report.series.layers["device_p99"]
        assert column[:70] == whole.series.layers["device_p99"][:70]
        assert column[80:95] == [None] * 15
        assert column[-1] == whole.series.layers["device_p99"][-1]
        assert victim.name in section_of(directory)


def test_a_window_costs_the_page_few_bytes(tmp_path: Path, watched: PrometheusServer) -> None:
    """So that a report of 36 h stays far below 5 MB: 12,960 windows take less than half of one."""
    directory = drive_run(tmp_path / "run-1")
    before = len(json.dumps(as_data(build(directory).series, build(directory).document)))
    collect_telemetry(directory, watched.address, float("inf"), PATIENCE_SECONDS)
    report = report_of(directory)
    added = len(json.dumps(as_data(report.series, report.document))) - before
    assert 0 < added / WINDOWS < 40
