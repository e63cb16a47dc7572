"""Causes that are made on real engines, real file systems and a disk, and what is found of them.

The disk is the aging drive, so that how long a write takes is the model's and not the machine's that tests run on.
"""

import json
import os
import time
from pathlib import Path
from statistics import median

from testkit.kafka_broker import start_cluster
from testkit.kafka_load import Outcome, configuration, read_until, started
from testkit.worker_runs import queue_run
from tests.causes.disturbances import DriveWatch, ProcessorLimit, hammer, limit_dirty_pages, neighbours
from tests.causes.exchange import Broker, Client, Network, write_windows
from tests.causes.stage import AFTER, BEFORE, ROOMY, DisturbedRun, executing, fio_run, halfway, reported
from tests.labs.aging.machine import State

from cliffwatch.analysis.causes import Cause
from cliffwatch.journal import JournalWindow
from cliffwatch.labs.aging.lifecycle import AgingDrive, AttachRequest
from cliffwatch.model.target import DirectoryTarget
from cliffwatch.model.window import parse_engine_line

#: A tenth of what the drive can take.
MODEST = "[w]\nrw=randwrite\nbs=16k\nsize=64m\ndirect=1\nioengine=psync\nrate_iops=150\n"
MIB = 2**20


def assert_found(made: Cause, what: DisturbedRun) -> None:
    diagnosis = what.diagnosis()
    assert diagnosis.first.cause is made, reported(diagnosis)


def rate(window: JournalWindow) -> float:
    return window.counters["written_bytes"] / window.seconds


def test_a_drive_that_runs_out_of_clean_blocks(tmp_path: Path, state: State) -> None:
    """A small drive, nearly full, overwritten at random: what it writes to flash soon exceeds what it is given."""
    drive = state.attach(AttachRequest(ROOMY | {"capacity": "128MiB"}))
    job = "[w]\nrw=randwrite\nbs=16k\nsize=92m\ndirect=1\nioengine=psync\nrate=8m\n"
    with DriveWatch(drive) as watch, executing(fio_run(tmp_path, drive, job)) as run:
        run.wait_for(BEFORE)
        run.wait_until(lambda windows: watch.amplification() > 1.5, "garbage collection")
        onset = run.windows()[-1].end
        run.wait_until(lambda windows: windows[-1].end >= onset + AFTER, "what comes after")
        load_start = run.windows()[0].start
    watch.write_telemetry(run.journal, load_start)
    assert_found(Cause.GARBAGE_COLLECTION, DisturbedRun(run.journal, onset))


def test_an_engine_that_gets_too_little_processor_time(tmp_path: Path, state: State) -> None:
    """On a drive that answers at once, an engine that needs a tenth of a processor and gets a fiftieth."""
    drive = state.attach(AttachRequest(ROOMY | {"timing": "off"}))
    job = "[w]\nrw=randwrite\nbs=4k\nsize=64m\ndirect=1\nioengine=psync\nrate_iops=1500\n"
    limit = ProcessorLimit(f"cliffwatch-test-{os.getpid()}", share=0.02)
    try:
        made = halfway(fio_run(tmp_path, drive, job), limit.hold_back)
    finally:
        limit.remove()
    assert_found(Cause.CLIENT, made)


def test_a_page_cache_that_is_full(tmp_path: Path, state: State) -> None:
    """Buffered writes at four times what the drive can take, until as much is dirty as may be."""
    drive = state.attach(AttachRequest(ROOMY | {"program-latency": "4ms"}))
    limit_dirty_pages(drive, 64 * MIB)
    job = "[w]\nrw=write\nbs=64k\nsize=256m\ndirect=0\nioengine=psync\nrate=20m\n"
    with executing(fio_run(tmp_path, drive, job)) as run:
        run.wait_for(4)
        healthy = median(rate(window) for window in run.windows()[:4])
        run.wait_until(
            lambda windows: len(windows) > 4 and rate(windows[-1]) < 0.7 * healthy, "writers that are held up"
        )
        onset = run.windows()[-1].start
        run.wait_until(lambda windows: windows[-1].end >= onset + AFTER, "what comes after")
    assert_found(Cause.PAGE_CACHE, DisturbedRun(run.journal, onset))


def test_a_store_that_reaches_its_retention(tmp_path: Path, drive: AgingDrive) -> None:
    """Segments are appended to until the oldest ones are deleted for the first time."""
    load = {
        "style": "kafka",
        "style_changes": {"segment_size": "2MiB", "acknowledge": "synced", "threads": 1},
        "partitions": 4,
        "batch_records": 16,
        "rate": "6MiB",
        "retention_size": "64MiB",
        "verify_size": "0B",
    }
    target = DirectoryTarget(path=str(drive.mount_point))
    journal = queue_run(tmp_path / "run", load, target, engine="storage", window="1s", phases={"soak": "2m"})
    with executing(journal) as run:
        run.wait_for(BEFORE)
        run.wait_until(lambda windows: windows[-1].counters["segments_deleted"] > 0, "the first deletion")
        onset = next(each.start for each in run.windows() if each.counters["segments_deleted"] > 0)
        run.wait_until(lambda windows: windows[-1].end >= onset + AFTER, "what comes after")
    assert_found(Cause.RETENTION, DisturbedRun(run.journal, onset, "append"))


def test_a_neighbour_that_hammers_the_same_drive(tmp_path: Path, drive: AgingDrive) -> None:
    with neighbours() as processes:
        made = halfway(fio_run(tmp_path, drive, MODEST), lambda run: processes.append(hammer(drive)))
    assert_found(Cause.NEIGHBOUR, made)


def test_a_broker_that_is_restarted(tmp_path: Path) -> None:
    """A real Kafka broker, killed under a real load, and started again."""
    cluster = start_cluster(tmp_path / "broker")
    outcome = Outcome(0)
    try:
        with started(configuration(cluster.bootstrap, seconds=120.0, window=1.0)) as process:
            read_until(process, outcome, BEFORE)
            onset = time.time()
            cluster.nodes[0].kill()
            cluster.nodes[0].start()
            cluster.nodes[0].wait_ready()
            read_until(process, outcome, BEFORE + AFTER)
            cluster.nodes[0].kill()
    finally:
        cluster.stop()
    journal = queue_run(tmp_path / "run", window="1s", phases={"soak": "2m"})
    write_windows(journal, [parse_engine_line(json.dumps(window)) for window in outcome.windows])
    assert_found(Cause.BROKER, DisturbedRun(journal, onset, "publish"))


def test_a_network_that_becomes_slow(tmp_path: Path) -> None:
    broker = Broker()
    network = Network(broker)
    client = Client(tmp_path, network.port)

    def slow() -> None:
        network.delay_seconds = 0.02

    try:
        onset = client.execute_run(BEFORE + AFTER, BEFORE, slow)
    finally:
        client.close()
        network.close()
        broker.close()
    assert_found(Cause.NETWORK, DisturbedRun(client.journal, onset, "publish"))
