"""What a real Prometheus knows of a run is in its journal afterwards: all of it, once, whatever happens meanwhile."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from testkit.recorded_runs import LOAD_START
from testkit.waiting import wait_until
from tests.telemetry.filled_runs import OPERATIONS, WRITES, counter, make_run, the_one, times
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.collector import PART_POINTS, collect_telemetry
from cliffwatch.telemetry.parts import DIRECTORY, describe_part, part_names
from cliffwatch.telemetry.reader import read

STEPS_OF_36_HOURS = 12_960
EVER = float("inf")
PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def soak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """36 h of a run: its own counter, its drive's with a hole and a restart in it, and series of others."""
    server = PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    moments = times(STEPS_OF_36_HOURS)
    there = device_rows()
    ones = np.ones(len(moments))
    of_another_host = WRITES.replace('"node"', '"workload"')
    lines = chain(
        counter(OPERATIONS, moments, operations().tolist()),
        (f"{OPERATIONS.replace('run-1', 'run-2')} 1 {moment:.3f}" for moment in moments),
        counter(WRITES, moments[there], writes()[there].tolist()),
        (f"{WRITES.replace('nvme0n1', 'nvme0n12')} 1 {moment:.3f}" for moment in moments),
        (f"{of_another_host} 1 {moment:.3f}" for moment in moments),
        counter('unrelated_total{job="node"}', moments, ones.tolist()),
    )
    fill(server.data, lines)
    with server:
        yield server


def operations() -> np.ndarray:
    return np.arange(STEPS_OF_36_HOURS + 1) * 1000.0


def writes() -> np.ndarray:
    """With a restart of the counter, and fractions that only a float64 keeps."""
    return np.arange(STEPS_OF_36_HOURS + 1) % 7000 / 3


def device_rows() -> np.ndarray:
    """Which of the device's samples are there: the exporter was gone for a while."""
    there = np.ones(STEPS_OF_36_HOURS + 1, dtype=bool)
    there[5000:5040] = False
    return there


def assert_everything_is_home(directory: Path) -> None:
    telemetry = read(directory)
    assert telemetry is not None
    assert (telemetry.gaps, telemetry.faults) == ((), ())
    assert (telemetry.start, telemetry.end, telemetry.step_seconds) == (LOAD_START, times(12_960)[-1], 10.0)
    assert set(telemetry.series) == {"operations_total", "node_disk_writes_completed_total"}
    of_run, of_drive = (the_one(telemetry, name) for name in ("operations_total", "node_disk_writes_completed_total"))
    np.testing.assert_array_equal(of_run.times, times(STEPS_OF_36_HOURS))
    np.testing.assert_array_equal(of_run.values, operations())
    assert of_run.labels == {"job": "cliffwatch-worker", "run_id": "run-1"}
    np.testing.assert_array_equal(of_drive.times, times(STEPS_OF_36_HOURS)[device_rows()])
    np.testing.assert_array_equal(of_drive.values, writes()[device_rows()])
    assert of_drive.labels == {"job": "node", "instance": "local", "device": "nvme0n1"}


def assert_no_row_twice(directory: Path) -> None:
    """The parts' own intervals do not overlap, so no sample can be in two of them."""
    home = directory / DIRECTORY
    held = sorted(describe_part(home / name)[1].points for name in part_names(home))
    assert all(before.last < after.first for before, after in pairwise(held))


def test_36_hours_come_home_in_pieces_and_equal_what_was_there(tmp_path: Path, soak: PrometheusServer) -> None:
    directory = make_run(tmp_path / "run-1", STEPS_OF_36_HOURS)
    result = collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS)
    assert (result.parts, result.missing) == (STEPS_OF_36_HOURS // PART_POINTS + 1, "")
    assert result.rows == 2 * (STEPS_OF_36_HOURS + 1) - 40
    assert_everything_is_home(directory)
    assert collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS).parts == 0


def test_pieces_taken_at_intervals_fit_together(tmp_path: Path, soak: PrometheusServer) -> None:
    directory = make_run(tmp_path / "run-1", STEPS_OF_36_HOURS)
    ends = [-100.0, 0.0, 4.0, 10.0, 314.159, 3600.0, 50_033.0, 50_400.0, EVER]
    results = [collect_telemetry(directory, soak.address, LOAD_START + end, PATIENCE_SECONDS) for end in ends]
    assert [bool(result.parts) for result in results] == [False, True, False, True, True, True, True, True, True]
    assert_no_row_twice(directory)
    assert_everything_is_home(directory)


def test_telemetry_missed_while_prometheus_is_down_is_a_gap_and_collected_later(
    tmp_path: Path, soak: PrometheusServer
) -> None:
    directory = make_run(tmp_path / "run-1", STEPS_OF_36_HOURS)
    first, second = LOAD_START + 40_000, LOAD_START + 80_000
    assert collect_telemetry(directory, soak.address, first, PATIENCE_SECONDS).missing == ""
    soak.kill()
    try:
        refused = collect_telemetry(directory, soak.address, second, PATIENCE_SECONDS)
    finally:
        soak.start()
    assert "does not answer" in refused.missing
    telemetry = read(directory)
    assert telemetry is not None
    assert [(gap.start, gap.end, gap.reason) for gap in telemetry.gaps] == [(first + 10, second, refused.missing)]
    assert the_one(telemetry, "operations_total").times[-1] == first
    assert collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS).missing == ""
    assert_no_row_twice(directory)
    assert_everything_is_home(directory)


