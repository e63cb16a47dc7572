"""What the probe counts is what fio did: each request once, on its device, as its operation."""

import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, loop_drive, reserved_node
from testkit.probe import Probe, Scrape, bucket_distance, control_group, fio, fio_command

LATENCY = "device_latency_seconds"
QUEUE = "queue_seconds"
SIZE = "request_size_bytes"
MISSED = "missed_completions_total"
PUBLISHED_EVERY_SECONDS = 0.25
REALTIME = ("chrt", "--fifo", "50")


def settled(probe: Probe) -> Scrape:
    """A scrape that has all that is over: a moment ago the device may have been another test's."""
    time.sleep(2 * PUBLISHED_EVERY_SECONDS)
    return probe.scrape()


def drive_statistics(drive: LoopDrive) -> dict[str, int]:
    """Requests completed by operation, as the kernel counts them."""
    fields = [int(field) for field in Path(f"/sys/block/{drive.name}/stat").read_text().split()]
    return {"read": fields[0], "write": fields[4], "discard": fields[11], "flush": fields[15]}


def counted(probe: Probe, before: Scrape, device: str, operation: str, expected: int) -> Scrape:
    """The scrape in which the operation, which is over, has been counted `expected` times since `before`.

    A kernel that is very busy does not report every completion, one in a hundred thousand or so. The probe keeps such a
    request in flight, and counts it as missed when the kernel uses it again: with those, the count is exact.
    """
    series = {"device": device, "operation": operation}

    def in_flight(scrape: Scrape) -> int:
        return int(scrape.value("requests_in_flight", **series))

    def accounted(scrape: Scrape) -> tuple[int, int]:
        missed = scrape.value(MISSED, **series) - before.value(MISSED, **series)
        completed = scrape.count(LATENCY, device, operation) - before.count(LATENCY, device, operation)
        # Those of this device's previous user may be missed only now.
        return completed + in_flight(scrape) - in_flight(before) + int(missed), in_flight(scrape)

    after = probe.scrape_when(lambda scrape: accounted(scrape)[0] == expected, accounted)
    if accounted(after)[1]:
        time.sleep(2 * PUBLISHED_EVERY_SECONDS)
        after = probe.scrape()
    assert accounted(after)[0] == expected
    return after


@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize("depth", [1, 32])
def test_requests_are_counted_exactly(probe: Probe, drive: LoopDrive, operation: str, depth: int) -> None:
    before, kernel_before = settled(probe), drive_statistics(drive)[operation]
    with control_group("cliffwatch-test") as group:
        job = fio(drive.node, rw=f"rand{operation}", iodepth=depth, size="32m", cgroup=group)
        own = {"device": drive.name, "operation": operation, "cgroup_id": str(group.stat().st_ino)}
    assert job[operation]["total_ios"] == 8192

    # Other programs look into drives too, at their labels for instance: the kernel's count has their reads as well.
    after = counted(probe, before, drive.name, operation, drive_statistics(drive)[operation] - kernel_before)
    assert after.value("cgroup_requests_total", **own) == 8192
    assert after.value("cgroup_bytes_total", **own) == 32 * MIB
    assert after.count(SIZE, drive.name, operation) - before.count(SIZE, drive.name, operation) >= 8192


def test_sizes_are_those_that_the_drive_is_given(probe: Probe, drive: LoopDrive) -> None:
    before = settled(probe)
    fio(drive.node, rw="write", bs="64k", size="8m")
    after = counted(probe, before, drive.name, "write", 128)
    assert after.quantile(SIZE, drive.name, "write", 0.0001, before) == 65536
    assert after.quantile(SIZE, drive.name, "write", 1, before) == 65536


def test_flushes_are_counted_apart_from_writes(probe: Probe, drive: LoopDrive) -> None:
    before = settled(probe)
    job = fio(drive.node, rw="randwrite", ioengine="psync", size="1m", fsync=2, end_fsync=0)
    flushes = job["sync"]["total_ios"]
    assert flushes > 100

    after = counted(probe, before, drive.name, "flush", flushes)
    assert after.count(LATENCY, drive.name, "write") - before.count(LATENCY, drive.name, "write") == 256
    assert after.count(SIZE, drive.name, "flush") == 0, "a flush has no size"


