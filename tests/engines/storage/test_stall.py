"""Latency counts from when work was due: a drive that stalls for two seconds is seen with the whole queue behind it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from testkit.storage_engine import Outcome, load_of, running

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.labs.aging.lifecycle import AgingDrive, AttachRequest, attach, detach

pytestmark = pytest.mark.timing(why="how long a stall lasts is held to 2 %")
STALL_SECONDS = 2.0
#: By how much a machine may lengthen it, which has to find a processor for the drive's answers and the load's calls.
#: What is asked of the histograms follows from the length that the stalled calls had.
LONGER_SECONDS = 0.5
SECONDS = 6
BATCHES_PER_SECOND = 400
PARTITIONS = 4
RECORD_BYTES, BATCH_RECORDS = 1024, 4


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[AgingDrive]:
    """A disk that is as fast as it can be, but for the faults that it is given."""
    state = tmp_path / "state"
    state.mkdir()
    order = AttachRequest(settings={"capacity": "512MiB", "timing": "off"})
    yield attach(state, "stalling", SystemClock(), order, ProcessIdentity.of(os.getpid()))
    detach(state, "stalling", SystemClock(), delete=True)


def stalled(drive: AgingDrive, name: str, **changes: Any) -> Outcome:
    """A load during which the drive stalls. Files are made and allocated ahead, so only writes and syncs meet it."""
    assert drive.mount_point is not None
    load = load_of(
        partitions=PARTITIONS,
        rate=f"{BATCHES_PER_SECOND * BATCH_RECORDS * RECORD_BYTES}B",
        batch_records=BATCH_RECORDS,
        retention_size="128MiB",
        style_changes={"segment_size": "16MiB", "preallocation": "16MiB"},
        **changes,
    )
    with running(load, drive.mount_point / name, SECONDS) as at_work:
        for _ in range(4):
            at_work.read_until("window")
        answer = httpx.put(f"{drive.url}/faults", json={"stall_seconds": STALL_SECONDS}, timeout=10)
        assert answer.status_code in (200, 204), answer.text
        outcome = at_work.finish()
    shutil.rmtree(drive.mount_point / name)
    return outcome


def longer(histogram: Histogram, seconds: float) -> int:
    return histogram.count - histogram.cumulative_counts([seconds])[0]


def stall_of(outcome: Outcome) -> float:
    """How long the stalled calls took, in seconds: as long as the drive was set to stall, or a little longer."""
    seconds = outcome.latency("append_service").max_seconds
    assert seconds is not None
    assert 0.98 * STALL_SECONDS <= seconds <= STALL_SECONDS + LONGER_SECONDS
    return seconds


def differences(outcome: Outcome) -> list[str]:
    """Where the histograms are not what follows from the stall's length and the rate, to 2 %."""
    stall = stall_of(outcome)
    append, service = outcome.latency("append"), outcome.latency("append_service")
    (p999,) = append.percentiles_seconds([0.999])
    debt = max(window.gauges["schedule_debt_seconds"] for window in outcome.windows)
    # It is seen at the end of each window of half a second, so once in the last half second of the stall.
    oldest = max(window.gauges["oldest_outstanding_seconds"] for window in outcome.windows)
    slack = 0.02 * stall * BATCHES_PER_SECOND
    # Batches come evenly, so of those due in the stall a share of 1 - t/2 waits for longer than t seconds.
    expected: list[tuple[str, float | None, Any]] = [
        ("appends", append.count, pytest.approx(SECONDS * BATCHES_PER_SECOND, abs=2 * PARTITIONS)),
        ("schedule debt", debt, pytest.approx(stall, abs=0.6)),
        ("oldest outstanding", oldest, pytest.approx(stall - 0.25, abs=0.4)),
        ("p99.9 of append", p999, pytest.approx(stall - 0.001 * SECONDS, rel=0.02)),
        *(
            (
                f"appends longer than {seconds} s",
                longer(append, seconds),
                pytest.approx((stall - seconds) * BATCHES_PER_SECOND, abs=slack),
            )
            for seconds in (0.5, 1.0, 1.5)
        ),
        # Each partition has one call under way, or begins one that is stuck at once.
        ("stalled calls", longer(service, 0.5), pytest.approx(PARTITIONS, abs=PARTITIONS / 2)),
    ]
    return [f"{what}: {found}, not {wanted}" for what, found, wanted in expected if found != wanted]


def test_response_time_has_the_stalls_queue_and_service_time_the_stalled_calls(drive: AgingDrive) -> None:
    outcome = stalled(drive, "data")
    assert outcome.end.status == "completed", outcome.error
    assert outcome.counters["shed_operations"] == 0
    assert differences(outcome) == []


def shed_differences(outcome: Outcome) -> list[str]:
    """Where what was shed is not what follows from the stall and the burst limit, to 5 %."""
    shed = outcome.counters["shed_operations"] / BATCH_RECORDS
    due = outcome.counters["batches"] + shed
    expected: list[tuple[str, float, Any]] = [
        ("shed", shed, pytest.approx((stall_of(outcome) - 0.5) * BATCHES_PER_SECOND, rel=0.05)),
        ("due", due, pytest.approx(SECONDS * BATCHES_PER_SECOND, abs=2 * PARTITIONS)),
    ]
    return [f"{what}: {found}, not {wanted}" for what, found, wanted in expected if found != wanted]


def test_work_overdue_by_more_than_the_burst_limit_is_shed_and_counted(drive: AgingDrive) -> None:
    outcome = stalled(drive, "data", burst_limit="500ms")
    (verified,) = outcome.events("verified")
    assert (verified["lost"], verified["duplicated"]) == (0, 0)
    assert shed_differences(outcome) == []