def test_a_kill_at_any_moment_loses_no_part_and_doubles_none(tmp_path: Path, soak: PrometheusServer) -> None:
    directory = make_run(tmp_path / "run-1", STEPS_OF_36_HOURS)
    home = directory / DIRECTORY
    home.mkdir()
    moments = random.Random(5)
    command = [sys.executable, "-m", "cliffwatch.telemetry", str(directory), "--prometheus", soak.url]
    for _ in range(5):
        before = part_names(home)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(lambda: len(part_names(home)) > len(before), "a further part")  # noqa: B023 - called at once
        with suppress(subprocess.TimeoutExpired):
            process.wait(moments.uniform(0, 0.1))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        telemetry = read(directory)
        assert telemetry is not None
        assert telemetry.faults == ()
        assert telemetry.gaps != ()
        assert part_names(home)[: len(before)] == before
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert_no_row_twice(directory)
    assert_everything_is_home(directory)
    assert list(home.glob(".part-*")) == []


def test_a_full_disk_leaves_no_half_part_and_what_was_there(
    tmp_path: Path, soak: PrometheusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make_run(tmp_path / "run-1", STEPS_OF_36_HOURS)
    collect_telemetry(directory, soak.address, LOAD_START + 40_000, PATIENCE_SECONDS)
    before = part_names(directory / DIRECTORY)

    def is_full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", is_full)
        with pytest.raises(OSError, match="No space left"):
            collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS)
        patched.setattr("cliffwatch.base.durable.write_durably", lambda path, content: path.write_text(content))
        with pytest.raises(OSError, match="No space left"):
            collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS)
    assert part_names(directory / DIRECTORY) == before
    assert collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS).missing == ""
    assert_everything_is_home(directory)


def test_a_part_that_is_gone_comes_home_again(tmp_path: Path, soak: PrometheusServer) -> None:
    directory = make_run(tmp_path / "run-1", STEPS_OF_36_HOURS)
    collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS)
    (directory / DIRECTORY / "part-000017.parquet").unlink()
    telemetry = read(directory)
    assert telemetry is not None
    (gap,) = telemetry.gaps
    assert (gap.end - gap.start, gap.reason) == ((PART_POINTS - 1) * 10, "part-000017.parquet is missing or damaged")
    assert collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS).parts == 1
    assert_everything_is_home(directory)


def test_two_at_once_take_it_home_once(tmp_path: Path, soak: PrometheusServer) -> None:
    directory = make_run(tmp_path / "run-1", STEPS_OF_36_HOURS)
    command = [sys.executable, "-m", "cliffwatch.telemetry", str(directory), "--prometheus", soak.url]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    parts = [json.loads(process.communicate(timeout=PATIENCE_SECONDS)[0])["parts"] for process in processes]
    assert sorted(parts) == [0, STEPS_OF_36_HOURS // PART_POINTS + 1]
    assert_everything_is_home(directory)


def test_a_lost_index_is_made_again_from_the_parts(tmp_path: Path, soak: PrometheusServer) -> None:
    directory = make_run(tmp_path / "run-1", STEPS_OF_36_HOURS)
    collect_telemetry(directory, soak.address, LOAD_START + 100_000, PATIENCE_SECONDS)
    index = directory / DIRECTORY / "index.json"
    whole = index.read_text()
    for damaged in (None, "", "{", '{"start": 1, "step_seconds": 0}', whole.replace('"first"', '"x"')[:-40]):
        index.unlink() if damaged is None else index.write_text(damaged)
        telemetry = read(directory)
        assert telemetry is not None
        assert len(the_one(telemetry, "operations_total").times) == 10_001
        assert telemetry.gaps == ()
        assert collect_telemetry(directory, soak.address, LOAD_START + 100_000, PATIENCE_SECONDS).parts == 0
    assert collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS).missing == ""
    assert_everything_is_home(directory)


def test_a_run_that_is_not_scraped_is_reported(tmp_path: Path, soak: PrometheusServer) -> None:
    directory = make_run(tmp_path / "run-1", 360, window_seconds=1.0)
    order = (directory / "order.json").read_text()
    (directory / "order.json").write_text(order.replace('"run-1"', '"run-3"'))
    (directory / "facts.json").write_text('{"drives": []}')
    result = collect_telemetry(directory, soak.address, EVER, PATIENCE_SECONDS)
    assert (result.rows, result.missing.startswith("Prometheus has nothing of this run")) == (0, True)


def test_before_the_load_there_is_nothing_to_take(tmp_path: Path) -> None:
    directory = make_run(tmp_path / "run-1", 30)
    events = (directory / "events.jsonl").read_text().splitlines(keepends=True)
    (directory / "events.jsonl").write_text("".join(events[:3]))
    assert collect_telemetry(directory, PrometheusAddress("http://127.0.0.1:1"), EVER, PATIENCE_SECONDS).missing == ""
    assert read(directory) is None
