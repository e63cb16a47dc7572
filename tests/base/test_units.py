"""Durations and sizes: what people write, read exactly; what they get wrong, said clearly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.base.units import format_duration, format_size, parse_duration, parse_share, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("36h", 129_600), ("1h30m", 5400), ("250ms", 0.25), ("1d 12h", 129_600), ("0s", 0), ("1.5m", 90)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "36", "h", "36 hours", "-1h", "1h xx", "1hh", "1e3s"])
def test_an_invalid_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 36h"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**12))
def test_a_formatted_duration_is_read_back_to_the_millisecond(milliseconds: int) -> None:
    assert round(parse_duration(format_duration(milliseconds / 1000)) * 1000) == milliseconds


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("4GiB", 4 << 30), ("1GB", 10**9), ("16KiB", 16384), ("512B", 512), ("1.5 MiB", 3 << 19)]
)
def test_sizes_are_read(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "4", "4G", "4gib", "-1GiB", "GiB", "4 GiB extra"])
def test_an_invalid_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 4GiB"):
        parse_size(text)


@pytest.mark.parametrize(("text", "share"), [("0.25", 0.25), ("25%", 0.25), (" 12.5% ", 0.125), ("0", 0.0)])
def test_shares_are_read(text: str, share: float) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["", "%", "a quarter", "0.25 of it", "25 percent"])
def test_an_invalid_share_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"write 0\.25 or 25%"):
        parse_share(text)


def test_sizes_are_formatted_for_reading() -> None:
    assert [
        format_size(size) for size in (0, 999, 1023, 1536, 1003 << 10, 1007.1 * 2**20, 999.94 * 2**20, 3 << 29, 5 << 42)
    ] == [
        "0 B",
        "999 B",
        "1.0 KiB",
        "1.5 KiB",
        "1.0 MiB",
        "1.0 GiB",
        "999.9 MiB",
        "1.5 GiB",
        "20.0 TiB",
    ]
