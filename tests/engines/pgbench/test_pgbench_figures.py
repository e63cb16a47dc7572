"""pgbench's log and the server's statistics, as figures of windows."""

from collections import Counter

import pytest

from cliffwatch.engines.pgbench.readings import Reading, Statistics, waits_for
from cliffwatch.engines.pgbench.transactions import (
    LineBuffer,
    Transaction,
    TransactionWindows,
    parse_line,
)
from cliffwatch.engines.pgbench.watch import reading_interval
from cliffwatch.model.database import (
    CHECKPOINT_BEGUN,
    CHECKPOINT_COMPLETED,
    CLIENT,
    CPU,
    DATA,
    LOCK,
    OTHER,
    SAMPLES,
    WAL,
)


def reading(at: float, checkpoints: int = 0, position: str = "0/1", flushes: int = 0, **sessions: int) -> Reading:
    totals = {"database_checkpoints": checkpoints, "database_checkpoints_requested": 0, "database_wal_flushes": flushes}
    others = (
        "database_wal_bytes",
        "database_wal_write_milliseconds",
        "database_wal_flush_milliseconds",
        "database_checkpoint_write_milliseconds",
        "database_checkpoint_sync_milliseconds",
    )
    totals |= dict.fromkeys((*others, "database_checkpoint_buffers"), 0)
    return Reading(
        at, totals, position, 2.75, 4, Counter({f"database_{name}_sessions": n for name, n in sessions.items()})
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"0 1 4296 0 1795817034 88006 90", Transaction(1795817034.088006, 4296, 90)),
        (b"3 17 812 0 1795817034 5", Transaction(1795817034.000005, 812, None)),
        (b"0 9 failed 0 1795817034 88006 90", Transaction(1795817034.088006, None, 90)),
        (b"0 9 deadlock 0 1795817034 88006", Transaction(1795817034.088006, None, None)),
    ],
)
def test_a_line_of_the_log(line: bytes, expected: Transaction) -> None:
    assert parse_line(line) == expected


@pytest.mark.parametrize("line", [b"", b"0 1 2", b"0 1 5 0 then 7", b"pgbench: error: what"])
def test_a_line_that_is_none_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"invalid|fields"):
        parse_line(line)


def test_the_wall_clock_of_pgbench_is_put_on_the_time_line_of_the_run() -> None:
    assert parse_line(b"0 1 4296 0 1000 500000", -100.25).ended == 900.25


def test_lines_that_arrive_in_pieces() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"0 1 5 0 10") == []
    assert buffer.feed(b" 0\n0 2 5 0 11 0\n0 3") == [b"0 1 5 0 10 0", b"0 2 5 0 11 0"]
    with pytest.raises(ValueError, match="does not end"):
        buffer.feed(b"7" * 5000)


def test_a_transaction_counts_in_the_window_in_which_it_ended() -> None:
    windows = TransactionWindows(100.0, 10.0)
    for ended in (99.9, 100.0, 109.9, 110.0, 125.0):
        windows.add(Transaction(ended, 3000, 1000))
    first, second, third = windows.take(), windows.take(), windows.take()
    assert [each.transactions for each in (first, second, third)] == [2, 1, 1]
    assert first.latency()["transaction"].percentiles_seconds([0.5])[0] == pytest.approx(0.003, rel=0.001)
    assert first.latency()["transaction_service"].percentiles_seconds([0.5])[0] == pytest.approx(0.002, rel=0.001)
    windows.add(Transaction(101.0, 3000, None))
    late = windows.take()
    assert late.transactions == 1, "one that arrived after its window counts in the next"
    assert list(late.latency()) == ["transaction"], "without a rate nothing is late"


def test_a_failed_transaction_is_an_error_and_no_latency() -> None:
    windows = TransactionWindows(100.0, 10.0)
    windows.add(Transaction(101.0, None, 5))
    window = windows.take()
    assert (window.transactions, window.failed, window.latency()) == (0, 1, {})


def test_a_window_of_many_transactions_has_each_of_them() -> None:
    windows = TransactionWindows(0.0, 10.0)
    for number in range(10_000):
        windows.add(Transaction(1.0, number, 0))
    latency = windows.take().latency()["transaction"]
    assert latency.count == 10_000
    assert latency.percentiles_seconds([0.9])[0] == pytest.approx(0.009, rel=0.01)


@pytest.mark.parametrize(
    ("kind", "event", "counter"),
    [
        ("IO", "WALSync", WAL),
        ("IO", "WalSync", WAL),
        ("LWLock", "WALWrite", WAL),
        ("IO", "WALInitWrite", WAL),
        ("IO", "DataFileRead", DATA),
        ("Lock", "transactionid", LOCK),
        ("Client", "ClientRead", CLIENT),
        ("", "", CPU),
        ("LWLock", "BufferContent", OTHER),
        ("IPC", "SyncRep", OTHER),
    ],
)
def test_wait_events_of_a_session_are_mapped_to_their_counter(kind: str, event: str, counter: str) -> None:
    assert waits_for(kind, event) == counter


def test_counters_are_those_between_two_windows() -> None:
    statistics = Statistics(times_flushes=False)
    statistics.add(reading(0.0, flushes=1000, wal=2))
    statistics.add(reading(1.0, flushes=1010, wal=1, cpu=1))
    counters = statistics.counters()
    assert (counters["database_wal_flushes"], counters[SAMPLES]) == (10, 2)
    assert (counters[WAL], counters[CPU], counters[LOCK]) == (3, 1, 0)
    assert "database_wal_flush_milliseconds" not in counters, "what is not timed is absent"
    assert statistics.counters() == {}, "without a reading nothing was measured"
    statistics.add(reading(2.0, flushes=4))
    assert statistics.counters()["database_wal_flushes"] == 4, "a server that was restarted counts from zero"


def test_a_checkpoint_begins_when_it_is_counted_and_ends_when_its_position_moves() -> None:
    statistics = Statistics(times_flushes=True)
    found = [
        *statistics.add(reading(0.0, checkpoints=7, position="0/1")),
        *statistics.add(reading(1.0, checkpoints=8, position="0/1")),
        *statistics.add(reading(3.5, checkpoints=8, position="0/2")),
    ]
    assert [(event.at, event.name, event.detail) for event in found] == [
        (1.0, CHECKPOINT_BEGUN, {"requested": False}),
        (3.5, CHECKPOINT_COMPLETED, {"seconds": 2.75}),
    ]


def test_a_fast_checkpoint_that_is_counted_after_its_end_does_not_begin_again() -> None:
    statistics = Statistics(times_flushes=True)
    found = [
        *statistics.add(reading(0.0, checkpoints=7, position="0/1")),
        *statistics.add(reading(1.0, checkpoints=7, position="0/2")),
        *statistics.add(reading(2.0, checkpoints=8, position="0/2")),
        *statistics.add(reading(3.0, checkpoints=9, position="0/2")),
    ]
    assert [(event.name, event.detail) for event in found] == [
        (CHECKPOINT_COMPLETED, {"seconds": 2.75}),
        (CHECKPOINT_BEGUN, {"requested": False}),
    ]


@pytest.mark.parametrize("window_seconds", [0.1, 1.0, 2.5, 10.0, 60.0])
def test_a_window_has_a_whole_number_of_readings(window_seconds: float) -> None:
    interval = reading_interval(window_seconds)
    assert interval <= 0.25
    assert window_seconds / interval == pytest.approx(round(window_seconds / interval))
