"""Logs that are written by processes that keep them open, and lines that come again and again."""

import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.waiting import wait_until

from cliffwatch.base.clock import VirtualClock
from cliffwatch.base.logs import (
    LINES_OF_A_KIND,
    SPAN_SECONDS,
    LogRotator,
    Repetitions,
    bound,
    last_line_of,
    logs_below,
    open_log,
)

WRITER = """
import sys
for number, line in enumerate(sys.stdin):
    print(f"{number:07} " + "x" * 1000, flush=True)
    print(number, file=sys.stderr, flush=True)
"""
LIMIT_BYTES = 100_000


def test_a_log_that_a_process_keeps_open_stays_within_its_bound(tmp_path: Path) -> None:
    log = logs_below(tmp_path)[0]
    keeper = LogRotator(lambda: [log, tmp_path / "not-there.log"], LIMIT_BYTES)
    with (
        log.open("ab") as output,
        subprocess.Popen(
            [sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=output, stderr=subprocess.PIPE, text=True
        ) as writer,
    ):
        assert writer.stdin is not None
        assert writer.stderr is not None
        for number in range(350):
            writer.stdin.write("\n")
            writer.stdin.flush()
            assert writer.stderr.readline() == f"{number}\n"
            keeper.tick()
            assert log.stat().st_size <= LIMIT_BYTES + 1009
        writer.stdin.close()
    old = tmp_path / "service.old"
    assert 0 < old.stat().st_size <= LIMIT_BYTES
    assert old.stat().st_mode & 0o777 == 0o600
    lines = [line[:7] for line in (old.read_text() + log.read_text()).splitlines() if line.endswith("x")]
    # What is kept is the newest, without a hole, and no byte of a file that was emptied is a zero.
    assert [int(line) for line in lines[1:]] == list(range(350 - len(lines) + 1, 350))
    assert "\0" not in log.read_text()


def test_a_log_that_cannot_be_kept_is_emptied_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    log.write_bytes(b"x" * (LIMIT_BYTES + 1))
    (tmp_path / "service.old").mkdir()
    with pytest.raises(OSError, match=r"service\.old"):
        bound(log, LIMIT_BYTES)
    assert log.stat().st_size == 0


def test_the_thread_finds_a_log_that_grew(tmp_path: Path) -> None:
    log = tmp_path / "stack" / "prometheus" / "output.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * (LIMIT_BYTES + 1))
    keeper = LogRotator(lambda: logs_below(tmp_path), LIMIT_BYTES)
    keeper.start()
    wait_until(lambda: log.stat().st_size == 0, "a log that is empty again")
    keeper.stop()


def test_lines_that_come_again_are_counted_and_no_kind_of_line_fills_the_log() -> None:
    clock, stream = VirtualClock(0.0), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(Repetitions(clock))
    logger = logging.Logger("hostile")
    logger.addHandler(handler)
    for _ in range(1000):
        logger.warning("Invalid HTTP request received.")
    assert stream.getvalue() == "Invalid HTTP request received.\n"
    for number in range(100_000):
        logger.error("GET %s failed", f"/{number}" + "y" * 100)
    assert stream.getvalue().count("\n") == 1 + LINES_OF_A_KIND
    clock.sleep(SPAN_SECONDS)
    logger.error("another")
    assert stream.getvalue().endswith("100979 more times in the last minute: lines like these\nanother\n")
    for _ in range(3):
        logger.error("another")
    clock.sleep(SPAN_SECONDS)
    logger.error("z" * 1_000_000)
    assert "\n3 more times in the last minute: another\nzzz" in stream.getvalue()
    assert len(stream.getvalue()) < 20_000


def test_the_last_line_of_a_log_is_the_last_that_says_something(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    assert last_line_of(path) == ""
    for text, last in [("\n \n", ""), ("first\n  second  \n\n", "second"), ("x" * 10_000 + "\nthird", "third")]:
        with open_log(path) as log:
            log.write(text.encode())
        assert last_line_of(path) == last
    assert path.stat().st_mode & 0o777 == 0o600
