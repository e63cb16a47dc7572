"""What a coordinator and a part say to each other comes over as it was."""

import json
from pathlib import Path

import pytest
from testkit import journals

from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.base.errors import Code
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.journal.events import EventType
from cliffwatch.model.order import RunOrder
from cliffwatch.model.target import DirectoryTarget
from cliffwatch.model.window import EngineWindow
from cliffwatch.part.lines import (
    Answer,
    Clear,
    Cleared,
    Close,
    Closed,
    Command,
    DriveBelow,
    EngineAt,
    Flush,
    Flushed,
    Happened,
    Held,
    LeftProcess,
    Load,
    Loaded,
    Moved,
    Order,
    Prepare,
    Prepared,
    Record,
    Refused,
    Stop,
    command_line,
    parse_command,
    parse_record,
    record_line,
)

RUN = RunOrder(
    run_id="run-1",
    workload=journals.synthetic_workload(phases={"soak": "36h", "warm_up": "90s"}),
    target=DirectoryTarget(path="/data/a place"),
    created_at=1.5,
    created_by="ops",
)
PROCESS = ProcessIdentity(12, 345, "boot")
COMMANDS: tuple[Command, ...] = (
    Order(run=RUN, directory=Path("/runs/run-1"), state_directory=Path("/state"), ahead_of_monotonic_seconds=1.79e9),
    Order(
        run=RUN, directory=Path("/runs/run-1"), state_directory=Path("/state"), asked_path="/data", virtual_start=3.0
    ),
    Prepare(with_facts=True),
    Load(start=10.0, stop=20.0, may_move=True, resumed=False, restarts=2),
    Flush(is_stopped=True, grace_seconds=10.5),
    Clear(),
    Close(),
    Stop(),
)
RECORDS: tuple[Record | Answer, ...] = (
    Held(is_device=False, drives=(DriveBelow("nvme0n1", 1023, "259:0"), DriveBelow("sda")), mount_point="/data"),
    Prepared(end=LoadEnd.COMPLETED, facts={"kernel": "6.1", "processor": {"count": 2}, "memory_bytes": None}),
    Prepared(end=LoadEnd.FAILED, message="preparing failed"),
    Loaded(end=LoadEnd.STOPPED),
    Flushed(),
    Cleared(),
    Closed(cpu_seconds=1.5, max_resident_bytes=1 << 40),
    Refused(code=Code.TARGET_UNSAFE, message="first line\n  target: second"),
    Happened(12.25, EventType.GAP, "engine_frozen", {"start": 1.0, "names": ["ä", "\ud800", 2**70], "none": None}),
    EngineAt(PROCESS, 10.0),
    EngineAt(None),
    LeftProcess(PROCESS),
    Moved(30.0, begun=True),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_command_comes_over(command: Command) -> None:
    line = command_line(command)
    assert line.count(b"\n") == 1
    assert parse_command(line) == command


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_over(record: Record | Answer) -> None:
    line = record_line(record)
    assert line.count(b"\n") == 1
    assert parse_record(line) == record


def test_a_window_is_a_line_of_the_engine_contract() -> None:
    histogram = Histogram()
    histogram.record(2_000_000, 7)
    window = EngineWindow(
        10.0, 20.0, {"operations": 7, "8:0.write_operations": 2**62}, {"x": -0.25}, {"write": histogram}
    )
    line = record_line(window)
    assert json.loads(line)["type"] == "window"
    found = parse_record(line)
    assert isinstance(found, EngineWindow)
    assert (found.start, found.end, found.counters, found.gauges) == (10.0, 20.0, window.counters, window.gauges)
    assert found.latency["write"].count == 7


def test_a_number_that_json_has_not_is_none() -> None:
    found = parse_record(record_line(Happened(1.0, EventType.ENGINE, "x", {"ratio": float("nan")})))
    assert isinstance(found, Happened)
    assert found.detail == {"ratio": None}


@pytest.mark.parametrize(
    "line", [b"{}", b"no line", b'{"type":"window"}', b'{"type":"held","is_device":1}', b'{"type":"stop"}']
)
def test_an_invalid_line_of_a_part_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_record(line)
