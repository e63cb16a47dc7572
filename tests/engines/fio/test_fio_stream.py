"""fio's output taken apart, however it is cut into chunks."""

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st
from tests.engines.fio.conftest import DATA

from cliffwatch.engines.fio import stream
from cliffwatch.engines.fio.stream import Damaged, OutputStream, Piece, Text

SMALL = b'fio: hello\n{\n  "a" : 1,\n  "b" : {\n    "c" : "}{"\n  }\n}\n\nbetween\n{\n  "a" : 2\n}\nend without newline'
SMALL_PIECES: list[Piece] = [
    Text("fio: hello"),
    {"a": 1, "b": {"c": "}{"}},
    Text("between"),
    {"a": 2},
    Text("end without newline"),
]


def pieces_of(*chunks: bytes) -> list[Piece]:
    output = OutputStream()
    return [piece for chunk in chunks for piece in output.feed(chunk)] + output.finish()


def test_a_small_output_is_the_same_wherever_it_is_split_in_three() -> None:
    for first in range(len(SMALL) + 1):
        for second in range(first, len(SMALL) + 1):
            assert pieces_of(SMALL[:first], SMALL[first:second], SMALL[second:]) == SMALL_PIECES


@given(st.lists(st.integers(0, 35_000), max_size=20))
def test_real_output_is_the_same_in_any_chunks(cuts: list[int]) -> None:
    output = (DATA / "three-seconds.txt").read_bytes()
    bounds = [0, *sorted(cuts), len(output)]
    chunks = [output[start:end] for start, end in itertools.pairwise(bounds)]
    pieces = pieces_of(*chunks)
    assert len(pieces) == 4
    assert pieces == pieces_of(output)
    assert all(isinstance(piece, dict) and piece["fio version"] == "fio-3.33" for piece in pieces)


def test_an_object_that_another_interrupts_or_the_end_cuts_off_is_reported() -> None:
    assert pieces_of(b'{\n  "a" : 1,\n{\n  "b" : 2\n}\n{\n  "c"') == [
        Damaged("another begins within it"),
        {"b": 2},
        Damaged("the output ends within it"),
    ]


def test_an_object_that_is_not_json_is_reported_and_the_next_is_read() -> None:
    damaged, whole = pieces_of(b'{\n  "a" : oops\n}\n{\n  "b" : 2\n}\n')
    assert isinstance(damaged, Damaged)
    assert whole == {"b": 2}


def test_an_endless_object_is_dropped() -> None:
    output = OutputStream()
    line = b'  "x" : "' + b"y" * 100_000 + b'",\n'
    output.feed(b"{\n")
    pieces = [piece for _ in range(stream.OBJECT_LIMIT_BYTES // len(line) + 1) for piece in output.feed(line)]
    assert pieces == [Damaged(f"it is longer than {stream.OBJECT_LIMIT_BYTES} bytes")]
    assert output.feed(json.dumps({"after": 1}, indent=2).encode() + b"\n") == [{"after": 1}]


def test_an_endless_line_is_not_kept() -> None:
    output = OutputStream()
    for _ in range(20):
        output.feed(b"z" * 1024 * 1024)
    assert sum(len(text.line) for text in output.finish() if isinstance(text, Text)) <= stream.TEXT_LIMIT_BYTES
