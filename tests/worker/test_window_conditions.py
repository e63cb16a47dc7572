"""What a window carries besides the engine's own words: the drives below it, the engine's process, the host."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.captured_host import PAGE_BYTES, Ticking, captured_interval
from testkit.loops import MIB, LoopDrive, command, loop_drive
from testkit.waiting import wait_until
from testkit.worker_runs import execute_run, queue_run, start_worker, window_count

from cliffwatch.app.launcher import request_stop
from cliffwatch.journal import JournalReader
from cliffwatch.machine.diskstats import DeviceCounters
from cliffwatch.machine.sysfs import device_number
from cliffwatch.part import device_io as device_io_module
from cliffwatch.part.device_io import DeviceIo
from cliffwatch.part.host import HostConditions
from cliffwatch.part.interval import Interval

CGROUPS = Path("/sys/fs/cgroup")
#: Of the synthetic engine.
OWN_GAUGES = {
    "oldest_outstanding_seconds",
    "schedule_debt_seconds",
    "requested_operations_per_second",
    "requested_bytes_per_second",
}
HOST_GAUGES = {"host_cpu_busy_ratio", "host_cpu_steal_ratio", "host_dirty_bytes", "host_dirty_limit_bytes"}


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[LoopDrive]:
    with loop_drive(tmp_path / "drive.img") as attached:
        yield attached


def write_directly(drive: LoopDrive, blocks: int) -> None:
    command("dd", "if=/dev/zero", f"of={drive.node}", "bs=64K", f"count={blocks}", "oflag=direct")


def number_of(drive: LoopDrive) -> str:
    number = device_number(drive.node)
    assert number is not None
    return number


def write_milliseconds(drive: LoopDrive) -> int:
    """What the kernel says that the drive's writes took so far, added up."""
    return int(Path(f"/sys/dev/block/{number_of(drive)}/stat").read_text().split()[7])


def test_of_one_drive_there_are_totals_to_the_request(drive: LoopDrive) -> None:
    device_io = DeviceIo([number_of(drive)], Ticking())
    write_directly(drive, 16)
    device_io.restart()
    before = write_milliseconds(drive)
    write_directly(drive, 8)
    interval = device_io.since_last()
    assert interval.counters["device_write_operations"] == 8
    assert interval.counters["device_written_bytes"] == MIB // 2
    assert interval.counters["device_write_milliseconds"] == write_milliseconds(drive) - before
    assert interval.gauges["device_queue_depth"] == pytest.approx(
        (interval.counters["device_write_milliseconds"] + interval.counters["device_read_milliseconds"]) / 10_000,
        abs=0.01,
    )
    assert not [name for name in interval.counters if not name.startswith("device_")]
    # Enough of them to take a millisecond on any machine.
    before = write_milliseconds(drive)
    write_directly(drive, 500)
    took = write_milliseconds(drive) - before
    assert device_io.since_last().counters["device_write_milliseconds"] == took > 0


def test_of_several_drives_each_is_reported_separately_and_all_add_up(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "a.img") as first, loop_drive(tmp_path / "b.img") as second:
        device_io = DeviceIo([number_of(first), number_of(second)], Ticking())
        write_directly(first, 12)
        write_directly(second, 4)
        interval = device_io.since_last()
    assert interval.counters[f"{number_of(first)}.write_operations"] == 12
    assert interval.counters[f"{number_of(second)}.write_operations"] == 4
    assert interval.counters[f"{number_of(second)}.written_bytes"] == MIB // 4
    assert interval.counters["device_write_operations"] == 16
    assert f"{number_of(first)}.queue_depth" in interval.gauges


@pytest.mark.parametrize("numbers", [[], ["0:0"]])
def test_of_no_drive_or_one_that_is_gone_nothing_is_said(numbers: list[str]) -> None:
    interval = DeviceIo(numbers, Ticking()).since_last()
    assert (interval.counters, interval.gauges) == ({}, {})


