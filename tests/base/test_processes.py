"""A process that is started to outlive this one has a session of its own and keeps what it makes to its owner."""

import gc
import os
import signal
import sys
import threading
import warnings
from pathlib import Path

from cliffwatch.base.logs import open_log
from cliffwatch.base.processes import ProcessIdentity, disown, start_detached

CHILD = """
import os, sys
from pathlib import Path
Path("made").touch()
print(os.getsid(0) == os.getpid(), os.getcwd(), sorted(os.environ.keys() & {"A", "HOME"}), sys.stdin.read() == "")
print("an error", file=sys.stderr)
for descriptor in map(int, sys.argv[1:]):
    os.write(descriptor, b"inherited")
"""


def test_a_detached_process_writes_to_its_log_and_its_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with open_log(tmp_path / "log") as log:
            log.write(b"before\n")
            log.flush()
            process = start_detached([sys.executable, "-c", CHILD], log, tmp_path, {"A": "1"})
        assert process.wait() == 0
    finally:
        os.umask(before)
    lines = (tmp_path / "log").read_text().splitlines()
    assert sorted(lines) == sorted(["before", f"True {tmp_path} ['A'] True", "an error"])
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {"log": 0o600, "made": 0o600}


def test_its_output_may_go_elsewhere_and_descriptors_may_be_inherited(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with open_log(tmp_path / "log") as log, (tmp_path / "output").open("wb") as output:
        command = [sys.executable, "-c", CHILD, str(writing)]
        process = start_detached(command, log, tmp_path, output=output, inherited=(writing,))
        os.close(writing)
        with os.fdopen(reading, "rb") as inherited:
            assert inherited.read() == b"inherited"
        assert process.wait() == 0
    assert (tmp_path / "log").read_text() == "an error\n"
    assert (tmp_path / "output").read_text().startswith("True ")


def test_a_disowned_process_causes_no_warning(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        process = start_detached(["sleep", "600"], log, tmp_path)
    pid = process.pid
    disown(process)
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        del process
        gc.collect()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert [warning for warning in complaints if str(pid) in str(warning.message)] == []


def test_a_thread_is_not_a_process_that_is_signalled() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        identity = ProcessIdentity.of(thread.native_id)
        assert identity is not None
        assert not identity.send(signal.SIGCONT)
    finally:
        done.set()
        thread.join()
