"""What engines print: a line of the contract, fio's reports and the brokers' answer to a question before a run."""

import json
import math
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.fuzz.damage import restructured, spoiled
from tests.fuzz.explore import bounded, explore, holds

from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.contract import EngineContext, JsonLines
from cliffwatch.engines.fio.output import FioTranslator
from cliffwatch.engines.kafka.probe import answer_of
from cliffwatch.journal import JournalWindow, WindowLog, files
from cliffwatch.model.window import EngineEnd, EngineEvent, EngineRecord, EngineWindow, format_engine_line

START = 1_790_000_000.0
WINDOW = EngineWindow(
    START,
    START + 1,
    {"operations": 10, "bytes": 40_960, "errors": 0},
    {"oldest_outstanding_seconds": 0.5},
    {"append": Histogram.from_values({2_000_000: 10})},
)
RECORDS = (WINDOW, EngineEvent(START + 0.5, "segment_deleted", {"segment": 7}), EngineEnd("failed", "why", False))
LINES = [json.loads(format_engine_line(record)) for record in RECORDS]
FIO = (Path(__file__).parents[1] / "engines" / "fio" / "data" / "three-seconds.txt").read_bytes()


def contract(start: float = START, count: int = 3) -> EngineContext:
    return EngineContext("run-1", Path("/data"), False, Path("/data"), 1.0, start, start + count, Path("/data"))


def require_sound(records: list[EngineRecord]) -> None:
    """What the worker takes for granted, and what can be committed."""
    for record in records:
        if isinstance(record, EngineEvent):
            assert math.isfinite(record.at)
            json.dumps(record.detail).encode()
        elif isinstance(record, EngineWindow):
            numbers: list[Any] = [record.start, record.end, *record.gauges.values()]
            assert all(isinstance(number, float) and math.isfinite(number) for number in numbers)
            assert all(isinstance(value, int) for value in record.counters.values())
            assert 0 <= record.start < record.end <= files.LAST_MOMENT
            line = JournalWindow(0, record.start, record.end, "soak", record.counters, record.gauges, {}, (0, 0))
            assert JournalWindow.from_line(line.to_line()).counters == record.counters
            assert all(histogram.count >= 0 for histogram in record.latency.values())


CHANGED = restructured(st.sampled_from(LINES)).map(lambda text: text.encode("utf-8", "surrogatepass"))
SPOILED = spoiled(st.just("".join(format_engine_line(record) + "\n" for record in RECORDS).encode()))


@holds(examples=200, output=CHANGED | SPOILED)
def test_output_outside_the_contract_yields_sound_records_and_the_next_line_is_read(output: bytes) -> None:
    with bounded():
        reader = JsonLines()
        records = reader.feed(output + b"\n", START) + reader.finish(0)
        require_sound(records)
        assert len(records) <= output.count(b"\n") + 1
        after = reader.feed(format_engine_line(WINDOW).encode() + b"\n", START)
        assert [format_engine_line(record) for record in after] == [format_engine_line(WINDOW)]


def reports() -> list[dict[str, Any]]:
    decoder, text, found = json.JSONDecoder(), FIO.decode(), []
    while text.strip():
        body, end = decoder.raw_decode(text.strip())
        found.append(_small(body))
        text = text.strip()[end:]
    return found


def _small(body: dict[str, Any]) -> dict[str, Any]:
    """What is read of a report, so that it is this that is changed."""
    names = ("error", "total_err", "read", "write", "sync")
    jobs = [{name: job[name] for name in names if name in job} for job in body["jobs"]]
    for job in jobs:
        for way in ("read", "write", "sync"):
            kept = ("runtime", "io_bytes", "lat_ns", "clat_ns")
            job[way] = {name: value for name, value in job.get(way, {}).items() if name in kept}
    return {"fio version": body["fio version"], "timestamp_ms": body["timestamp_ms"], "jobs": jobs}


REPORTS = reports()


def as_fio_prints(text: str) -> bytes:
    """An object of one line, its braces on lines of their own."""
    return b"{\n" + text.encode("utf-8", "surrogatepass")[1:-1] + b"\n}\n" if text.startswith("{") else text.encode()


