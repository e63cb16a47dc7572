"""Quantities as people read them."""

import pytest

from cliffwatch.report import format as formats


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0.0, "0 µs"),
        (511e-9, "0.511 µs"),
        (0.0123, "12.3 ms"),
        (0.9999, "1 s"),
        (3.52, "3.52 s"),
        (1234, "1,234 s"),
    ],
)
def test_latencies_have_three_digits_and_the_unit_that_suits_them(seconds: float | None, words: str) -> None:
    assert formats.latency(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(129_600, "36h"), (129_590, "35h59m50s"), (90.04, "1m30s"), (0, "0s"), (-3, "−3s")]
)
def test_durations_keep_their_hours(seconds: float, words: str) -> None:
    assert formats.duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0:00:00"), (129_590, "35:59:50"), (-6, "−0:00:06"), (-0.2, "0:00:00")]
)
def test_places_on_the_time_line_go_on_past_a_day(seconds: float, words: str) -> None:
    assert formats.elapsed(seconds) == words


def test_values_are_written_in_the_unit_of_their_key() -> None:
    detail = {"size_bytes": 2048, "pause_seconds": 1.5, "used_ratio": 0.25, "dirty_ratio": 20, "rotational": False}
    assert formats.detail(detail) == "size 2.0 KiB, pause 1.5 s, used 25.00 %, dirty ratio 20, rotational no"


def test_a_moment_in_a_detail_is_a_time_of_day_and_what_is_empty_is_left_out() -> None:
    assert formats.detail({"start": 1_790_002_800.0, "reason": None, "message": ""}) == "start 15:00:00 UTC"


def test_a_long_detail_is_cut_visibly() -> None:
    assert formats.detail({"message": "x" * 500}, limit=20) == "message " + "x" * 11 + "…"
