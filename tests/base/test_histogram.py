"""Histograms keep every latency, merge without averaging, and speak the format of the usual HdrHistogram tools."""

import base64
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.base.histogram import HIGHEST_NANOSECONDS, Histogram

LATENCIES = st.lists(st.integers(min_value=1_000, max_value=HIGHEST_NANOSECONDS), min_size=1, max_size=200)


@given(LATENCIES)
def test_percentiles_are_within_three_digits_of_the_samples(values: list[int]) -> None:
    histogram = Histogram.from_values((value, 1) for value in values)
    ordered = sorted(values)
    for quantile, seconds in zip((0.5, 0.99, 1.0), histogram.percentiles_seconds((0.5, 0.99, 1.0)), strict=True):
        exact = ordered[max(0, int(np.ceil(quantile * len(ordered) - 1e-9)) - 1)] / 1e9
        # Values below half a microsecond of resolution differ by that at most; above, by one part in a thousand.
        assert seconds == pytest.approx(exact, rel=1e-3, abs=6e-7)


@given(LATENCIES, LATENCIES)
def test_merging_is_recording_everything_in_one(left: list[int], right: list[int]) -> None:
    merged = Histogram.from_values((value, 1) for value in left)
    merged.merge(Histogram.from_values((value, 1) for value in right))
    assert merged.encode() == Histogram.from_values((value, 1) for value in left + right).encode()


@given(LATENCIES)
def test_an_array_is_recorded_as_one_by_one(values: list[int]) -> None:
    together = Histogram()
    together.record_many(np.array(values, dtype=np.int64))
    assert together.encode() == Histogram.from_values((value, 1) for value in values).encode()
    assert together.count == len(values)


@given(LATENCIES)
def test_the_encoding_is_read_by_the_reference_library_and_back(values: list[int]) -> None:
    histogram = Histogram.from_values((value, 1) for value in values)
    text = histogram.encode()
    assert text.startswith("HISTFAA")
    reference = HdrHistogram.decode(text)
    assert reference.get_total_count() == len(values)
    back = Histogram.decode(text)
    assert back.percentiles_seconds() == histogram.percentiles_seconds()
    assert back.encode() == text


@given(st.dictionaries(st.integers(1_000, HIGHEST_NANOSECONDS), st.integers(1, 2**40), max_size=50))
def test_the_encoding_is_that_of_the_reference_library(counts: dict[int, int]) -> None:
    reference = HdrHistogram(1_000, HIGHEST_NANOSECONDS, 3)
    for nanoseconds, count in counts.items():
        reference.record_value(nanoseconds, count)
    assert Histogram.from_values(counts).encode() == reference.encode().decode()


@pytest.mark.parametrize("lowest", [1, 3, 1_000, 1_024, 1_000_000])
@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5])
def test_histograms_of_other_ranges_and_precisions_are_read(lowest: int, digits: int) -> None:
    other = HdrHistogram(lowest, 60_000_000_000, digits)
    for milliseconds in range(10, 1010, 10):
        other.record_value(milliseconds * 1_000_000)
    decoded = Histogram.decode(other.encode().decode())
    assert decoded.count == 100
    for quantile in (0.1, 0.5, 0.99):
        # A precision of one digit is to a sixteenth; and none is finer than the lowest value.
        allowed = max(1e-3, 0.6 / 10**digits) * quantile + lowest * 1e-9
        assert decoded.percentiles_seconds((quantile,))[0] == pytest.approx(quantile, abs=allowed)


def test_latencies_over_an_hour_are_clamped_and_counted() -> None:
    histogram = Histogram()
    histogram.record(HIGHEST_NANOSECONDS * 2, 3)
    histogram.record_many(np.array([HIGHEST_NANOSECONDS + 1], dtype=np.int64))
    assert histogram.count == 4
    assert histogram.overflow == 4
    assert histogram.max_seconds == pytest.approx(3600, rel=1e-3)


def test_nothing_counted_is_not_measured() -> None:
    histogram = Histogram()
    histogram.record(5_000_000, 0)
    assert histogram.percentiles_seconds() == [None] * 5
    assert histogram.max_seconds is None


def test_cumulative_counts_make_prometheus_buckets() -> None:
    histogram = Histogram.from_values({1_000_000: 5, 3_000_000: 3, 500_000_000: 1})
    assert histogram.cumulative_counts((0.0005, 0.002, 0.004, 1.0)) == [0, 5, 8, 9]
    assert histogram.sum_seconds() == pytest.approx(0.514, rel=1e-3)


@pytest.mark.parametrize("text", ["", "HISTFAAA", "not base64!", "HISTFAAAAAF4nA=="])
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HdrHistogram"):
        Histogram.decode(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda histogram: histogram.record(5_000_000),
        lambda histogram: histogram.record_many(np.array([5_000_000], dtype=np.int64)),
        lambda histogram: histogram.merge(Histogram.from_values({5_000_000: 1})),
        lambda histogram: histogram.remove(Histogram.from_values({1_000_000: 1})),
    ],
    ids=["record", "record_many", "merge", "remove"],
)
def test_a_decoded_histogram_is_encoded_unchanged_until_it_is_modified(change: Callable[[Histogram], None]) -> None:
    made = Histogram.from_values({1_000_000: 2, 2_000_000: 1})
    payload = base64.b64decode(made.encode())
    # As another program compresses it: a cookie, the length, and the rest.
    packed = zlib.compress(zlib.decompress(payload[8:]), 0)
    text = base64.b64encode(payload[:4] + len(packed).to_bytes(4, "big") + packed).decode()
    decoded = Histogram.decode(text)
    assert decoded.encode() == text != made.encode()
    change(decoded)
    change(made)
    assert decoded.encode() == made.encode()


@pytest.mark.parametrize("odd", ["\n", ",", " ", "\r\n#"])
def test_non_base64_characters_of_a_histogram_payload_are_not_passed_on(odd: str) -> None:
    text = Histogram.from_values({1_000_000: 2}).encode()
    for damaged in (text + odd, odd + text, text[:12] + odd + text[12:]):
        try:
            decoded = Histogram.decode(damaged)
        except ValueError:
            continue
        assert decoded.encode() == text


def test_a_merged_histogram_can_be_removed_again() -> None:
    kept, taken = Histogram.from_values({2_000_000: 10}), Histogram.from_values({900_000_000: 3})
    merged = Histogram.from_values({2_000_000: 10})
    merged.merge(taken)
    merged.remove(taken)
    assert merged.count == 10
    assert merged.percentiles_seconds([0.5, 1.0]) == kept.percentiles_seconds([0.5, 1.0])
    assert merged.max_seconds == pytest.approx(kept.max_seconds, rel=1e-3)
    merged.remove(kept)
    assert (merged.count, merged.max_seconds) == (0, None)
