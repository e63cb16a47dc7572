"""An engine that reports nothing because its target hangs: the worker says what the engine cannot, and nothing else."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.waiting import wait_until
from testkit.worker_runs import events, names, queue_run, report, start_worker, status, window_count

from cliffwatch.app.launcher import request_stop
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.target import DirectoryTarget
from cliffwatch.model.window import EngineWindow
from cliffwatch.part import silence
from cliffwatch.part.silence import SilenceWatch, Waiting

JOB = {"job": "[w]\nioengine=psync\nrw=write\nbs=16k\nsize=8m\ndirect=1\nrate_iops=100\n"}
HANG_SECONDS = 14.0
HUNG, RUNNING = Waiting(frozenset({(7, 100)})), Waiting()


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    with loop_drive(tmp_path / "volume.img", 64 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, tmp_path / "volume") as path:
            yield path


def silent_windows(directory: Path) -> list[JournalWindow]:
    return [window for window in JournalReader(directory).windows() if window.stalled]


@contextmanager
def under_load(directory: Path, volume: Path, soak: str) -> "Iterator[subprocess.Popen[bytes]]":
    phases, target = {"soak": soak, "cool_down": "0s"}, DirectoryTarget(path=str(volume))
    queue_run(directory, JOB, target, engine="fio", window="1s", phases=phases, stop_grace="1s")
    worker = start_worker(directory)
    try:
        wait_until(lambda: window_count(directory) >= 12, "what the rate was before")
        yield worker
    finally:
        worker.kill()
        worker.wait()


@contextmanager
def frozen(volume: Path) -> Iterator[None]:
    command("fsfreeze", "--freeze", volume)
    try:
        yield
    finally:
        command("fsfreeze", "--unfreeze", volume)


def oldest(directory: Path) -> float:
    return max((window.oldest_outstanding_seconds or 0.0 for window in silent_windows(directory)), default=0.0)


def test_a_hang_is_in_windows_and_found_while_it_lasts(tmp_path: Path, volume: Path) -> None:
    directory = tmp_path / "run"
    with under_load(directory, volume, "40s") as worker:
        with frozen(volume):
            wait_until(lambda: oldest(directory) >= HANG_SECONDS, "windows of the hang")
            # What is outstanding counts as a latency of its age.
            assert names(directory, "finding") in (["stall"], ["cliff"])
            [silent] = [event.detail for event in events(directory) if event.name == "silent"]
            assert "(fio" in silent["what"]
        assert worker.wait(120) == 0
    assert names(directory, "gap") == []
    assert "window_refused" not in names(directory, "journal")
    windows = list(JournalReader(directory).windows())
    assert all(before.end == pytest.approx(after.start, rel=0, abs=1e-3) for before, after in pairwise(windows))
    after = windows[max(index for index, window in enumerate(windows) if window.stalled) + 1]
    assert max(summary["max"] or 0.0 for summary in after.latency.values()) >= HANG_SECONDS
    assert status(directory).verdict in (VerdictName.DEGRADED, VerdictName.INVALID)
    assert [finding["kind"] for finding in report(directory)["findings"]] == ["cliff", "recovery"]


def test_a_hang_that_does_not_end_is_in_the_report_to_its_end(tmp_path: Path, volume: Path) -> None:
    directory = tmp_path / "run"
    with under_load(directory, volume, "1h") as worker, frozen(volume):
        wait_until(lambda: oldest(directory) >= HANG_SECONDS, "windows of the hang")
        request_stop(directory, force=False)
        assert worker.wait(60) == 0
    reasons = status(directory).reasons
    assert status(directory).verdict is not VerdictName.PASS
    assert any("The load ended in a stall" in reason for reason in reasons), reasons
    last = report(directory)["findings"][-1]
    assert last["kind"] in ("cliff", "stall")
    assert "until" not in last
    assert report(directory)["coverage"]["ratio"] > 0.9


@dataclass
class Run:
    """A run's clock and events, and what the kernel says of its engine, for a watch that looks four times a second."""

    watch: SilenceWatch = field(init=False)
    now: float = 0.0
    waiting: Waiting = HUNG
    recorded: list[str] = field(default_factory=list)

    def pass_by(self, seconds: float, until: float = 1e9) -> list[EngineWindow]:
        found, end = [], self.now + seconds
        while self.now < end:
            self.now += 0.25
            found += self.watch.look(until)
        return found


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    made = Run()
    context = SimpleNamespace(
        run_clock=SimpleNamespace(now=lambda: made.now),
        workload=SimpleNamespace(window=1.0),
        record_event=lambda _, name, **detail: made.recorded.append(name),
    )
    monkeypatch.setattr(silence.Waiting, "of", lambda *_: made.waiting)
    made.watch = SilenceWatch(cast(Any, context), ["8:0"])
    process = ProcessIdentity.of(1)
    assert process is not None
    made.watch.follow(process, 0.0)
    return made


def test_a_hang_has_each_window_once_and_the_engine_the_rest(run: Run) -> None:
    found = run.pass_by(20.0)
    assert [window.start for window in found] == [float(second) for second in range(18)]
    assert [window.gauges["oldest_outstanding_seconds"] for window in found] == [float(each + 1) for each in range(18)]
    assert run.recorded == ["silent"]
    late = EngineWindow(0.0, 20.5, {"operations": 5})
    assert run.watch.rest_of(late).start == 18.0
    assert run.watch.rest_of(EngineWindow(20.5, 21.5, {})).start == 20.5


def test_an_engine_that_is_silent_for_another_reason_has_no_stall(run: Run) -> None:
    run.waiting = RUNNING
    assert run.pass_by(60.0) == []
    assert run.recorded == []


def test_threads_that_run_now_and_then_do_not_hang(run: Run) -> None:
    found = []
    for runs in range(240):
        run.waiting = Waiting(frozenset({(7, runs)}))
        found += run.pass_by(0.25)
    assert found == []


def test_a_drive_that_completes_requests_now_and_then_does_not_hang(run: Run) -> None:
    found = []
    for completed in range(60):
        run.waiting = Waiting(completed=completed)
        found += run.pass_by(1.0)
    assert found == []
    run.waiting = Waiting(completed=60)
    assert len(run.pass_by(20.0)) >= 15


def test_an_operation_that_hangs_later_is_silent_from_that_time_on(run: Run) -> None:
    run.waiting = RUNNING
    assert run.pass_by(10.0) == []
    run.waiting = HUNG
    found = run.pass_by(15.0)
    assert found[0].start >= 7.0
    assert found[0].gauges["oldest_outstanding_seconds"] >= 8.0


def test_no_window_is_said_before_one_can_be_late_nor_after_the_load(run: Run) -> None:
    assert run.pass_by(9.5) == []
    assert run.pass_by(20.0, until=15.0)[-1].end == 14.0
    assert [window.end for window in run.watch.look(until=15.0, is_over=True)] == [15.0]


def test_time_in_which_the_worker_did_not_poll_yields_no_silent_windows(run: Run) -> None:
    run.pass_by(5.0)
    run.now += 30.0
    found = run.pass_by(5.0)
    assert all(window.start >= 30.0 for window in found)
