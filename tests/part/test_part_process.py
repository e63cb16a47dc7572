"""`cliffwatch part` as a process: from its order to its end, with a real engine."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from testkit import journals
from testkit.slow_programs import path_with_slow

from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code
from cliffwatch.model.order import RunOrder
from cliffwatch.model.target import AnyTarget, DirectoryTarget, SyntheticTarget
from cliffwatch.model.timeline import grid_line_at_or_after
from cliffwatch.model.window import EngineWindow
from cliffwatch.part.lines import (
    Answer,
    Clear,
    Cleared,
    Close,
    Closed,
    Command,
    EngineAt,
    Flush,
    Flushed,
    Happened,
    Held,
    Load,
    Loaded,
    Order,
    Prepare,
    Prepared,
    Record,
    Refused,
    Stop,
    command_line,
    parse_record,
)

WINDOW_SECONDS = 0.2
A = TypeVar("A", bound=Record | Answer)


@dataclass
class Part:
    """The process, and the records that came before each answer."""

    process: "subprocess.Popen[bytes]"
    records: list[Record | Answer] = field(default_factory=list)

    def send(self, command: Command) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command_line(command))
        self.process.stdin.flush()

    def next(self) -> Record | Answer:
        assert self.process.stdout is not None
        return parse_record(self.process.stdout.readline())

    def until(self, kind: type[A]) -> A:
        while not isinstance(record := self.next(), kind):
            self.records.append(record)
        return record

    def windows(self) -> list[EngineWindow]:
        return [record for record in self.records if isinstance(record, EngineWindow)]


@contextmanager
def part_of(directory: Path, target: AnyTarget) -> Iterator[Part]:
    """A part that has its order."""
    command = [sys.executable, "-m", "cliffwatch.cli.main", "part"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        part = Part(process)
        try:
            workload = journals.synthetic_workload(window=f"{WINDOW_SECONDS}s", load={"operations_per_second": 1000})
            run = RunOrder(run_id="one", workload=workload, target=target, created_at=time.time(), created_by="test")
            ahead = time.time() - SystemClock().monotonic()
            part.send(Order(run=run, directory=directory, state_directory=directory, ahead_of_monotonic_seconds=ahead))
            yield part
        finally:
            process.kill()


def load_of(seconds: float) -> Load:
    start = grid_line_at_or_after(time.time() + 1.0, WINDOW_SECONDS)
    return Load(start=start, stop=round(start + seconds, 6), may_move=True, resumed=False, restarts=0)


def test_a_load_from_the_order_to_the_close(tmp_path: Path) -> None:
    with part_of(tmp_path, SyntheticTarget(name="nothing")) as part:
        assert part.until(Held).drives == ()
        part.send(Prepare(with_facts=True))
        facts = part.until(Prepared).facts
        assert facts is not None
        assert facts["processor"]["count"] >= 1
        load = load_of(1.0)
        part.send(load)
        assert part.until(Loaded) == Loaded(end=LoadEnd.COMPLETED)
        windows = part.windows()
        # An engine that was not ready in time moved it.
        assert sum(window.counters["operations"] for window in windows) == 1000
        assert [round(window.end - window.start, 6) for window in windows] == [WINDOW_SECONDS] * 5
        assert "host_cpu_busy_ratio" in windows[-1].gauges
        names = [record.name for record in part.records if isinstance(record, Happened)]
        assert (names[0], names[-1]) == ("started", "exited")
        part.send(Flush(is_stopped=False, grace_seconds=5.0))
        assert part.until(Flushed) == Flushed()
        part.send(Clear())
        assert part.until(Cleared) == Cleared()
        part.send(Close())
        assert part.until(Closed).cpu_seconds > 0
        assert part.process.wait(10) == 0


def test_an_engine_that_began_late_reports_nothing_past_the_end_of_a_load_that_may_not_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path_with_slow("setpriv", 1.5, tmp_path))
    with part_of(tmp_path, SyntheticTarget(name="nothing")) as part:
        part.until(Held)
        load = load_of(3.0).model_copy(update={"may_move": False})
        part.send(load)
        assert part.until(Loaded) == Loaded(end=LoadEnd.COMPLETED)
        windows = part.windows()
        assert "begun" in [record.name for record in part.records if isinstance(record, Happened)]
        assert load.start < windows[0].start
        assert windows[-1].end == pytest.approx(load.stop, rel=0, abs=1e-3)


def test_a_stop_ends_the_load_with_its_window(tmp_path: Path) -> None:
    with part_of(tmp_path, SyntheticTarget(name="nothing")) as part:
        part.until(Held)
        part.send(load_of(3600.0))
        part.until(EngineWindow)
        part.send(Stop())
        assert part.until(Loaded) == Loaded(end=LoadEnd.STOPPED)
        assert all(window.counters["operations"] > 0 for window in part.windows())


def test_the_end_of_the_commands_ends_the_part_and_its_engine(tmp_path: Path) -> None:
    with part_of(tmp_path, SyntheticTarget(name="nothing")) as part:
        part.until(Held)
        part.send(load_of(3600.0))
        engine = part.until(EngineAt).process
        assert engine is not None
        part.until(EngineWindow)
        assert part.process.stdin is not None
        part.process.stdin.close()
        assert part.process.wait(10) != 0
        assert engine.wait_gone(10)


def test_a_target_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with part_of(tmp_path, DirectoryTarget(path=str(tmp_path / "missing"))) as part:
        refused = part.until(Refused)
        assert refused.code is Code.TARGET_MISSING
        assert "missing" in refused.message
        part.send(Close())
        part.until(Closed)
        assert part.process.wait(10) == 0
