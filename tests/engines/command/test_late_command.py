"""A command that is started after the planned begin of its load."""

import math
import subprocess
import sys
import time

import pytest

from cliffwatch.engines.command.definition import Output
from cliffwatch.engines.command.process import CommandJob
from cliffwatch.model.operation import Operation
from cliffwatch.model.window import BEGUN, EngineEnd, EngineEvent, EngineWindow, parse_engine_line

#: Prints a latency ten times a second until its load ends, after what it was given.
UNTIL_STOP = (
    "import sys, time\n"
    "print('given', *sys.argv[1:], file=sys.stderr, flush=True)\n"
    "while time.time() < float(sys.argv[2]): print(time.time(), 2.0, flush=True); time.sleep(0.1)"
)


@pytest.mark.gate(why="a healthy command that is late would be invalid")
@pytest.mark.parametrize("may_move", [True, False])
def test_a_command_gets_the_times_at_which_its_load_begins_and_ends(may_move: bool) -> None:
    """A run's first command, which is late, moves the load; one that is started again has what is left of it."""
    start = float(math.floor(time.time()) - 1)
    job = CommandJob(
        command=(sys.executable, "-c", UNTIL_STOP, "{start}", "{stop}", "{seconds}", "{size}"),
        values={"size": "4", "start": "0", "stop": "0", "seconds": "0"},
        output=Output(format="latencies", unit="milliseconds"),
        operation=Operation.WRITE,
        rate=None,
        start=start,
        stop=start + 5,
        window_seconds=1.0,
        may_move=may_move,
        resumed=not may_move,
    )
    command = [sys.executable, "-m", "cliffwatch.engines.command.process", job.model_dump_json(by_alias=True)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = [parse_engine_line(line) for line in done.stdout.splitlines()]
    begun = [each.detail["start"] for each in found if isinstance(each, EngineEvent) and each.name == BEGUN]
    assert len(begun) == may_move
    moved = begun[0] - start if may_move else 0.0
    given = done.stderr.split()
    assert given[0] == "given"
    begin, end = float(given[1]), float(given[2])
    assert (end - start - 5, int(given[3]), given[4]) == (moved, round(end - begin), "4")
    assert begin > start
    assert found[-1] == EngineEnd("completed")
    windows = [each for each in found if isinstance(each, EngineWindow)]
    assert (windows[0].start, windows[-1].end) == (begin, end)