def test_the_steps_of_a_flush_are_not_counted_twice(probe: Probe, drive: LoopDrive) -> None:
    before, kernel_before = settled(probe), drive_statistics(drive)
    job = fio(drive.node, rw="randwrite", ioengine="psync", size="1m", sync="dsync")
    assert job["write"]["total_ios"] == 256

    flushes = drive_statistics(drive)["flush"] - kernel_before["flush"]
    assert flushes >= 256
    counted(probe, before, drive.name, "flush", flushes)
    counted(probe, before, drive.name, "write", 256)


def test_discards_are_counted(probe: Probe, drive: LoopDrive) -> None:
    before = settled(probe)
    job = fio(drive.node, rw="randtrim", ioengine="psync", bs="64k", size="16m")
    assert job["trim"]["total_ios"] == 256

    after = counted(probe, before, drive.name, "discard", 256)
    assert after.sum(SIZE, drive.name, "discard") - before.sum(SIZE, drive.name, "discard") == 16 * MIB


@pytest.mark.timing(why="compares the clocks of fio and of the kernel")
@pytest.mark.parametrize("operation", ["read", "write"])
def test_percentiles_lie_within_one_bucket_of_those_of_fio(probe: Probe, drive: LoopDrive, operation: str) -> None:
    before, kernel_before = settled(probe), drive_statistics(drive)[operation]
    # Requests large enough for the drive to take most of the time, and a fio that does not wait for a CPU.
    job = fio(drive.node, rw=f"rand{operation}", ioengine="psync", bs="512k", size="64m", loops=8, before=REALTIME)
    assert job[operation]["total_ios"] == 1024
    # Other programs look into drives too; so few reads as theirs move no percentile by more than a bucket.
    after = counted(probe, before, drive.name, operation, drive_statistics(drive)[operation] - kernel_before)

    for percentile, q in (("50.000000", 0.5), ("90.000000", 0.9), ("99.000000", 0.99)):
        told_by_fio = job[operation]["clat_ns"]["percentile"][percentile] / 1e9
        told_by_probe = after.quantile(LATENCY, drive.name, operation, q, before)
        assert bucket_distance(told_by_fio, told_by_probe) <= 1, (percentile, told_by_fio, told_by_probe)


@pytest.mark.timing(why="compares the clocks of fio and of the kernel")
def test_the_latencies_add_up_to_what_fio_waited(probe: Probe, drive: LoopDrive) -> None:
    before = settled(probe)
    job = fio(drive.node, rw="randwrite", ioengine="psync", bs="512k", size="64m", loops=8, before=REALTIME)
    after = counted(probe, before, drive.name, "write", 1024)
    waited = sum(
        after.sum(each, drive.name, "write") - before.sum(each, drive.name, "write") for each in (LATENCY, QUEUE)
    )
    assert 0.5 < waited / (1024 * job["write"]["lat_ns"]["mean"] / 1e9) < 1


def test_bounds_are_those_of_the_latencies_of_a_run(probe: Probe, drive: LoopDrive) -> None:
    fio(drive.node, rw="read", size="4k")
    after = probe.scrape_when(lambda scrape: scrape.count(LATENCY, drive.name, "read") > 0, lambda scrape: 0)
    bounds = after.bounds(LATENCY, drive.name, "read")
    assert set(bounds) > {2.0**exponent for exponent in range(-15, 7)}
    assert bounds[-1] == float("inf")


def test_devices_are_kept_apart(probe: Probe, drive: LoopDrive, tmp_path: Path) -> None:
    with loop_drive(tmp_path / "other.img", 32 * MIB) as other:
        before = settled(probe)
        fio(drive.node, rw="randwrite", size="4m")
        fio(other.node, rw="randtrim", ioengine="psync", size="2m")
        counted(probe, before, other.name, "discard", 512)
        after = counted(probe, before, drive.name, "write", 1024)
        for device, operation in ((drive, "discard"), (other, "write")):
            assert after.count(LATENCY, device.name, operation) == before.count(LATENCY, device.name, operation)


