"""A run executed by a real worker with a real engine, that something is done to halfway through."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testkit.waiting import wait_until
from testkit.worker_runs import queue_run, start_worker, status

from cliffwatch.analysis.causes import Diagnosis, diagnose
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.labs.aging.lifecycle import AgingDrive
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import DirectoryTarget
from cliffwatch.report.collect import collect
from cliffwatch.report.measures import compare_around

#: Windows of one second before something is done, and after it.
BEFORE, AFTER = 8, 9
#: A drive on which nothing but the model takes time; it has more room than any of these runs writes.
ROOMY = {
    "capacity": "2GiB",
    "over-provisioning": 0.07,
    "pages-per-block": 256,
    "channels": 1,
    "dies-per-channel": 1,
    "planes": 2,
    "program-latency": "1.2ms",
    "buffer-size": "4MiB",
}


@dataclass(frozen=True, slots=True)
class DisturbedRun:
    """A journal, and when the cause that was made began, in seconds since the epoch."""

    journal: Path
    onset: float
    operation: str = "write"

    def diagnosis(self) -> Diagnosis:
        """What the report would say of it."""
        finding = Finding(FindingKind.CLIFF, self.onset, f"{self.operation}.p99", 1.0, 10.0, 10.0, 1.0)
        return diagnose(compare_around(collect(self.journal), finding, self.operation).measures)


@dataclass(frozen=True, slots=True)
class RunInProgress:
    """A run while it goes on."""

    journal: Path

    @property
    def engine(self) -> ProcessIdentity:
        beat = Heartbeat.read(self.journal)
        assert beat is not None
        assert beat.engine is not None
        return beat.engine

    def engine_processes(self) -> list[int]:
        """The engine and what it started."""
        found = [self.engine.pid]
        for pid in found:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            found += [int(child) for child in children]
        return found

    def windows(self) -> list[JournalWindow]:
        return list(JournalReader(self.journal).windows())

    def wait_for(self, count: int) -> float:
        """Until so many windows are committed; the end of the last one."""
        self.wait_until(lambda windows: len(windows) >= count, f"window {count}")
        return self.windows()[-1].end

    def wait_until(self, holds: Callable[[list[JournalWindow]], bool], what: str) -> None:
        def came_about() -> bool:
            now = status(self.journal)
            assert now.state is not RunState.FINISHED, f"the run ended before {what}: {now.reasons}"
            return holds(self.windows())

        wait_until(came_about, what)


@contextmanager
def executing(journal: Path) -> Iterator[RunInProgress]:
    """A worker for as long as the block lasts; then it and its engine are killed: only the journal counts."""
    worker = start_worker(journal)
    run = RunInProgress(journal)
    try:
        yield run
    finally:
        beat = Heartbeat.read(journal)
        processes = run.engine_processes() if beat is not None and beat.engine is not None else []
        worker.kill()
        worker.wait()
        for pid in processes:
            subprocess.run(["kill", "-9", str(pid)], check=False, capture_output=True)
        for pid in processes:
            while Path(f"/proc/{pid}/exe").exists():
                time.sleep(0.01)


def fio_run(directory: Path, drive: AgingDrive, job: str) -> Path:
    """Queue a run of a fio job on the drive's file system."""
    assert drive.mount_point is not None
    phases = {"soak": "2m"}
    return queue_run(
        directory / "run",
        {"job": job},
        DirectoryTarget(path=str(drive.mount_point)),
        engine="fio",
        window="1s",
        phases=phases,
    )


def halfway(journal: Path, disturb: Callable[[RunInProgress], Any]) -> DisturbedRun:
    """Let a run get going, disturb it, and let it go on for a while."""
    with executing(journal) as run:
        run.wait_for(BEFORE)
        disturb(run)
        onset = time.time()
        run.wait_until(lambda windows: windows[-1].end >= onset + AFTER, "what comes after")
    return DisturbedRun(journal, onset)


def reported(diagnosis: Diagnosis) -> str:
    """For the message of a test that fails."""
    suspects = [diagnosis.first, *([diagnosis.runner_up] if diagnosis.runner_up else [])]
    return json.dumps(
        [
            {"cause": each.cause, "score": each.score, "for": each.evidence_for, "against": each.evidence_against}
            for each in suspects
        ],
        indent=1,
        ensure_ascii=False,
    )
