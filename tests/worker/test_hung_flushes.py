"""A drive that stops answering once the engine is gone: the flush after a stop cannot be killed, nor waited for."""

import os
import signal
from pathlib import Path

from testkit.emulated import emulated_drive, file_system
from testkit.waiting import wait_until
from testkit.worker_runs import events, queue_run, start_worker, status, window_count

from cliffwatch.app.launcher import request_stop
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import DirectoryTarget

BUFFERED = {"job": "[w]\nrw=write\nbs=16k\nsize=8m\ndirect=0\nrate_iops=100\n"}


def test_a_stop_does_not_wait_for_a_flush_that_hangs(tmp_path: Path) -> None:
    with (
        emulated_drive(tmp_path / "drive", "--capacity=512MiB", "--timing=off") as drive,
        file_system(drive.node, tmp_path / "mount") as place,
    ):
        target = DirectoryTarget(path=str(place))
        directory = queue_run(
            tmp_path / "run", BUFFERED, target, engine="fio", window="1s", phases={"soak": "1h"}, stop_grace="2s"
        )
        worker = start_worker(directory)
        wait_until(lambda: window_count(directory) >= 2, "a second window")
        drive.ask("PUT", "/faults", {"stall_seconds": 3600})
        request_stop(directory, force=False)
        try:
            assert worker.wait(60) == 0
            assert status(directory).state is RunState.FINISHED
            assert status(directory).verdict is VerdictName.STOPPED
            [left] = [event.detail for event in events(directory) if event.name == "cannot_end"]
            assert "(sync" in left["what"]
            process = ProcessIdentity.of(left["pid"])
            assert process is not None
            assert process.is_killed()
            assert "files_left_behind" in {event.name for event in events(directory)}
        finally:
            # What waits for the drive gets an error, and goes.
            os.kill(drive.pid, signal.SIGKILL)
        wait_until(lambda: not process.is_alive(), "the end of what hung")
