"""Reading back shows what became of records: lost, doubled, moved, changed."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.storage_engine import load_of, run, running, segments, verify

RECORD_BYTES = 1024
CLEAN = {"lost": 0, "duplicated": 0, "reordered": 0, "corrupted": 0, "status": 0}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that a load has left, with several segments in each log."""
    directory = tmp_path_factory.mktemp("written") / "data"
    assert run(load_of(), directory, 1.5).status == 0
    assert len(segments(directory)) >= 3
    return directory


def findings(directory: Path) -> dict[str, Any]:
    found = verify(directory)
    return {key: found[key] for key in CLEAN}


@pytest.fixture
def damaged(written: Path) -> Iterator[list[Path]]:
    """The segments of the first log, which are as they were when the test has ended."""
    paths = segments(written)
    content = {path: path.read_bytes() for path in paths}
    assert findings(written) == CLEAN
    yield paths
    for path in segments(written):
        path.unlink()
    for path, bytes_ in content.items():
        path.write_bytes(bytes_)


def test_a_flipped_bit_is_corruption(written: Path, damaged: list[Path]) -> None:
    content = bytearray(damaged[1].read_bytes())
    bit = random.Random(1).randrange(len(content) * 8)
    content[bit // 8] ^= 1 << (bit % 8)
    damaged[1].write_bytes(content)
    assert findings(written) == CLEAN | {"corrupted": 1, "status": 1}


def test_a_dropped_record_is_lost(written: Path, damaged: list[Path]) -> None:
    content = damaged[1].read_bytes()
    at = 5 * RECORD_BYTES
    damaged[1].write_bytes(content[:at] + content[at + RECORD_BYTES :])
    assert findings(written) == CLEAN | {"lost": 1, "status": 1}


def test_a_block_of_zeroes_is_lost(written: Path, damaged: list[Path]) -> None:
    content = bytearray(damaged[0].read_bytes())
    content[8192:12288] = bytes(4096)
    damaged[0].write_bytes(content)
    assert findings(written) == CLEAN | {"lost": 4, "status": 1}


def test_a_duplicated_segment_is_reported(written: Path, damaged: list[Path]) -> None:
    records = damaged[0].stat().st_size // RECORD_BYTES
    copy = damaged[0].with_name(f"{int(damaged[1].stem) + 1:020}.log")
    copy.write_bytes(damaged[0].read_bytes())
    assert findings(written) == CLEAN | {"duplicated": records, "status": 1}


def test_a_segment_that_is_gone_is_lost(written: Path, damaged: list[Path]) -> None:
    records = damaged[1].stat().st_size // RECORD_BYTES
    damaged[1].unlink()
    assert findings(written) == CLEAN | {"lost": records, "status": 1}


def test_segments_that_changed_places_are_reordered(written: Path, damaged: list[Path]) -> None:
    one, other = damaged[0].read_bytes(), damaged[1].read_bytes()
    damaged[0].write_bytes(other)
    damaged[1].write_bytes(one)
    found = findings(written)
    assert found["reordered"] == len(one) // RECORD_BYTES
    assert (found["lost"], found["duplicated"], found["corrupted"]) == (0, 0, 0)


def test_a_record_of_another_partition_is_corruption(written: Path, damaged: list[Path]) -> None:
    foreign = segments(written, 1)[0].read_bytes()[:RECORD_BYTES]
    content = damaged[1].read_bytes()
    damaged[1].write_bytes(foreign + content[RECORD_BYTES:])
    assert findings(written) == CLEAN | {"corrupted": 1, "status": 1}


def test_damage_among_records_of_various_lengths(tmp_path: Path) -> None:
    load = load_of(record_sizes=[{"size": "100B"}, {"size": "900B"}])
    run(load, tmp_path / "data", 1)
    (path, *_) = segments(tmp_path / "data")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    found = findings(tmp_path / "data")
    # What was damaged cannot say how long it was: it is found again where the next record begins.
    assert (found["corrupted"], found["lost"], found["duplicated"]) == (1, 0, 0) or (
        found["corrupted"],
        found["lost"],
    ) == (1, 1)
    assert found["status"] == 1


def test_damage_under_way_fails_the_load(tmp_path: Path) -> None:
    with running(load_of(retention_size="64MiB"), tmp_path / "data", 2) as at_work:
        at_work.read_until("window")
        at_work.read_until("window")
        full = segments(tmp_path / "data", 3)[0]
        with full.open("r+b") as file:
            file.seek(40)
            file.write(b"\xff" * 8)
        outcome = at_work.finish()
    assert outcome.end.status == "failed"
    assert not outcome.end.restart
    assert "1 corrupted" in outcome.end.message
    assert outcome.status == 1


def test_a_sample_is_no_longer_than_asked_for(tmp_path: Path) -> None:
    (verified,) = run(load_of(verify_size="1MiB"), tmp_path / "data", 1.5).events("verified")
    assert 0 < verified["bytes"] <= 2 * 1024**2
    assert not verified["complete"]
    assert run(load_of(verify_size="0B"), tmp_path / "none", 0.5).events("verified") == []
