"""Counters of /proc/diskstats: read, differenced, added up."""

from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, command

from cliffwatch.machine.diskstats import CountersReset, DeviceCounters, read_counters, sum_counters
from cliffwatch.machine.sysfs import device_number

CURRENT = "259 0 nvme0n1 11 12 13 14000 15 16 17 18000 3 20000 21000 22 23 24 25000 26 27000"


def proc_with(tmp_path: Path, *lines: str) -> Path:
    (tmp_path / "diskstats").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_every_field_is_read(tmp_path: Path) -> None:
    proc = proc_with(tmp_path, "   8       0 sda 1 1 1 1 1 1 1 1 1 1 1", f" {CURRENT}")
    assert read_counters(["259:0", "8:16"], proc) == {
        "259:0": DeviceCounters(
            read_operations=11,
            read_bytes=13 * 512,
            read_milliseconds=14000,
            write_operations=15,
            write_bytes=17 * 512,
            write_milliseconds=18000,
            discard_operations=22,
            discard_bytes=24 * 512,
            discard_milliseconds=25000,
            flush_operations=26,
            flush_milliseconds=27000,
            in_flight=3,
            weighted_milliseconds=21000,
        )
    }


@pytest.mark.parametrize(("columns", "discards", "flushes"), [(14, 0, 0), (18, 22, 0), (20, 22, 26)])
def test_kernels_that_count_less_are_read(tmp_path: Path, columns: int, discards: int, flushes: int) -> None:
    proc = proc_with(tmp_path, " ".join(CURRENT.split()[:columns]))
    counters = read_counters(["259:0"], proc)["259:0"]
    assert (counters.write_operations, counters.discard_operations, counters.flush_operations) == (
        15,
        discards,
        flushes,
    )


def test_a_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    proc = proc_with(tmp_path, "8 0 sda 1 1 1", "8", "", CURRENT)
    assert list(read_counters(["259:0", "8:0"], proc)) == ["259:0"]


HEAD, PATHS = "259 13 nvme3n1", ("0 0 nvme3c33n1", "0 0 nvme3c34n1")


@pytest.mark.parametrize("at_head", ["0 0 0 0 0 0 0 0 0 0 0", "0 0 0 0 30 0 800 70 0 70 70"])
def test_a_drive_with_paths_counts_what_they_count_and_nothing_twice(tmp_path: Path, at_head: str) -> None:
    """Linux counts at the drive itself since 6.4 only, and at its paths always."""
    own = " ".join(CURRENT.split()[3:])
    path = "0 0 0 0 10 0 400 30 2 40 50"
    proc = proc_with(tmp_path, CURRENT, f"{HEAD} {at_head}", *(f"{each} {path}" for each in PATHS), f"259 1 sdc {own}")
    counters = read_counters(["259:0", "259:13"], proc)
    assert counters["259:0"].write_operations == 15
    head = counters["259:13"]
    assert (head.write_operations, head.write_bytes, head.write_milliseconds) == (20, 800 * 512, 60)
    assert (head.in_flight, head.weighted_milliseconds) == (4, 100)


def test_a_direct_write_is_counted_to_the_byte(drive: LoopDrive) -> None:
    number = device_number(drive.node)
    assert number is not None
    before = read_counters([number])[number]
    command("dd", "if=/dev/zero", f"of={drive.node}", "bs=64K", "count=16", "oflag=direct")
    # The request is counted when it completes, and it has: the write was direct.
    written = read_counters([number])[number] - before
    assert (written.write_operations, written.write_bytes) == (16, MIB)


def test_in_flight_stays_a_state() -> None:
    assert (DeviceCounters(in_flight=2) - DeviceCounters(in_flight=5)).in_flight == 2


def test_times_that_wrapped_at_32_bits_of_milliseconds_go_on() -> None:
    earlier, later = DeviceCounters(write_milliseconds=4_294_967_000), DeviceCounters(write_milliseconds=500)
    assert (later - earlier).write_milliseconds == 796
    assert (earlier - earlier).write_milliseconds == 0
    # The same holds for sums of which only one part wrapped.
    others = DeviceCounters(write_milliseconds=4_000_000_100)
    assert ((later + others) - (earlier + others)).write_milliseconds == 796


def test_counters_of_another_device_are_not_differenced() -> None:
    with pytest.raises(CountersReset, match="write_bytes went from 1024 to 512"):
        DeviceCounters(write_bytes=512) - DeviceCounters(write_bytes=1024)


def test_devices_add_up(tmp_path: Path) -> None:
    proc = proc_with(tmp_path, CURRENT, CURRENT.replace("259 0 nvme0n1", "259 4 nvme1n1"))
    total = sum_counters(read_counters(["259:0", "259:4"], proc))
    assert (total.write_bytes, total.write_milliseconds, total.in_flight) == (2 * 17 * 512, 36_000, 6)
    assert sum_counters([]) == DeviceCounters()