def test_counters_that_never_moved_are_absent_and_those_that_began_to_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVMe heads before Linux 6.4 count nothing: zeros would say that the page cache served the run."""
    counters = {"259:13": DeviceCounters()}
    monkeypatch.setattr(device_io_module, "read_counters", lambda _: dict(counters))
    device_io = DeviceIo(["259:13"], Ticking())
    assert device_io.since_last() == Interval()
    counters["259:13"] = DeviceCounters(write_operations=5)
    assert device_io.since_last().counters["device_write_operations"] == 5
    assert device_io.since_last().counters["device_write_operations"] == 0
    # A drive that was not used yet does not take the others' figures away.
    counters["259:14"] = DeviceCounters()
    both = DeviceIo(["259:13", "259:14"], Ticking())
    assert both.since_last().counters["259:14.write_operations"] == 0


def test_a_directory_run_has_the_engine_and_the_host_in_every_window_but_the_last(tmp_path: Path) -> None:
    # Some 3 ms of CPU a window, so that there is more to count than the kernel's tick of 10 ms.
    directory = queue_run(tmp_path / "real", {"operations_per_second": 100_000}, window="200ms", phases={"soak": "1h"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 15, "fifteen windows")
    windows = list(JournalReader(directory).windows())
    request_stop(directory, False)
    assert worker.wait(60) == 0
    # The engine was there when each of them was read.
    for window in windows:
        assert {"engine_cpu_milliseconds", "engine_written_bytes"} <= set(window.counters)
        assert set(window.gauges) >= HOST_GAUGES
        for resource in ("io", "cpu"):
            is_counted = Path("/proc/pressure", resource).exists()
            assert (f"host_{resource}_pressure_ratio" in window.gauges) is is_counted
        assert 0 <= window.gauges["host_cpu_busy_ratio"] <= 1
        assert window.gauges["host_dirty_limit_bytes"] > MIB
    assert sum(window.counters["engine_cpu_milliseconds"] for window in windows) > 0


def test_in_virtual_time_nothing_is_said_of_the_host(tmp_path: Path) -> None:
    directory = _carried_out(tmp_path / "virtual", time="virtual")
    for window in JournalReader(directory).windows():
        assert set(window.counters) == {"operations", "bytes", "errors"}
        assert set(window.gauges) == OWN_GAUGES


def _carried_out(directory: Path, **load: Any) -> Path:
    queue_run(directory, load, window="200ms", phases={"soak": "1s"})
    execute_run(directory)
    return directory


@contextmanager
def limited_group(share: float) -> Iterator[Path]:
    """A control group whose processes get this share of one CPU, in whichever hierarchy this machine has."""
    is_unified = (CGROUPS / "cgroup.controllers").exists()
    group = (CGROUPS if is_unified else CGROUPS / "cpu") / f"cliffwatch-test-{os.getpid()}"
    if is_unified:
        (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    group.mkdir()
    try:
        if is_unified:
            (group / "cpu.max").write_text(f"{round(share * 100_000)} 100000")
        else:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text(str(round(share * 100_000)))
        yield group
    finally:
        group.rmdir()


def test_an_engine_under_a_cpu_limit_is_seen_to_be_throttled() -> None:
    with limited_group(0.1) as group:
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            conditions = HostConditions()
            conditions.restart(busy.pid)
            assert "engine_throttled_milliseconds" not in conditions.since_last().counters
            (group / "cgroup.procs").write_text(str(busy.pid))
            conditions.since_last()
            counters: dict[str, int] = {}
            deadline = time.monotonic() + 30
            while not counters.get("engine_throttled_milliseconds") and time.monotonic() < deadline:
                time.sleep(0.3)
                counters = conditions.since_last().counters
            assert counters["engine_throttled_milliseconds"] > 0
            assert counters["engine_cpu_milliseconds"] > 0
        finally:
            busy.kill()
            busy.wait()


def test_an_engine_that_shares_its_cpu_is_seen_to_wait_for_it() -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    both = [subprocess.Popen(["taskset", "-c", cpu, sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        conditions = HostConditions()
        conditions.restart(both[0].pid)
        waited, deadline = 0, time.monotonic() + 30
        while waited < 200 and time.monotonic() < deadline:
            time.sleep(0.1)
            waited += conditions.since_last().counters["engine_waiting_milliseconds"]
        assert waited >= 200
    finally:
        for each in both:
            each.kill()
            each.wait()


WRITER = [sys.executable, "-c", "import sys; sys.stdin.read(1); print('x' * 8388608, flush=True); sys.stdin.read()"]


@pytest.mark.parametrize(
    "command",
    [
        WRITER,
        ["sh", "-c", '"$@"; true', "sh", *WRITER],
        ["sh", "-c", 'sh -c \'"$@"; true\' sh "$@"; true', "sh", *WRITER],
    ],
    ids=["itself", "behind a program", "behind two"],
)
def test_bytes_written_by_the_engine_and_its_child_processes_are_counted(command: list[str], tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        writer = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
        )
        assert writer.stdin is not None
        try:
            conditions = HostConditions()
            conditions.restart(writer.pid)
            writer.stdin.write(b"go")
            writer.stdin.flush()
            written, deadline = 0, time.monotonic() + 30
            while written < 8 * MIB and time.monotonic() < deadline:
                time.sleep(0.05)
                written += conditions.since_last().counters["engine_written_bytes"]
            assert written == pytest.approx(8 * MIB, rel=0.01)
        finally:
            writer.stdin.close()
            writer.wait()


def test_engine_bytes_are_unknown_if_one_of_its_processes_does_not_report_them(tmp_path: Path) -> None:
    for number, io in ((7, "read_bytes: 0\nwrite_bytes: 0\n"), (8, None)):
        process = tmp_path / str(number)
        (process / "task" / str(number)).mkdir(parents=True)
        (process / "task" / str(number) / "children").write_text("8 " if number == 7 else "")
        (process / "stat").write_text(f"{number} (fio) S " + "0 " * 40)
        if io is not None:
            (process / "io").write_text(io)
    (tmp_path / "stat").write_text("cpu 1 0 1 1 0 0 0 0\n")
    conditions = HostConditions(Ticking(), tmp_path, tmp_path)
    conditions.restart(7)
    assert conditions.since_last().counters == {"engine_cpu_milliseconds": 0, "engine_waiting_milliseconds": 0}


def test_every_figure_of_a_kernel_that_has_them_all(tmp_path: Path) -> None:
    interval = captured_interval(tmp_path)
    assert interval.counters == {
        "engine_cpu_milliseconds": 50 * 1000 // os.sysconf("SC_CLK_TCK"),
        "engine_waiting_milliseconds": 30,
        "engine_throttled_milliseconds": 500,
        "engine_written_bytes": 8192,
        "engine_read_bytes": 0,
    }
    assert interval.gauges == {
        "host_cpu_busy_ratio": 0.6,
        "host_cpu_steal_ratio": 0.1,
        "host_io_pressure_ratio": 0.2,
        "host_cpu_pressure_ratio": 0.4,
        "host_dirty_bytes": 10 * PAGE_BYTES,
        "host_writeback_bytes": 3 * PAGE_BYTES,
        "host_dirty_limit_bytes": 100 * PAGE_BYTES,
    }
