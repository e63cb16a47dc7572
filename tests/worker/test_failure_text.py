"""A load without a window says what its engine said when it died."""

import os
from pathlib import Path

import pytest
from testkit.worker_runs import execute_run, queue_run, report

from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.target import DirectoryTarget
from cliffwatch.model.window import EngineEnd
from cliffwatch.part.child_process import failure_text

REFUSAL = "fio: io_uring_setup: Operation not permitted"
#: In the place of fio: one whose kernel filter denies what it needs, which no real one meets when asked.
DENIED = f"""#!/bin/sh
case "$1" in --version) echo fio-3.33; exit 0;; esac
echo '{REFUSAL}' >&2
exit 1
"""
JOB = "[w]\nrw=write\nbs=16k\nsize=1m\ndirect=1\nrate_iops=10\n"


def test_a_verdict_without_a_window_quotes_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, place = tmp_path / "bin", tmp_path / "target"
    programs.mkdir()
    place.mkdir()
    (programs / "fio").write_text(DENIED)
    (programs / "fio").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    target = DirectoryTarget(path=str(place))
    directory = queue_run(tmp_path / "denied", {"job": JOB}, target, engine="fio", window="1s", phases={"soak": "3s"})
    finished = execute_run(directory)
    assert finished.verdict is VerdictName.FAILED
    assert "No window was measured" in finished.reasons[0]
    assert "exited with status 1" in finished.reasons[0]
    assert REFUSAL in finished.reasons[0]
    assert REFUSAL in report(directory)["verdict"]["reasons"][0]


def test_an_engines_own_word_is_not_said_twice() -> None:
    for said in ("the volume is full", "load: the volume is full"):
        assert failure_text(EngineEnd("failed", said), "load: the volume is full\n", 1) == said
    assert failure_text(EngineEnd("failed", "exited"), "denied\n", 1) == "exited; it wrote: denied"
    assert failure_text(None, "a\nb\nc\nd\n", 1) == "b; c; d"
    assert failure_text(None, "", 3) == "exit status 3"
    assert failure_text(None, "", -9) == "it was ended by SIGKILL and said nothing"
    assert failure_text(None, "", -40) == "it was ended by signal 40 and said nothing"
