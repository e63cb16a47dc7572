"""What retention deletes is discarded where that is asked for, as the drive itself counts it, and never otherwise."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from testkit.loops import MIB, mounted
from testkit.storage_engine import load_of, run

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.labs.aging.lifecycle import AgingDrive, AttachRequest, attach, detach

SECONDS = 3
#: What is there first, and what of it a load keeps.
LAID_BYTES, KEPT_BYTES = 48 * MIB, 8 * MIB
SMALL: dict[str, Any] = {
    "rate": "2MB",
    "partitions": 2,
    "style_changes": {"segment_size": "1MiB", "segment_jitter": 0, "preallocation": "256KiB"},
}


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[AgingDrive]:
    """A disk whose file system discards nothing by itself."""
    state = tmp_path / "state"
    state.mkdir()
    order = AttachRequest(settings={"capacity": "256MiB", "timing": "off"}, discard=False)
    yield attach(state, "discarding", SystemClock(), order, ProcessIdentity.of(os.getpid()))
    detach(state, "discarding", SystemClock(), delete=True)


def trimmed_bytes(drive: AgingDrive) -> float:
    """What the host has discarded of what it had written, since the drive was made."""
    page = httpx.get(f"{drive.url}/metrics", timeout=10).raise_for_status().text
    (found,) = re.findall(r"^cliffwatch_drive_trimmed_bytes_total\{.*\} (\S+)$", page, re.MULTILINE)
    return float(found)


def discarded_by_a_load(drive: AgingDrive, interval: str | None) -> float:
    """A load that keeps less than is there; the rest is deleted by retention, with its first new segments."""
    assert drive.mount_point is not None
    directory = drive.mount_point / "data"
    laid = load_of(**SMALL, retention_size=f"{LAID_BYTES}B", fill_ratio=1)
    assert run(laid, directory, 1, flags=("--prepare",)).status == 0
    before = trimmed_bytes(drive)
    load = load_of(**SMALL, retention_size=f"{KEPT_BYTES}B", discard_interval=interval)
    outcome = run(load, directory, SECONDS)
    assert (outcome.status, outcome.end.status) == (0, "completed"), outcome.error
    assert outcome.counters["segments_deleted"] >= (LAID_BYTES - KEPT_BYTES) / MIB
    return trimmed_bytes(drive) - before


def test_the_drive_receives_trim_only_where_that_is_asked_for(drive: AgingDrive) -> None:
    assert discarded_by_a_load(drive, None) == 0
    # Less what the file system gave to new segments before the first discard.
    assert discarded_by_a_load(drive, "1s") > 0.8 * (LAID_BYTES - KEPT_BYTES)


def test_a_volume_that_cannot_discard_fails_the_load_with_what_to_do(tmp_path: Path) -> None:
    with mounted("none", tmp_path / "memory", "-t", "tmpfs", "-o", "size=64m") as place:
        load = load_of(**SMALL, retention_size=f"{KEPT_BYTES}B", discard_interval="1s")
        outcome = run(load, place / "data", SECONDS)
    assert outcome.end.status == "failed"
    assert "discard needs root, and a drive and file system that can" in outcome.end.message
