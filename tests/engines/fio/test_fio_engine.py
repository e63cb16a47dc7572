"""The fio engine with the real fio, on files and on a loop device."""

import os
import signal
import stat
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import LoopDrive, loop_drive
from tests.engines.fio.conftest import MakeContext

from cliffwatch.base.errors import Code, Problem
from cliffwatch.engines.contract import EngineContext, EngineFacts, Launch
from cliffwatch.engines.fio import uring
from cliffwatch.engines.fio.engine import FioEngine
from cliffwatch.engines.fio.load import FioLoad
from cliffwatch.engines.fio.run import STOPPED_STATUS
from cliffwatch.engines.fio.stream import OutputStream
from cliffwatch.model.plan import PlannedWrite
from cliffwatch.model.window import EngineEnd, EngineEvent, EngineRecord, EngineWindow

ENGINE = FioEngine()
MIXED = FioLoad(
    job="""
    [global]
    ioengine=psync
    direct=1
    size=8m
    [w]
    rw=write
    bs=16k
    fdatasync=1
    rate_iops=200
    numjobs=2
    [r]
    rw=randread
    bs=4k
    rate_iops=300
    """
)


@dataclass
class Outcome:
    """What a run of the engine gave: records, and fio's own last report."""

    context: EngineContext
    records: list[EngineRecord] = field(default_factory=list)
    raw: bytes = b""

    @property
    def windows(self) -> list[EngineWindow]:
        return [record for record in self.records if isinstance(record, EngineWindow)]

    @property
    def events(self) -> list[str]:
        return [record.name for record in self.records if isinstance(record, EngineEvent)]

    @property
    def end(self) -> EngineEnd:
        end = self.records[-1]
        assert isinstance(end, EngineEnd)
        return end

    def assert_sums_to_last_report(self) -> None:
        """Operations, bytes and latencies of all windows are those that fio reported at its end, to the last one."""
        *_, report = (piece for piece in OutputStream().feed(self.raw) if isinstance(piece, dict))
        counters: Counter[str] = Counter()
        recorded: Counter[str] = Counter()
        for window in self.windows:
            counters.update(window.counters)
            recorded.update({name: histogram.count for name, histogram in window.latency.items()})
        (job,) = report["jobs"]
        expected = {
            "write": job["write"]["total_ios"],
            "read": job["read"]["total_ios"],
            "sync": job["sync"]["lat_ns"]["N"],
        }
        assert {name: counters[f"{name}_operations"] for name in expected} == expected
        assert {name: recorded[name] for name in expected} == expected
        assert counters["written_bytes"] == job["write"]["io_bytes"]
        assert counters["read_bytes"] == job["read"]["io_bytes"]
        assert counters["bytes"] == job["write"]["io_bytes"] + job["read"]["io_bytes"]
        for earlier, later in zip(self.windows, self.windows[1:], strict=False):
            assert earlier.end == later.start


def execute_run(
    context: EngineContext,
    load: FioLoad = MIXED,
    launch: Launch | None = None,
    on_window: Callable[[int, int], Any] | None = None,
) -> Outcome:
    """Run the engine as the worker does; `on_window` is called with the process id and the number of windows so far."""
    if launch is None and (layout := ENGINE.prepare(load, context)) is not None:
        environment = os.environ | layout.environment
        subprocess.run(layout.command, check=True, stdout=subprocess.DEVNULL, env=environment, cwd=layout.directory)
    launch = launch or ENGINE.launch(load, context)
    translator = ENGINE.translator(load, context)
    outcome = Outcome(context)
    with subprocess.Popen(
        launch.command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=launch.directory,
        pass_fds=launch.descriptors,
    ) as process:
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), 65_536):
            outcome.raw += chunk
            before = len(outcome.windows)
            outcome.records += translator.feed(chunk, time.time())
            if on_window is not None and len(outcome.windows) > before:
                on_window(process.pid, len(outcome.windows))
    outcome.records += translator.finish(process.returncode)
    return outcome


