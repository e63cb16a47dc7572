"""What the report says of a database's transactions: what they waited for, and whether a checkpoint slowed them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit.recorded_runs import JournalPlan, at_window, make_journal
from tests.report.documents import document_of
from tests.report.pages import page_of

from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventType

TARGET = "postgres://soak@127.0.0.1:5432/soak"
#: A second of 100 transactions, 8 ms each once they began: 0.8 sessions are in one at a time.
COUNTERS = {
    "operations": 100,
    "errors": 0,
    "database_samples": 4,
    "database_wal_sessions": 2,
    "database_data_sessions": 0,
    "database_lock_sessions": 0,
    "database_client_sessions": 0,
    "database_cpu_sessions": 1,
    "database_other_sessions": 0,
    "database_wal_flushes": 90,
    "database_wal_write_milliseconds": 40,
    "database_wal_flush_milliseconds": 410,
    "device_write_operations": 250,
    "device_write_milliseconds": 500,
    "device_flush_operations": 80,
    "device_flush_milliseconds": 320,
    "device_written_bytes": 2_000_000,
}


def latency(seconds: float) -> dict[str, Histogram]:
    nanoseconds = round(seconds * 1e9)
    response = Histogram.from_values({nanoseconds + 1_000_000: 100})
    return {"transaction": response, "transaction_service": Histogram.from_values({nanoseconds: 100})}


def plan(slow: Callable[[int], bool] = lambda index: False, **changes: Any) -> JournalPlan:
    given: dict[str, Any] = {
        "windows": 300,
        "window_seconds": 1.0,
        "baseline_windows": 60,
        "target": TARGET,
        "engine": "pgbench",
        "counters": lambda index: dict(COUNTERS),
        "latency": lambda index: latency(0.08 if slow(index) else 0.008),
    }
    return JournalPlan(**given | changes)


def checkpoint(begun: float, completed: float) -> tuple[Event, ...]:
    """Events of a checkpoint from one window to another."""
    at = at_window(plan(), 0)
    return (
        Event(at + begun, EventType.ENGINE, "checkpoint_begun", {"requested": False}),
        Event(at + completed, EventType.ENGINE, "checkpoint_completed", {"seconds": completed - begun}),
    )


def test_the_time_of_a_transaction_is_divided_by_what_it_waited_for(tmp_path: Path) -> None:
    document = document_of(make_journal(tmp_path, plan(events=checkpoint(60, 180))))
    load, baseline, soak, within, between = document["transactions"]["rows"]
    assert (load["span"], baseline["phase"], soak["phase"]) == ("load", "baseline", "soak")
    assert (within["span"], between["span"]) == ("checkpoint", "between_checkpoints")
    assert (within["transactions"], between["transactions"]) == (12_000, 18_000)
    assert (within["checkpoint_ratio"], between["checkpoint_ratio"]) == (1.0, 0.0)
    assert load["transactions"] == 30_000
    assert load["response_seconds"] == pytest.approx(0.009, rel=0.01)
    assert load["service_seconds"] == pytest.approx(0.008, rel=0.01)
    # Half a session at a time waits for the WAL, and 100 transactions are completed a second.
    assert load["wal_seconds"] == 0.005
    assert load["cpu_seconds"] == 0.0025
    assert load["wal_flushes"] == 0.9
    assert load["wal_flush_seconds"] == 0.0045
    assert (load["drive_writes"], load["drive_write_seconds"]) == (2.5, 0.002)
    assert (load["drive_flushes"], load["drive_flush_seconds"]) == (0.8, 0.004)
    assert (baseline["checkpoint_ratio"], soak["checkpoint_ratio"]) == (0.0, 0.5)


def test_bytes_that_no_engine_counts_are_absent_and_not_zero(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, plan(counts_bytes=False))
    assert "bytes_per_second" not in document_of(directory)["throughput"]["load"]
    assert "0 B/s" not in page_of(directory)


def test_the_page_says_it_in_a_sentence_and_a_table(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, plan())
    sentence = document_of(directory)["transactions"]["sentence"]
    assert sentence == (
        "A transaction took 8 ms on average: 5 ms (62 %) waiting for the WAL, 2.5 ms (31 %) computing. The server "
        "flushed its WAL 0.9 times for each, which took 4.5 ms. The drive completed 2.5 writes for each, in 2 ms on "
        "average, and 0.8 flushes, in 4 ms."
    )
    page = page_of(directory)
    assert sentence in page
    assert "in a checkpoint" in page


def test_the_latency_during_checkpoints_is_reported(tmp_path: Path) -> None:
    events = tuple(event for begun in range(10, 300, 60) for event in checkpoint(begun, begun + 6))
    directory = make_journal(tmp_path, plan(slow=lambda index: index % 60 in range(10, 16), events=events))
    document = document_of(directory)
    words = "While a checkpoint was written, 10 % of the time, the p99 was 81 ms, else 9 ms."
    assert document["transactions"]["sentence"].endswith(words)
    assert "during checkpoints" in page_of(directory)
    assert not [each for each in document["findings"] if each["kind"] == "cliff"]


def test_the_little_time_between_checkpoints_is_not_compared_in_a_sentence(tmp_path: Path) -> None:
    events = tuple(event for begun in range(0, 300, 20) for event in checkpoint(begun, begun + 18))
    document = document_of(make_journal(tmp_path, plan(events=events)))
    assert "checkpoint" not in document["transactions"]["sentence"]


def test_a_checkpoint_that_is_seen_only_at_its_end_began_when_the_server_says(tmp_path: Path) -> None:
    completed = checkpoint(60, 180)[1:]
    rows = document_of(make_journal(tmp_path, plan(events=completed)))["transactions"]["rows"]
    assert [row["checkpoint_ratio"] for row in rows[:3]] == [0.4, 0.0, 0.5]


def test_windows_in_which_the_server_did_not_answer_are_left_out(tmp_path: Path) -> None:
    def counters(index: int) -> dict[str, int]:
        return dict(COUNTERS) if index % 2 else {"operations": 0, "errors": 0}

    (load, *_) = document_of(make_journal(tmp_path, plan(counters=counters)))["transactions"]["rows"]
    assert load["wal_seconds"] == 0.005
    assert load["transactions"] == 15_000


def test_another_load_has_no_such_section(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, JournalPlan())
    assert "transactions" not in document_of(directory)
    assert "in a checkpoint" not in page_of(directory)


def test_a_rise_that_comes_with_a_checkpoint_is_the_checkpoint(tmp_path: Path) -> None:
    events = checkpoint(150, 300)
    document = document_of(make_journal(tmp_path, plan(slow=lambda index: index >= 150, events=events)))
    (finding,) = document["findings"]
    assert finding["cause"]["name"] == "checkpoint"
    assert "The database wrote a checkpoint more of the time: from 0 % to 100 %." in finding["cause"]["evidence_for"]


def test_a_rise_between_checkpoints_that_are_written_all_the_time_is_not_theirs(tmp_path: Path) -> None:
    events = tuple(event for begun in range(0, 300, 20) for event in checkpoint(begun, begun + 18))
    document = document_of(make_journal(tmp_path, plan(slow=lambda index: index >= 150, events=events)))
    (finding,) = document["findings"]
    assert finding["cause"]["name"] != "checkpoint"


def test_device_writes_of_the_server_are_not_attributed_to_a_noisy_neighbour(tmp_path: Path) -> None:
    def counters(index: int) -> dict[str, int]:
        more = 10 if index >= 150 else 1
        return COUNTERS | {name: more * COUNTERS[name] for name in ("device_write_operations", "device_written_bytes")}

    document = document_of(make_journal(tmp_path, plan(slow=lambda index: index >= 150, counters=counters)))
    (finding,) = document["findings"]
    assert finding["cause"]["name"] == "unknown"
