"""A report whose process dies is made again; one that cannot be made is said to be missing, and can be made later."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testkit import journals
from testkit.recorded_runs import JournalPlan, make_journal
from testkit.waiting import wait_until
from testkit.worker_runs import events, queue_run, report, start_worker, status

from cliffwatch.coordinator.reporting import judge_run
from cliffwatch.journal import Event, EventLog, EventType
from cliffwatch.journal.conclusion import Conclusion, unanalysed
from cliffwatch.journal.state import change_state, mend_verdict
from cliffwatch.model.run_state import RunState, Verdict, VerdictName
from cliffwatch.report import build


def report_processes(directory: Path) -> list[int]:
    """Pids of the processes that make the report of the run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it is gone
            if b"cliffwatch.report" in command and str(directory).encode() in command:
                found.append(int(entry.name))
    return found


def test_a_report_whose_process_is_killed_is_made_again(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "killed-report", {"time": "virtual"}, window="10s", phases={"soak": "10m"})
    worker = start_worker(directory)
    processes = wait_until(lambda: report_processes(directory), "the process that makes the report")
    for process in processes:
        os.kill(process, signal.SIGKILL)
    assert worker.wait(60) == 0
    assert status(directory).verdict is VerdictName.PASS
    assert report(directory)["verdict"]["name"] == "pass"
    (failure,) = [event for event in events(directory) if event.name == "report_failed"]
    assert "killed by signal 9" in failure.detail["message"]


def test_a_report_that_never_succeeds_is_said_to_be_missing_and_how_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process cannot be started: what stands in for one that the kernel kills each time."""
    monkeypatch.setenv("PATH", str(tmp_path))
    directory = make_journal(tmp_path, JournalPlan(windows=10))
    recorded: list[str] = []
    waited: list[float] = []
    conclusion = judge_run(directory, lambda type_, name, **detail: recorded.append(detail["message"]), waited.append)
    assert waited == [1.0, 2.0, 4.0, 8.0]
    assert len(recorded) == 1
    assert conclusion.verdict.name is VerdictName.INVALID
    assert conclusion.detail()["analysed"] is False
    assert f"`cliffwatch run report {directory.name}` makes it" in conclusion.verdict.reasons[0]


def concluded(name: VerdictName, reason: str) -> Conclusion:
    return Conclusion(Verdict(name, (reason,)))


def finished(tmp_path: Path, detail: dict[str, object]) -> EventLog:
    directory = journals.queue(tmp_path, "one")
    journals.start(directory)
    log = EventLog(directory)
    change_state(log, RunState.REPORTING, 1.0)
    change_state(log, RunState.FINISHED, 2.0, detail)
    return log


def test_a_verdict_that_was_missing_is_mended_once(tmp_path: Path) -> None:
    log = finished(tmp_path, unanalysed(tmp_path / "one", "it was killed").detail())
    assert mend_verdict(log, concluded(VerdictName.DEGRADED, "a cliff"), 3.0)
    assert not mend_verdict(log, concluded(VerdictName.PASS, "nothing"), 4.0)
    mended = status(tmp_path / "one")
    assert (mended.state, mended.verdict, mended.reasons) == (RunState.FINISHED, VerdictName.DEGRADED, ("a cliff",))
    assert mended.finished_at == 2.0


def test_a_verdict_of_a_former_version_that_was_missing_is_mended(tmp_path: Path) -> None:
    reasons = ["the verdict could not be determined: it printed no verdict"]
    log = finished(tmp_path, {"verdict": "invalid", "reasons": reasons})
    assert mend_verdict(log, concluded(VerdictName.PASS, "ok"), 3.0)


def test_a_verdict_that_was_found_stands(tmp_path: Path) -> None:
    log = finished(tmp_path, {"verdict": "invalid", "reasons": ["the page cache"]})
    assert not mend_verdict(log, concluded(VerdictName.PASS, "ok"), 3.0)
    assert status(tmp_path / "one").verdict is VerdictName.INVALID


def test_a_note_does_not_end_a_run_that_goes_on(tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    note = {"verdict": "pass", "reasons": ["ok"]}
    EventLog(directory).append(Event(3.0, EventType.NOTE, "verdict_mended", note))
    assert status(directory).verdict is None


def test_a_page_that_cannot_be_made_leaves_no_half_of_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def render(*_: object) -> str:
        raise MemoryError

    directory = make_journal(tmp_path, JournalPlan(windows=10))
    made = build.build(directory)
    monkeypatch.setattr(build, "render", render)
    with pytest.raises(MemoryError):
        build.write(directory, made)
    assert not (directory / "report.json").exists()


@pytest.mark.parametrize("module", ["cliffwatch.report.__main__", "cliffwatch.report.picture.__main__"])
def test_the_limit_on_a_reports_memory_is_the_kernels_and_is_named(tmp_path: Path, module: str) -> None:
    """With none on top of what it needs to start, since what fills four gigabytes takes minutes to make."""
    directory = make_journal(tmp_path, JournalPlan(windows=300))
    small = f"import {module} as made; made.MEMORY_LIMIT_BYTES = 0; raise SystemExit(made.main([{str(directory)!r}]))"
    done = subprocess.run([sys.executable, "-c", small], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "of memory (RLIMIT_AS)" in done.stderr
    assert not (directory / "report.json").exists()