@pytest.fixture
def soon(context: MakeContext) -> MakeContext:
    """A context whose load starts with the next second."""

    def make(seconds: float = 4) -> EngineContext:
        return context(start=float(int(time.time()) + 1), seconds=seconds)

    return make


@contextmanager
def small_file_system(at: Path) -> Iterator[None]:
    """8 MiB, and not a byte more."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True)


@pytest.mark.gate(why="smoke of fio")
def test_the_windows_of_a_run_sum_to_what_fio_reports(soon: MakeContext) -> None:
    outcome = execute_run(soon())
    assert outcome.end == EngineEnd("completed")
    outcome.assert_sums_to_last_report()
    assert len(outcome.windows) >= 2
    assert outcome.windows[0].start >= outcome.context.start
    # As long as it was to be, from when it was there.
    planned = outcome.context.stop - outcome.context.start
    assert outcome.windows[-1].end - outcome.windows[0].start == planned
    for window in outcome.windows[1:-1]:
        assert set(window.latency) == {"write", "read", "sync"}
        assert window.counters["write_operations"] > 0
        assert window.counters["errors"] == 0
    assert sorted(path.name for path in outcome.context.path.iterdir()) == ["r.0.0", "w.0.0", "w.1.0"]


#: 50 writes a second, and 50 more from a while after the load's beginning.
LATER = """
    [global]
    rw=write
    direct=1
    size=1m
    rate_iops=50
    [w]
    [later]
    startdelay={}s
