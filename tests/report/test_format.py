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


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("there is no `_service` twin", "there is no <code>_service</code> twin"),
        ("`a<b>` & c", "<code>a&lt;b&gt;</code> &amp; c"),
        ("a lone ` <i>", "a lone ` &lt;i&gt;"),
        ("plain", "plain"),
    ],
)
def test_what_stands_in_backticks_is_code_on_a_page_and_everything_is_escaped(text: str, page: str) -> None:
    assert str(formats.marked(text)) == page


def test_values_are_written_in_the_unit_of_their_key() -> None:
    detail = {"size_bytes": 2048, "pause_seconds": 1.5, "used_ratio": 0.25, "dirty_ratio": 20, "rotational": False}
    assert formats.detail(detail) == "size 2.0 KiB, pause 1.5 s, used 25.00 %, dirty ratio 20, rotational no"


def test_a_moment_in_a_detail_is_a_time_of_day_and_what_is_empty_is_left_out() -> None:
    assert formats.detail({"start": 1_790_002_800.0, "reason": None, "message": ""}) == "start 15:00:00 UTC"


def test_a_long_detail_is_cut_visibly() -> None:
    assert formats.detail({"message": "x" * 500}, limit=20) == "message " + "x" * 11 + "…"


def test_a_note_about_watchers_or_baselines_is_a_sentence_and_not_its_fields() -> None:
    watchers = {"there": ["prometheus"], "without": {"drive_exporter": "this machine has no NVMe drive"}}
    baseline = {"start": 1.0, "levels": {"write.p99": 0.006, "operations_per_second": 100.0}}
    for name, detail, words in (
        ("watchers", watchers, "watchers up: prometheus; unavailable: drive_exporter (this machine has no NVMe drive)"),
        ("watchers", {"there": [], "without": {}}, "watchers up: none"),
        ("watcher_back", {"watcher": "prometheus"}, "watcher prometheus is up again"),
        ("baseline", baseline, "baseline: write p99 6 ms"),
        ("watchers", {"there": "damaged"}, "there damaged"),
        ("load_moved", {"seconds": 2}, "seconds 2"),
    ):
        assert formats.event_detail({"type": "note", "name": name, "detail": detail}) == words
