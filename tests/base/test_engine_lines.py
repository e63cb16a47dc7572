"""The engine contract: what is of it is read whole, what is not of it is named."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.contract import JsonLines
from cliffwatch.model.window import (
    EngineEnd,
    EngineEvent,
    EngineLineError,
    EngineRecord,
    EngineWindow,
    format_engine_line,
    parse_engine_line,
)


def window(start: float = 10.0) -> EngineWindow:
    histogram = Histogram.from_values({2_000_000: 10})
    return EngineWindow(start, start + 1, {"operations": 10, "bytes": 40_960, "errors": 0}, {}, {"append": histogram})


RECORDS: list[EngineRecord] = [
    window(),
    EngineWindow(10.0, 11.0, {"operations": 10}, {}, {}, {"publish": {"p50": 0.002, "p999": 0.02, "max": 0.03}}),
    EngineEvent(11.5, "segment_deleted", {"segment": 7}),
    window(11.0),
    EngineEnd("completed"),
]


def same(left: EngineRecord, right: EngineRecord) -> bool:
    return format_engine_line(left) == format_engine_line(right)


@pytest.mark.parametrize(
    ("quantiles", "place"),
    [
        ('{"publish":{"p98":0.1}}', "quantiles.publish.p98"),
        ('{"publish":{"p99":-0.1}}', "quantiles.publish.p99"),
        ('{"publish":{"p99":NaN}}', "quantiles.publish.p99"),
        ('{"publish":0.1}', "quantiles.publish"),
        ('{"append":{"p99":0.1}}', "quantiles: 'append' has a histogram, too"),
    ],
)
def test_quantiles_that_cannot_be_are_named(quantiles: str, place: str) -> None:
    line = format_engine_line(window())[:-1] + f',"quantiles":{quantiles}}}'
    with pytest.raises(EngineLineError, match=place.replace(".", r"\.")):
        parse_engine_line(line)


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_is_read_back(record: EngineRecord) -> None:
    assert same(parse_engine_line(format_engine_line(record)), record)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("", "line"),
        ("{}", "line"),
        ('{"type":"window","seq":1,"start":1.0,"end":2.0}', "counters"),
        ('{"type":"window","seq":1,"start":2.0,"end":2.0,"counters":{}}', "end"),
        ('{"type":"window","seq":1,"start":1.0,"end":2.0,"counters":{},"latency":{"append":"xyz"}}', "latency"),
        ('{"type":"window","seq":1,"start":NaN,"end":2.0,"counters":{}}', "start"),
        ('{"type":"window","seq":1,"start":1.0,"end":2.0,"counters":{"\\u0000":1}}', "counters"),
        ('{"type":"end","status":"perhaps"}', "status"),
    ],
)
def test_a_line_that_is_not_of_the_contract_is_named(line: str, field: str) -> None:
    with pytest.raises(EngineLineError, match=field):
        parse_engine_line(line)


@given(st.lists(st.integers(min_value=0, max_value=2000), max_size=12))
def test_output_may_be_cut_anywhere(cuts: list[int]) -> None:
    output = "".join(format_engine_line(record) + "\n" for record in RECORDS).encode()
    bounds = sorted({0, len(output), *(cut % len(output) for cut in cuts)})
    reader = JsonLines()
    records = [record for start, end in pairwise(bounds) for record in reader.feed(output[start:end], 0.0)]
    assert len(records) == len(RECORDS)
    assert all(map(same, records, RECORDS))


def test_nonsense_between_windows_is_an_event_and_the_windows_stand() -> None:
    first, last = format_engine_line(window(10.0)), format_engine_line(window(11.0))
    records = JsonLines().feed(f"{first}\nwarming up…\n{last}\n".encode(), 12.0)
    kinds = [type(record).__name__ for record in records]
    assert kinds == ["EngineWindow", "EngineEvent", "EngineWindow"]
    assert isinstance(records[1], EngineEvent)
    assert records[1].name == "output_not_understood"
    assert records[1].detail["line"].startswith("warming")


def test_an_endless_line_is_dropped_and_reported() -> None:
    reader = JsonLines()
    chunk = b"x" * (JsonLines.LINE_LIMIT_BYTES + 1)
    assert [record.name for record in reader.feed(chunk, 1.0) if isinstance(record, EngineEvent)] == [
        "output_line_too_long"
    ]
    assert len(reader.feed(format_engine_line(window()).encode() + b"\n", 2.0)) == 1
