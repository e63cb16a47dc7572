"""Is the kafka style true? A real broker and the style append the same, and the block layer sees the same."""

from pathlib import Path

import pytest
from testkit import kafka_load as kafka
from testkit.kafka_broker import start_cluster
from testkit.loops import MIB
from testkit.probe import Probe, build, running_probe
from testkit.storage_engine import Outcome, running
from tests.engines.storage.block_layer import BlockTraffic, apart, table, watched_drive

from cliffwatch.engines.storage.load import StorageLoad

SECONDS = 30
PARTITIONS = 24
PRODUCERS = 8
RECORDS_PER_SECOND = 8000
RECORD_BYTES = 1024
#: A producer's usual batch.size. Of records of 1 KiB with their framing it holds 15.
BATCH_BYTES = 16 * 1024
BATCH_SECONDS = 0.1
#: Each partition rolls every three to six seconds, and keeps three full segments. Segments that roll at once share
#: commits of the file system's journal, so both columns have them roll at moments of their own. The broker can do that
#: by time alone.
SEGMENT_BYTES = 2 * MIB
SEGMENT_JITTER = 0.5
SEGMENT_MILLISECONDS = 1000 * SEGMENT_BYTES * PARTITIONS // (RECORDS_PER_SECOND * RECORD_BYTES)
KEPT_SEGMENTS = 3
TOPIC = {
    "segment_bytes": str(2 * SEGMENT_BYTES),
    "segment_ms": str(SEGMENT_MILLISECONDS),
    "segment_jitter_ms": str(round(SEGMENT_JITTER * SEGMENT_MILLISECONDS)),
    "retention_bytes": str(KEPT_SEGMENTS * SEGMENT_BYTES),
}
BOUND = 0.25


def what_a_broker_does(probe: Probe, directory: Path) -> tuple[BlockTraffic, int]:
    """A broker with its log.dirs on a drive, under a steady load; and how many records its batches hold."""
    with watched_drive(probe, directory) as watched:
        settings = {
            "log.dirs": str(watched.mount_point / "logs"),
            # The controller's log, which it syncs twice a second, is no load of clients.
            "metadata.log.dir": str(directory / "metadata"),
            # Retention begins with the load, and does not wait for half a minute.
            "log.initial.task.delay.ms": "1000",
            "log.retention.check.interval.ms": "1000",
        }
        cluster = start_cluster(directory / "cluster", settings=settings)
        try:
            cluster.create_topic("truth", PARTITIONS, **TOPIC)
            before = watched.read()
            outcome = kafka.run(produced(cluster.bootstrap))
            assert outcome.end["status"] == "completed", outcome.events
            seen = watched.since(before, outcome.total("produced_bytes"))
        finally:
            cluster.stop()
    assert outcome.total("produced_records") == pytest.approx(SECONDS * RECORDS_PER_SECOND, rel=0.01)
    return seen, round(outcome.total("produced_records") / outcome.total("produce_batches"))


def produced(bootstrap: str) -> dict[str, object]:
    """The load generator's document."""
    producer = {
        "producers": PRODUCERS,
        "rate": float(RECORDS_PER_SECOND),
        "record_sizes": [{"size_bytes": RECORD_BYTES}],
        "batch_size_bytes": BATCH_BYTES,
        "linger_seconds": BATCH_SECONDS,
    }
    document = kafka.configuration(bootstrap, SECONDS, 1.0, producer=producer, consumer=None)
    return document | {"topics": {"existing": ["truth"]}}


def what_the_style_does(probe: Probe, directory: Path, batch_records: int) -> BlockTraffic:
    """The engine on a drive made alike, which is read while the engine still runs, as it was while the broker did."""
    load = StorageLoad.model_validate(
        {
            "style": "kafka",
            "style_changes": {"segment_size": f"{SEGMENT_BYTES}B", "segment_jitter": SEGMENT_JITTER},
            "partitions": PARTITIONS,
            "producers": PRODUCERS,
            "record_size": f"{RECORD_BYTES}B",
            "batch_records": batch_records,
            "records_per_second": RECORDS_PER_SECOND,
            "rate_steps": [{"after": f"{SECONDS}s", "ratio": 0}],
            # A broker keeps these and the active one, the engine all of them.
            "retention_size": f"{(KEPT_SEGMENTS + 1) * SEGMENT_BYTES * PARTITIONS}B",
            "verify_size": "0B",
        }
    )
    with watched_drive(probe, directory) as watched:
        before = watched.read()
        with running(load, watched.mount_point / "run", SECONDS + 300, window_seconds=1.0) as engine:
            while not is_over(engine.outcome):
                engine.read_until("window")
            seen = watched.since(before, engine.outcome.counters["bytes"])
    return seen


def is_over(outcome: Outcome) -> bool:
    """All that was due is appended: a window came in which nothing was."""
    is_appended = outcome.counters["operations"] > 0.99 * SECONDS * RECORDS_PER_SECOND
    return is_appended and outcome.windows[-1].counters["operations"] == 0


def faults(kafka_seen: BlockTraffic, style_seen: BlockTraffic) -> list[str]:
    """Figures of the style that are further from the broker's than the bound."""
    found = []
    for title, recorded in style_seen.figures.items():
        ratio = recorded / kafka_seen.figures[title]
        if not 1 - BOUND <= ratio <= 1 + BOUND:
            found.append(f"{title}: {ratio:.2f} of the broker's")
    if apart(kafka_seen, style_seen) > BOUND:
        found.append(f"sizes of writes: {apart(kafka_seen, style_seen):.0%} of them are others")
    return found


@pytest.mark.timing(why="another program's load changes how many flushes are shared")
def test_the_kafka_style_is_true(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build()
    with running_probe() as probe:
        kafka_seen, batch_records = what_a_broker_does(probe, tmp_path / "kafka")
        style_seen = what_the_style_does(probe, tmp_path / "style", batch_records)
    # Also in the log of a run that passed.
    with capsys.disabled():
        print("\n" + table({"broker": kafka_seen, "style": style_seen}))
    assert faults(kafka_seen, style_seen) == []
