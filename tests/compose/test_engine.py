"""The engine of the tests' own leaves nothing behind, also where the tests are killed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from testkit.docker import DATA, Engine, engine
from testkit.waiting import wait_until

#: A program that needs no library, and with which Debian's engine comes.
INIT = ["usr/bin/tini-static"]
HELD = "from testkit.docker import engine\nwith engine() as it:\n    print(it.log, flush=True)\n    input()"


def processes() -> list[str]:
    """The command lines of all that works on these data."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(DATA) in text:
            found.append(text)
    return found


def cgroups() -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob("**/cliffwatch-tests-*"))


def started(engine: Engine, directory: Path) -> str:
    """What a container prints."""
    packed = subprocess.run(["tar", "--create", *INIT], cwd="/", check=True, capture_output=True).stdout
    (directory / "image.tar").write_bytes(packed)
    engine.run("import", directory / "image.tar", "cliffwatch-tests/init")
    return engine.run("run", "--network=host", "cliffwatch-tests/init", f"/{INIT[0]}", "--version")


def test_an_engine_that_is_stopped_is_gone(tmp_path: Path) -> None:
    with engine() as running:
        assert any("dockerd" in line for line in processes())
        assert cgroups() == []
        assert "tini" in started(running, tmp_path)
        assert cgroups() != []
    assert processes() == []
    assert cgroups() == []


def fail(directory: Path) -> None:
    with engine() as running:
        started(running, directory)
        raise ZeroDivisionError


def test_an_engine_whose_test_fails_is_gone_too(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path)
    assert processes() == []
    assert cgroups() == []


def test_an_engine_whose_tests_are_killed_is_gone_too() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    held = subprocess.Popen(
        [sys.executable, "-c", HELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT
    )
    with held:
        assert held.stdout is not None
        log = Path(held.stdout.readline().decode().strip())
        assert processes()
        held.kill()
        wait_until(lambda: not processes(), processes)
    # A process that is killed removes no directory.
    shutil.rmtree(log.parent)
