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
    ("seconds", "words"),
    [
        (129_600, "36h"),
        (129_590, "35h59m50s"),
        (90.04, "1m30s"),
        (59.97, "1m"),
        (2.5, "2.5 s"),
        (0, "0 s"),
        (-3, "−3 s"),
    ],
)
def test_durations_keep_their_hours(seconds: float, words: str) -> None:
    assert formats.duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0:00:00"), (129_590, "35:59:50"), (-6, "−0:00:06"), (-0.2, "0:00:00")]
)
def test_places_on_the_time_line_go_on_past_a_day(seconds: float, words: str) -> None:
    assert formats.elapsed(seconds) == words


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("there is no `_service` twin", "there is no <code>_service</code> twin"),
        ("`a<b>` & c", "<code>a&lt;b&gt;</code> &amp; c"),
        ("a lone ` <i>", "a lone ` &lt;i&gt;"),
        ("plain", "plain"),
    ],
)
def test_text_in_backticks_is_code_on_a_page_and_all_text_is_escaped(text: str, page: str) -> None:
    assert str(formats.marked(text)) == page
