"""`cliffwatch status --watch`: what it shows of a real service, in a terminal and in a log."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console
from testkit.waiting import wait_until
from tests.cli.machine import Machine

from cliffwatch.base.clock import SystemClock
from cliffwatch.cli.client import ApiClient
from cliffwatch.cli.status_page import StatusWatch


def shown(watch: StatusWatch, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(watch.render())
    return out.getvalue()


@contextmanager
def watching(machine: Machine) -> Iterator[StatusWatch]:
    url = f"http://127.0.0.1:{machine.port}"
    with ApiClient(url, (machine.state / "token").read_text().strip()) as api:
        yield StatusWatch(api, url, SystemClock())


@pytest.fixture
def busy(idle: Machine) -> Machine:
    """A service with a run that is over, two that go on, two that wait for the first, and a schedule."""
    assert idle.run("up").returncode == 0
    over = idle.workload("over", soak="2h", load="time: virtual, cliff_after: 1h")
    idle.run("run", "start", over, "--target", "synthetic:a", "--id", "over", "--wait")
    live = idle.workload("live", soak="1h", window="500ms", load="cliff_after: 30m")
    for run_id in ("goes-on", "waits", "waits-longer"):
        assert idle.run("run", "start", live, "--target", "synthetic:b", "--id", run_id).returncode == 0
    assert idle.run("run", "start", live, "--target", "synthetic:e", "--id", "begun-last").returncode == 0
    schedule = ("--workload", "live", "--target", "synthetic:c", "--cron", "0 3 * * *")
    assert idle.run("schedule", "add", "nightly", *schedule).returncode == 0
    return idle


def test_live_runs_results_and_schedules_are_on_one_page(busy: Machine) -> None:
    with watching(busy) as watch:
        assert_page(busy, watch)


def assert_page(busy: Machine, watch: StatusWatch) -> None:
    text = shown(watch)
    since: list[float | None] = []
    assert "no run goes on" in text, "before it was asked"

    def measured() -> bool:
        watch.ask()
        text = shown(watch)
        has_begun = re.search(r"^begun-last +soak", text, re.MULTILINE)
        return "remaining 59m" in text.partition("begun-last ")[0] and "publish p50" in text and has_begun is not None

    wait_until(measured, "a window of the first run, and the soak of the other")
    text = shown(watch)
    assert text.startswith(f"the service is ready at http://127.0.0.1:{busy.port}\n")
    lines = text.splitlines()
    (live,) = (line for line in lines if line.startswith("goes-on "))
    assert "soak" in live
    assert "even a cliff may take 30m to be distinguished from noise" in " ".join(text.split())
    (waits,) = (line for line in lines if line.startswith("waits "))
    assert "queued" in waits
    heads = [line.split()[0] for line in lines if line.startswith(("goes-on", "begun", "waits"))]
    assert heads == ["goes-on", "begun-last", "waits", "waits-longer"], "the oldest first, those that wait last"
    (result,) = (line for line in lines if " over " in line)
    assert "degraded" in result
    assert "Cliff at 1:00:00: publish p99 rose" in result
    assert any(line.startswith("next: nightly at ") and line.endswith("03:00:00Z") for line in lines)
    narrow = shown(watch, 40)
    assert max(map(len, narrow.splitlines())) <= 40
    assert re.search(r"^begun-last  soak$", narrow, re.MULTILINE)
    assert re.search(r"^degraded  over  ", narrow, re.MULTILINE)
    assert "Cliff at 1:00:00: publish p99 rose" in " ".join(narrow.split()), "a reason is not cut"

    busy.run("down")
    for _ in range(2):
        watch.ask()
        since.append(watch.page.silent_since)
    assert since[0] is not None
    assert since == since[:1] * 2, "since the first time that it did not answer"
    text = shown(watch)
    assert text.startswith("the service has not answered for ")
    assert "runs continue without it" in text
    assert "goes-on " in text, "what it said last is kept"
    assert busy.run("up").returncode == 0
    watch.ask()
    assert shown(watch).startswith("the service is ready")


def test_a_terminal_gets_its_screen_back(busy: Machine) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cliffwatch.cli.main", "status", "--watch"],
        env={**os.environ, **busy.variables, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    give_up = time.monotonic() + 60
    while b"goes-on" not in seen and time.monotonic() < give_up:
        seen += os.read(ours, 65536)
    assert b"\x1b[?1049h" in seen, "on a screen of its own"
    process.send_signal(signal.SIGINT)
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:
        pass  # the terminal's other end is closed
    os.close(ours)
    assert process.wait(60) == 130
    assert seen.rfind(b"\x1b[?1049l") > seen.rfind(b"\x1b[?1049h")


def test_a_page_for_people_is_no_json(busy: Machine) -> None:
    refused = busy.run("status", "--watch", "--output", "json")
    assert refused.returncode == 2
    assert "leave out --output json, or --watch" in refused.stderr


def test_a_log_gets_the_page_again_and_again(busy: Machine, tmp_path: Path) -> None:
    process = busy.start("status", "--watch")
    assert process.stdout is not None
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", process.stdout.readline())
    assert process.stdout.readline().startswith("the service is ready")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
