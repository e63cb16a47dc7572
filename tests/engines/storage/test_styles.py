"""Each broker's style on a real file system: rate held, segments rolled and deleted, every record there."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from testkit.storage_engine import load_of, run, running, segments, verify
from tests.engines.storage.limits import forbid_io_uring

from cliffwatch.model.window import EngineWindow

STYLES: dict[str, dict[str, Any]] = {
    "redpanda": {},
    "kafka": {"style": "kafka", "style_changes": {"segment_size": "128KiB", "segment_jitter": 0, "threads": 2}},
    "bookkeeper": {
        "style": "bookkeeper",
        "style_changes": {
            "segment_size": "512KiB",
            "journal_segment_size": "512KiB",
            "journal_preallocation": "256KiB",
            "checkpoint_interval": "250ms",
        },
    },
    "odd sizes": {
        "record_sizes": [{"size": "100B", "weight": 3}, {"size": "1001B"}, {"size": "5000B", "weight": 0.5}],
        "batch_records": 7,
        "payload_randomness": 0.5,
        "producers": 5,
    },
    "tails of blocks": {"record_size": "512B", "batch_records": 3},
    "threads": {"style_changes": {"io": "threads"}},
    "two threads": {"style_changes": {"threads": 2}},
}


@pytest.mark.parametrize("name", STYLES)
def test_a_style_keeps_its_rate_and_its_records(name: str, tmp_path: Path) -> None:
    load = load_of(**STYLES[name])
    outcome = run(load, tmp_path / "data", 3)
    assert (outcome.status, outcome.end.status) == (0, "completed"), outcome.error
    assert len(outcome.windows) == 6
    counters = outcome.counters
    batch_bytes = load.mean_record_bytes * load.batch_records
    (ended,) = outcome.events("load_ended")
    due = counters["operations"] + ended["unwritten_records"]
    assert due == pytest.approx(3 * 4e6 / load.mean_record_bytes, abs=2 * load.batch_records)
    assert counters["bytes"] == pytest.approx(counters["operations"] * load.mean_record_bytes, rel=0.02)
    assert counters["errors"] == counters["shed_operations"] == 0
    assert counters["segments_deleted"] > 0
    for latency in ("append", "append_service"):
        assert outcome.latency(latency).count == counters["batches"]
    assert counters["batches"] * load.batch_records == counters["operations"]
    kept = sum(path.stat().st_size for log in range(load.logs) for path in segments(tmp_path / "data", log))
    assert 1024**2 < kept <= 4 * 1024**2 + batch_bytes
    (verified,) = outcome.events("verified")
    assert verified["complete"]
    assert verified["bytes"] == kept
    assert verified["intact"] == pytest.approx(kept / load.mean_record_bytes, rel=0.05)
    assert verify(tmp_path / "data") == verified | {"status": 0}


def test_a_style_writes_the_way_it_says(tmp_path: Path) -> None:
    synced = run(load_of(), tmp_path / "synced", 1).counters
    assert synced["sync_operations"] > 0
    assert synced["written_bytes"] / synced["write_operations"] <= 16 * 1024
    buffered = run(load_of(**STYLES["kafka"]), tmp_path / "buffered", 2)
    assert buffered.counters["sync_operations"] == 0
    assert buffered.counters["write_operations"] == buffered.counters["batches"]
    full = next(path for path in segments(tmp_path / "buffered") if path.stat().st_size == 128 * 1024)
    offsets = full.with_suffix(".index").read_bytes()
    # One entry for each batch of 16 KiB but the first, of a relative offset and a position.
    assert len(offsets) == 8 * (128 // 16 - 1)
    assert offsets[:8] == (16).to_bytes(4) + (16 * 1024).to_bytes(4)
    assert full.with_suffix(".timeindex").stat().st_size == 12 * (128 // 16 - 1)


def test_a_thread_that_writes_itself_does_not_sleep_while_batches_wait(tmp_path: Path) -> None:
    load = load_of(
        style="kafka", partitions=1, rate="100GB", burst_limit="100ms", retention_size="2GiB", verify_size="0B"
    )
    with running(load, tmp_path / "data", 2) as at_work:
        at_work.read_until("window")
        at_work.read_until("window")
        sleeps = sum(_sleeps(task) for task in Path(f"/proc/{at_work.process.pid}/task").iterdir())
        batches = at_work.outcome.counters["batches"]
        at_work.finish()
    assert sleeps < batches / 2


def _sleeps(task: Path) -> int:
    """How often a thread that appends gave the processor up; 0 for the others."""
    lines = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
    return int(lines["voluntary_ctxt_switches"]) if lines["Name"].strip() == "append" else 0


def test_readers_follow_the_end_and_catch_up(tmp_path: Path) -> None:
    load = load_of(tailing_consumers=2, catch_up_rate="2MB", read_size="64KiB")
    outcome = run(load, tmp_path / "data", 3)
    assert outcome.status == 0, outcome.error
    counters = outcome.counters
    assert counters["read_bytes"] == pytest.approx(2 * counters["bytes"] + 3 * 2e6, rel=0.1)
    assert outcome.latency("end_to_end").percentiles_seconds([0.5])[0] is not None
    assert outcome.latency("read").count == counters["read_operations"]


def test_a_load_goes_on_where_a_killed_one_stopped(tmp_path: Path) -> None:
    load = load_of(retention_size="64MiB")
    with running(load, tmp_path / "data", 30) as killed:
        killed.read_until("window")
        window = killed.read_until("window")
        killed.process.kill()
    assert isinstance(window, EngineWindow)
    acknowledged = killed.outcome.counters["operations"]
    assert acknowledged > 0
    again = run(load, tmp_path / "data", 1)
    assert again.end.status == "completed", again.error
    (verified,) = again.events("verified")
    found = {key: verified[key] for key in ("lost", "duplicated", "reordered", "corrupted")}
    assert found == {"lost": 0, "duplicated": 0, "reordered": 0, "corrupted": 0}
    assert verified["intact"] >= acknowledged + again.counters["operations"]


def test_the_initial_fill_is_written_once_and_kept_by_the_load(tmp_path: Path) -> None:
    load = load_of(fill_ratio=0.5, retention_size="16MiB", rate="1MB")
    filled = run(load, tmp_path / "data", 1, flags=("--prepare",))
    assert (filled.status, filled.records) == (0, [])
    before = verify(tmp_path / "data")
    assert before["bytes"] == pytest.approx(8 * 1024**2, rel=0.02)
    run(load, tmp_path / "data", 1, flags=("--prepare",))
    assert verify(tmp_path / "data")["bytes"] == before["bytes"]
    (verified,) = run(load, tmp_path / "data", 1).events("verified")
    assert verified["bytes"] == pytest.approx(before["bytes"] + 1e6, rel=0.1)


def test_a_stop_reports_the_window_in_progress(tmp_path: Path) -> None:
    with running(load_of(), tmp_path / "data", 60, window_seconds=2.0) as at_work:
        at_work.read_until("window")
        at_work.process.send_signal(signal.SIGTERM)
        outcome = at_work.finish()
    assert (outcome.status, outcome.end.status) == (0, "completed")
    *_, last = outcome.windows
    assert last.end - last.start == 2.0
    assert 0 <= last.gauges["measured_seconds"] < 2.0
    (verified,) = outcome.events("verified")
    assert verified["lost"] == 0


def test_reading_back_can_be_asked_for_while_it_goes_on(tmp_path: Path) -> None:
    with running(load_of(), tmp_path / "data", 60) as at_work:
        at_work.read_until("window")
        at_work.process.send_signal(signal.SIGUSR1)
        at_work.read_until("verified")
    (verified,) = at_work.outcome.events("verified")
    assert verified["intact"] > 0
    assert verified["lost"] == verified["duplicated"] == verified["corrupted"] == 0


@pytest.mark.timing(why="what half a second appends is held to a tenth")
def test_rate_steps_and_a_burst_limit(tmp_path: Path) -> None:
    load = load_of(rate_steps=[{"after": "1s", "ratio": 0}, {"after": "2s", "ratio": 2}])
    counters = [window.counters["operations"] for window in run(load, tmp_path / "data", 3, window_seconds=1.0).windows]
    per_second = 4e6 / 1024
    assert counters == [pytest.approx(per_second * ratio, rel=0.05, abs=800) for ratio in (1, 0, 2)]


def test_without_io_uring_threads_write_and_it_says_so(tmp_path: Path) -> None:
    outcome = run(load_of(), tmp_path / "data", 1, preexec=forbid_io_uring)
    assert outcome.status == 0, outcome.error
    (fallback,) = outcome.events("io_fallback")
    assert fallback["io"] == "threads"
    assert os.strerror(1) in fallback["reason"]
    (verified,) = outcome.events("verified")
    assert verified["intact"] > 0