"""


@pytest.mark.timing(why="operations of a real second are held to a bound")
def test_a_section_begins_late_and_ends_with_the_load(soon: MakeContext) -> None:
    outcome = execute_run(soon(5), FioLoad(job=LATER.format(2)))
    assert outcome.end == EngineEnd("completed")
    outcome.assert_sums_to_last_report()
    planned = outcome.context.stop - outcome.context.start
    assert outcome.windows[-1].end - outcome.windows[0].start == planned
    rates = [window.counters["operations"] / (window.end - window.start) for window in outcome.windows]
    assert max(rates[:2]) < 75 < min(rates[3:])


@pytest.mark.timing(why="operations of a real second are held to a bound")
def test_a_delay_counts_from_the_load_s_beginning_and_not_from_an_engine_s(soon: MakeContext) -> None:
    context = soon(3)
    outcome = execute_run(replace(context, load_start=context.start - 60), FioLoad(job=LATER.format(2)))
    assert outcome.end == EngineEnd("completed")
    assert outcome.windows[-1].end == context.stop
    assert min(window.counters["operations"] for window in outcome.windows[:2]) > 75


def test_a_section_that_would_begin_too_late_is_left_out_and_said(soon: MakeContext) -> None:
    context, load = soon(2), FioLoad(job=LATER.format(2))
    assert any("[later]" in note for note in ENGINE.plan(load, context).notes)
    outcome = execute_run(context, load)
    assert outcome.end == EngineEnd("completed")
    assert [path.name for path in context.path.iterdir()] == ["w.0.0"]
    assert not any("[later]" in note for note in ENGINE.plan(load, replace(context, stop=context.stop + 1)).notes)


def test_an_interrupted_fio_reports_all_that_it_did(soon: MakeContext) -> None:
    outcome = execute_run(soon(60), on_window=lambda pid, _: os.kill(pid, signal.SIGINT))
    assert outcome.end == EngineEnd("completed")
    assert "fio_message" in outcome.events
    outcome.assert_sums_to_last_report()
    assert outcome.windows[-1].end < outcome.context.stop


def test_a_stalled_fio_makes_one_long_window_and_loses_nothing(soon: MakeContext) -> None:
    def stall(pid: int, windows: int) -> None:
        if windows == 1:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(2.4)
            os.kill(pid, signal.SIGCONT)

    outcome = execute_run(soon(6), on_window=stall)
    assert outcome.end == EngineEnd("completed")
    assert "snapshot_late" in outcome.events
    assert max(window.end - window.start for window in outcome.windows) >= 2
    outcome.assert_sums_to_last_report()


def test_files_are_laid_out_before_the_load_and_a_stop_ends_that(soon: MakeContext) -> None:
    load = FioLoad(job="[r]\nrw=randread\nsize=64g\ndirect=1\nfallocate=none\n")
    context = soon(60)
    launch = ENGINE.prepare(load, context)
    assert launch is not None
    environment = os.environ | launch.environment
    with subprocess.Popen(launch.command, stdout=subprocess.DEVNULL, env=environment, cwd=launch.directory) as process:
        laid_out = context.path / "r.0.0"
        while not (laid_out.exists() and laid_out.stat().st_blocks > 0):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait() in (0, STOPPED_STATUS)
    laid_out.unlink(missing_ok=True)


def test_a_job_that_only_writes_needs_no_preparing(soon: MakeContext) -> None:
    assert ENGINE.prepare(FioLoad(job="[w]\nrw=write\nsize=1m\ndirect=1\n"), soon(10)) is None


def test_a_full_file_system_is_an_error_a_message_and_a_failure(soon: MakeContext) -> None:
    load = FioLoad(job="[w]\nrw=write\nbs=64k\nsize=32m\nrate=6m\ndirect=0\nfallocate=none\n")
    context = soon(20)
    with small_file_system(context.path):
        outcome = execute_run(context, load)
    assert outcome.end.status == "failed"
    assert "No space left on device" in outcome.end.message
    assert "fio_message" in outcome.events
    assert sum(window.counters["errors"] for window in outcome.windows) == 1
    assert sum(window.counters["written_bytes"] for window in outcome.windows) >= 7 * 1024**2


def test_files_that_do_not_fit_are_a_failure_before_the_load(soon: MakeContext) -> None:
    load = FioLoad(job="[r]\nrw=randread\nsize=32m\ndirect=0\nfallocate=none\n")
    context = soon(20)
    launch = ENGINE.prepare(load, context)
    assert launch is not None
    with small_file_system(context.path):
        environment = os.environ | launch.environment
        done = subprocess.run(
            launch.command, check=False, capture_output=True, text=True, env=environment, cwd=launch.directory
        )
    assert done.returncode != 0
    assert "No space left on device" in done.stdout + done.stderr


def test_a_job_that_fio_refuses_is_a_failure_in_fio_s_words(soon: MakeContext) -> None:
    context = soon()
    launch = ENGINE.launch(FioLoad(job="[w]\nrw=write\nioengine=psync\nsize=1m\ndirect=1\n"), context)
    job = context.scratch / "job.fio"
    job.write_text(job.read_text().replace("ioengine=psync", "ioengine=nosuch"))
    outcome = execute_run(context, launch=launch)
    assert outcome.end.status == "failed"
    assert "nosuch" in outcome.end.message


def test_a_load_whose_end_has_passed_starts_no_fio(context: MakeContext) -> None:
    passed = context(start=float(int(time.time()) - 10), seconds=5)
    outcome = execute_run(replace(passed, load_start=passed.start - 1))
    assert outcome.records == [EngineEnd("completed")]


def test_a_directory_may_have_any_name(soon: MakeContext) -> None:
    context = soon(2)
    odd = context.path / "a:b #1; ${HOME} c"
    odd.mkdir()
    load = FioLoad(job="[w]\nrw=write\nsize=1m\ndirect=1\nrate_iops=50\n")
    outcome = execute_run(replace(context, path=odd), load)
    assert outcome.end == EngineEnd("completed")
    assert [path.name for path in odd.iterdir()] == ["w.0.0"]


@contextmanager
def held_by_a_node_that_leads_elsewhere_now(drive: LoopDrive, other: LoopDrive, node: Path) -> Iterator[int]:
    """A descriptor of `drive`, opened by the name `node`, which is that of `other` by then."""
    os.mknod(node, stat.S_IFBLK | 0o600, drive.node.stat().st_rdev)
    descriptor = os.open(node, os.O_RDWR | os.O_EXCL)
    try:
        node.unlink()
        os.mknod(node, stat.S_IFBLK | 0o600, other.node.stat().st_rdev)
        yield descriptor
    finally:
        os.close(descriptor)


def test_the_held_device_is_written_in_the_planned_regions_only(soon: MakeContext, tmp_path: Path) -> None:
    load = FioLoad.model_validate({"preset": "kafka-raid-mixed", "jobs": 2, "size": "2MiB", "rate": "2MiB"})
    mebibyte, node = 1024**2, tmp_path / "node"
    with (
        loop_drive(tmp_path / "drive.img", 16 * mebibyte) as drive,
        loop_drive(tmp_path / "other.img", 16 * mebibyte) as other,
        held_by_a_node_that_leads_elsewhere_now(drive, other, node) as descriptor,
    ):
        context = replace(soon(3), path=node, is_device=True, descriptor=descriptor)
        assert ENGINE.plan(load, context).writes == (PlannedWrite(node, 8 * mebibyte),)
        outcome = execute_run(context, load)
        subprocess.run(["sync", str(drive.node), str(other.node)], check=True)
        content = drive.node.read_bytes()
        assert not any(other.node.read_bytes())
    assert outcome.end == EngineEnd("completed")
    outcome.assert_sums_to_last_report()
    for job in (0, 1):
        assert any(content[job * 2 * mebibyte :][: 64 * 1024])
    assert not any(content[4 * mebibyte :])


def test_a_plan_names_every_file_and_bounds_what_is_written(context: MakeContext) -> None:
    made = context(seconds=100)
    plan = ENGINE.plan(MIXED, made)
    mebibyte = 1024**2
    assert plan.writes == tuple(PlannedWrite(made.path / name, 8 * mebibyte) for name in ("w.0.0", "w.1.0", "r.0.0"))
    assert plan.written_bytes == 2 * 200 * 16384 * 100 + 8 * mebibyte
    assert plan.direct
    assert plan.command[0] == "fio"
    assert any("closed-loop" in note for note in plan.notes)
    assert ENGINE.plan(MIXED, replace(made, resumed=True)).written_bytes == 2 * 200 * 16384 * 100


def test_a_plan_warns_of_the_page_cache(context: MakeContext) -> None:
    load = FioLoad(job="[w]\nrw=write\nsize=1m\ndirect=0\n")
    plan = ENGINE.plan(load, context())
    assert not plan.direct
    assert plan.written_bytes is None
    assert any("smaller than memory" in note for note in plan.notes)


def test_a_plan_divides_a_job_s_size_into_its_files(context: MakeContext) -> None:
    made = context()
    load = FioLoad(job="[w]\nrw=write\nsize=8m\nnrfiles=2\nnumjobs=2\ndirect=1\n")
    names = ("w.0.0", "w.0.1", "w.1.0", "w.1.1")
    assert ENGINE.plan(load, made).writes == tuple(PlannedWrite(made.path / name, 4 * 1024**2) for name in names)


def test_without_fio_the_problem_says_how_to_get_it(context: MakeContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(Problem, match="apt-get install fio") as problem:
        ENGINE.launch(MIXED, context())
    assert problem.value.code is Code.COMPONENT_MISSING
    assert ENGINE.facts(MIXED, context()) == EngineFacts()


def test_the_facts_hold_fio_s_version(context: MakeContext) -> None:
    said = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout
    assert ENGINE.facts(MIXED, context()) == EngineFacts({"fio": said.strip().removeprefix("fio-")})


def test_io_uring_is_refused_before_the_run_where_the_kernel_refuses_it(
    context: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = FioLoad(job="[w]\nrw=write\nsize=64m\ndirect=1\nioengine=io_uring\n")
    monkeypatch.setattr(uring, "refusal", lambda: "Operation not permitted")
    [refused] = FioEngine().probe(load, context()).refused
    assert "io_uring is not allowed here (Operation not permitted); say ioengine=libaio" in refused
    assert FioEngine().probe(FioLoad(preset="sequential-log"), context()).refused == ()
    monkeypatch.undo()
    # What the kernel of this machine says, twice: the ring is closed again.
    assert uring.refusal() == uring.refusal()