def test_a_drive_that_is_gone_keeps_its_name(probe: Probe, tmp_path: Path) -> None:
    with reserved_node() as node, loop_drive(tmp_path / "short-lived.img", node=node) as drive:
        fio(drive.node, rw="randwrite", size="1m")
    written = probe.scrape_when(
        lambda scrape: scrape.count(LATENCY, node.name, "write") >= 256, lambda scrape: scrape.series("errors_total")
    )
    assert written.count(LATENCY, node.name, "write") == 256


def test_each_of_very_many_requests_in_flight_counts(probe: Probe, tmp_path: Path) -> None:
    with ExitStack() as stack:
        drives = [stack.enter_context(loop_drive(tmp_path / f"{each}.img", 16 * MIB)) for each in range(8)]
        before = settled(probe)
        loads = [
            subprocess.Popen(
                fio_command(each.node, rw="randwrite", iodepth=128, iodepth_batch=128, size="16m"),
                stdout=subprocess.DEVNULL,
            )
            for each in drives
        ]
        assert [load.wait() for load in loads] == [0] * len(drives)
        for each in drives:
            counted(probe, before, each.name, "write", 4096)


def test_requests_in_flight_are_reported_while_they_are(probe: Probe, drive: LoopDrive) -> None:
    def in_flight(scrape: Scrape) -> float:
        return scrape.value("requests_in_flight", device=drive.name, operation="read")

    load = subprocess.Popen(
        fio_command(drive.node, rw="randread", iodepth=64, time_based=1, runtime=60, size="64m"),
        stdout=subprocess.DEVNULL,
    )
    try:
        # CPUs are read one after the other, so a reading may be off by what happened meanwhile.
        assert in_flight(probe.scrape_when(lambda scrape: in_flight(scrape) > 1, in_flight)) <= 2 * 64
    finally:
        load.terminate()
        load.wait()
    probe.scrape_when(lambda scrape: in_flight(scrape) == 0, in_flight)


def test_queue_time_grows_with_the_depth(probe: Probe, drive: LoopDrive) -> None:
    queue = Path(f"/sys/block/{drive.name}/queue")
    (queue / "scheduler").write_text("mq-deadline")
    (queue / "nomerges").write_text("2")
    means = []
    for depth in (1, 256):
        before = settled(probe)
        job = fio(drive.node, rw="randwrite", bs="16k", iodepth=depth, size="32m")
        after = counted(probe, before, drive.name, "write", job["write"]["total_ios"])
        waited = after.sum(QUEUE, drive.name, "write") - before.sum(QUEUE, drive.name, "write")
        means.append(waited / job["write"]["total_ios"])
    assert means[1] > 10 * means[0]


def test_failed_requests_are_counted_as_errors(probe: Probe, drive: LoopDrive) -> None:
    before = settled(probe)
    os.truncate(drive.file, 0)
    failed = subprocess.run(fio_command(drive.node, rw="read", size="4k"), capture_output=True, check=False)
    assert failed.returncode != 0
    after = probe.scrape_when(
        lambda scrape: scrape.count(LATENCY, drive.name, "read") > before.count(LATENCY, drive.name, "read"),
        lambda scrape: scrape.count(LATENCY, drive.name, "read"),
    )
    errors = [scrape.value("errors_total", device=drive.name, operation="read") for scrape in (before, after)]
    assert errors[1] > errors[0]
    assert after.value("errors_total", device=drive.name, operation="write") == 0


def test_requests_are_separated_by_their_control_group(probe: Probe, drive: LoopDrive) -> None:
    with control_group("cliffwatch-test") as group:
        before = settled(probe)
        fio(drive.node, rw="randwrite", iodepth=8, size="4m", cgroup=group)
        fio(drive.node, rw="randwrite", size="1m")
        after = counted(probe, before, drive.name, "write", 1024 + 256)
        own = {"device": drive.name, "operation": "write", "cgroup_id": str(group.stat().st_ino)}
        assert after.value("cgroup_requests_total", **own) == 1024
        assert after.value("cgroup_bytes_total", **own) == 4 * MIB


def test_no_device_is_left_out(probe: Probe) -> None:
    assert probe.scrape().value("untracked_requests_total") == 0