def translated(output: bytes) -> list[EngineRecord]:
    translator = FioTranslator(contract(start=REPORTS[0]["timestamp_ms"] // 1000 - 1.0, count=8), 0.0)
    at = REPORTS[0]["timestamp_ms"] / 1000
    records: list[EngineRecord] = []
    *whole, rest = output.split(b"\n}\n")
    for piece in [*(each + b"\n}\n" for each in whole), rest]:
        records += translator.feed(piece, at)
        at += 1.0
    return records + translator.finish(-signal.SIGTERM)


@holds(examples=60, place=st.integers(0, len(REPORTS) - 1), data=st.data())
def test_a_report_of_fio_that_says_something_else_is_an_event(place: int, data: st.DataObject) -> None:
    text = data.draw(restructured(st.just(REPORTS[place])))
    written = [as_fio_prints(json.dumps(report)) for report in REPORTS]
    with bounded():
        require_sound(translated(b"".join([*written[:place], as_fio_prints(text), *written[place + 1 :]])))


@holds(examples=30, output=spoiled(st.just(FIO)))
def test_output_of_fio_that_is_damaged_is_read_on(output: bytes) -> None:
    with bounded():
        records = translated(output)
        require_sound(records)
        assert isinstance(records[-1], EngineEnd)


ANSWER = {
    "servers": [{"address": "a:1", "fault": None}, {"address": "b:1", "fault": "connecting to b:1: refused"}],
    "brokers": [{"address": "a:1", "fault": None}, {"address": "c:1", "fault": "refused"}],
    "faults": ["load.topics: too many"],
}


@holds(examples=100, text=restructured(st.just(ANSWER)) | spoiled(st.just(json.dumps(ANSWER).encode())))
def test_an_answer_about_brokers_is_understood_or_refused(text: str | bytes) -> None:
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    with bounded():
        try:
            probe = answer_of(content)
        except Problem as problem:
            assert "cliffwatch-load" in problem.detail
            return
        for sentence in (*probe.notes, *probe.unreachable, *probe.refused):
            assert sentence.encode()


@pytest.mark.parametrize(
    ("part", "value"),
    [("gauges", 2.0**64), ("gauges", -1e300), ("counters", 2**63), ("counters", -1)],
)
def test_a_number_that_no_journal_holds_is_an_event(part: str, value: float) -> None:
    body = LINES[0] | {part: {"operations": value}}
    (event,) = JsonLines().feed(json.dumps(body).encode() + b"\n", START)
    assert isinstance(event, EngineEvent)
    assert part in json.dumps(event.detail)


def test_a_clock_that_is_behind_is_measured() -> None:
    body = LINES[0] | {"gauges": {"wall_clock_offset_seconds": -3e-6, "clock_offset_seconds": -3600.0}}
    (window,) = JsonLines().feed(json.dumps(body).encode() + b"\n", START)
    assert isinstance(window, EngineWindow)
    require_sound([window])


@pytest.mark.parametrize("fault", ["", 0, ["refused"]])
def test_a_fault_that_says_nothing_is_no_answer(fault: object) -> None:
    with pytest.raises(Problem, match="cannot be read"):
        answer_of(json.dumps(ANSWER | {"faults": [fault]}).encode())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timestamp_ms", "1e999"),
        ("timestamp_ms", '"now"'),
        ("timestamp_ms", "9" * 400),
        ("jobs", "[" * 3000 + "]" * 3000),
    ],
)
def test_a_report_of_fio_that_is_none_is_an_event(name: str, value: str) -> None:
    text = json.dumps(REPORTS[0] | {name: "here"}).replace('"here"', value)
    records = translated(as_fio_prints(text))
    assert [record.name for record in records if isinstance(record, EngineEvent)] == ["output_not_understood"]


def test_a_window_that_could_not_be_read_back_is_no_window(tmp_path: Path) -> None:
    for start, counters in ((1e300, {"operations": 1}), (START, {"operations": 2**64})):
        line = format_engine_line(EngineWindow(start, start * 1.5, counters))
        (record,) = JsonLines().feed(line.encode() + b"\n", START)
        assert isinstance(record, EngineEvent)
        assert record.name == "output_not_understood"
    log = WindowLog(tmp_path, START)
    log.append(WINDOW, "soak")
    log.close()


@pytest.mark.real(why="damage at random")
def test_engine_output_at_random() -> None:
    explore(
        test_output_outside_the_contract_yields_sound_records_and_the_next_line_is_read,
        test_a_report_of_fio_that_says_something_else_is_an_event,
        test_output_of_fio_that_is_damaged_is_read_on,
        test_an_answer_about_brokers_is_understood_or_refused,
    )
