"""An engine's end, whatever it leaves behind."""

import os
import signal
import time
from pathlib import Path

from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.engines.contract import JsonLines, Launch
from cliffwatch.part.child_process import ChildProcess, Wake


def test_an_engine_is_over_once_it_is_gone_although_what_it_started_has_its_output_open(tmp_path: Path) -> None:
    noted = tmp_path / "child"
    script = f'setsid sleep 600 & echo $! > {noted}; echo "it was me" >&2'
    wake_read, wake_write = os.pipe()
    wake = Wake(wake_read, lambda: None)
    try:
        with ChildProcess(Launch(["sh", "-c", script]), JsonLines(), tmp_path / "engine.log", wake) as process:
            begun = time.monotonic()
            while not process.is_finished:
                process.poll(0.2, time.time)
                assert time.monotonic() - begun < 60
            assert process.finish()[0] == 0
            assert process.error_text == "it was me"
    finally:
        os.close(wake_read)
        os.close(wake_write)
        child = ProcessIdentity.of(int(noted.read_text()))
        assert child is not None
        assert child.send(signal.SIGKILL)
