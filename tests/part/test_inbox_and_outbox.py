"""The two ends of a part's lines: a stop that comes in between, a reader that reads nothing for a while."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from cliffwatch.part.inbox import CoordinatorGoneError, Inbox
from cliffwatch.part.lines import Clear, Close, Prepare, Stop, command_line
from cliffwatch.part.outbox import Outbox


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            continue


def test_commands_come_in_their_order_and_a_stop_between_them_is_no_command(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    inbox = Inbox(reading)
    assert not inbox.is_stopped()
    # One line in two pieces, and two in one.
    first, rest = command_line(Prepare(with_facts=False)), command_line(Stop()) + command_line(Clear())
    os.write(writing, first[:5])
    assert not inbox.is_stopped()
    os.write(writing, first[5:] + rest)
    assert inbox.is_stopped()
    assert [inbox.next(), inbox.next()] == [Prepare(with_facts=False), Clear()]
    assert inbox.is_stopped()
    os.write(writing, command_line(Close()))
    assert inbox.next() == Close()


def test_the_end_of_the_commands_is_an_error_for_all_that_ask(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    inbox = Inbox(reading)
    os.close(writing)
    with pytest.raises(CoordinatorGoneError):
        inbox.is_stopped()
    with pytest.raises(CoordinatorGoneError):
        inbox.next()


def test_lines_wait_for_a_reader_and_come_whole(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    outbox = Outbox(writing)
    lines = [b"%d %s\n" % (number, b"x" * 10_000) for number in range(200)]
    # More than a pipe holds, and nothing is read yet.
    for line in lines:
        outbox.put(line)
    read = b""
    while len(read) < sum(map(len, lines)):
        read += os.read(reading, 1 << 16)
    assert read.splitlines(keepends=True) == lines
    outbox.flush()


def test_output_beyond_the_outbox_limit_waits_for_the_reader(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    outbox = Outbox(writing)
    outbox.limit_bytes = 200_000
    placed: list[int] = []

    def place() -> None:
        for number in range(8):
            outbox.put(b"x" * 100_000)
            placed.append(number)

    thread = threading.Thread(target=place)
    thread.start()
    thread.join(0.5)
    assert len(placed) < 8
    left = 800_000
    while left:
        left -= len(os.read(reading, 1 << 16))
    thread.join(10)
    assert len(placed) == 8


def test_a_reader_that_is_gone_keeps_nothing_waiting(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    outbox = Outbox(writing)
    outbox.limit_bytes = 1
    os.close(reading)
    for _ in range(3):
        outbox.put(b"a line\n")
    outbox.flush()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "line 1 is no command of this version: Expecting value"),
        (b"noise", "line 1 is no command of this version: Expecting value"),
        (b"\xff\xfe", "line 1 is no command of this version: "),
        (b'{"type":"dance"}', "line 1 is no command of this version: "),
        (b'{"type":"order"}', "line 1 is no command of this version: "),
        (b"[" * 100_000, "line 1 is no command of this version: "),
        (b'{"type":"clear"}', "the first command has to be an order, and is a clear"),
    ],
    ids=["empty", "noise", "no text", "unknown", "incomplete", "nested", "too early"],
)
def test_a_line_that_is_no_command_ends_the_part_with_one_sentence(line: bytes, said: str) -> None:
    command = [sys.executable, "-m", "cliffwatch.part"]
    part = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert part.stdin is not None
    part.stdin.write(line + b"\n")
    part.stdin.flush()
    # Its coordinator is still there.
    assert part.wait(60) == 2
    stdout, stderr = part.communicate()
    assert stdout == b""
    assert stderr.decode().startswith(said)
    assert stderr.count(b"\n") == 1
