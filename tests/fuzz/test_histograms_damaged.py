"""Histograms: what is written is read back, and text that is none is refused and costs little."""

import base64
import struct
import zlib

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import strategies as st
from tests.fuzz.damage import spoiled
from tests.fuzz.explore import bounded, explore, holds

from cliffwatch.base.histogram import HIGHEST_NANOSECONDS, Histogram

COUNTS = st.dictionaries(st.integers(1_000, 2 * HIGHEST_NANOSECONDS), st.integers(1, 2**40), max_size=20)
_COOKIE_V2, _COOKIE_COMPRESSED = 0x1C849313, 0x1C849314


def text_of(counts: dict[int, int]) -> bytes:
    return Histogram.from_values(counts).encode().encode()


def payload(body: bytes, lowest: int, highest: int, digits: int, cookie: int = _COOKIE_V2, length: int = -1) -> str:
    """An encoded histogram with whatever header and counts."""
    header = struct.pack(">iiiiqqd", cookie, len(body) if length < 0 else length, 0, digits, lowest, highest, 1.0)
    packed = zlib.compress(header + body)
    return base64.b64encode(struct.pack(">ii", _COOKIE_COMPRESSED, len(packed)) + packed).decode()


def counted(values: list[int]) -> bytes:
    """Counts as the encoding has them: ZigZag LEB128 of at most nine bytes."""
    found = bytearray()
    for value in values:
        left = ((value << 1) ^ (value >> 63)) & (2**64 - 1)
        for place in range(9):
            last = place == 8 or left < 128
            found.append(left if last and place < 8 else (left & 255 if place == 8 else (left & 127) | 128))
            if last:
                break
            left >>= 7
    return bytes(found)


FORGED = st.builds(
    payload,
    st.builds(counted, st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-30, 30), max_size=30))
    | st.binary(max_size=40),
    st.sampled_from([0, 1, 1000, -1, 2**62]) | st.integers(-5, 2**63 - 1),
    st.sampled_from([0, 2, HIGHEST_NANOSECONDS, 2**63 - 1, -1]) | st.integers(-5, 2**63 - 1),
    st.sampled_from([1, 2, 3, 3, 3, 4, 5, 0, 7]),
)


def use(histogram: Histogram) -> None:
    """All that is asked of a histogram that was read."""
    assert histogram.count >= 0
    values = histogram.percentiles_seconds()
    assert all(value is None or 0 <= value <= 3_700 for value in values)
    assert [value for value in values if value is not None] == sorted(value for value in values if value is not None)
    counts = histogram.cumulative_counts((0.001, 0.1, 10.0))
    assert 0 <= counts[0] <= counts[1] <= counts[2] <= histogram.count
    assert histogram.sum_seconds() >= 0
    other = Histogram.from_values({1_000_000: 1})
    other.merge(histogram)
    assert other.count == histogram.count + 1
    assert Histogram.decode(histogram.encode()).count == histogram.count


def read(text: str) -> None:
    with bounded():
        try:
            histogram = Histogram.decode(text)
        except ValueError as error:
            assert "HdrHistogram" in str(error)
            return
        use(histogram)


@holds(examples=50, counts=COUNTS)
def test_a_histogram_is_read_back(counts: dict[int, int]) -> None:
    written = Histogram.from_values(counts)
    found = Histogram.decode(written.encode())
    assert found.encode() == written.encode()
    assert (found.count, found.percentiles_seconds()) == (written.count, written.percentiles_seconds())


@holds(examples=50, content=spoiled(st.builds(text_of, COUNTS)))
def test_damaged_text_is_read_or_refused(content: bytes) -> None:
    read(content.decode("utf-8", "surrogateescape"))


@holds(examples=100, text=FORGED)
def test_forged_text_is_read_or_refused(text: str) -> None:
    read(text)


@pytest.mark.parametrize("digits", [1, 3, 5])
def test_values_longer_than_an_hour_are_counted_at_one_hour(digits: int) -> None:
    other = HdrHistogram(1, 36_000 * 10**9, digits)
    other.record_value(20_000 * 10**9, 7)
    other.record_value(5_000_000, 3)
    found = Histogram.decode(other.encode().decode())
    assert (found.count, found.overflow) == (10, 7)
    assert found.max_seconds == pytest.approx(3600, rel=1e-3)
    assert found.percentiles_seconds([0.3])[0] == pytest.approx(0.005, rel=0.1)


@pytest.mark.real(why="text at random")
def test_histograms_at_random() -> None:
    explore(test_a_histogram_is_read_back, test_damaged_text_is_read_or_refused, test_forged_text_is_read_or_refused)
