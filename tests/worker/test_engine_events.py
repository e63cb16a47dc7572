"""An engine that has more to say than a journal should hold."""

from cliffwatch.base.histogram import Histogram
from cliffwatch.coordinator.engine_names import NameLimit
from cliffwatch.model.request import MORE_TARGETS_LIMIT
from cliffwatch.model.window import NAMES_LIMITS, EngineWindow
from cliffwatch.part.engine_events import (
    DETAIL_LIMIT_BYTES,
    EVENTS_LIMIT,
    NAMES_LIMIT,
    OTHERS,
    SPAN_LIMIT_BYTES,
    SPAN_SECONDS,
    TOTAL_LIMIT,
    EventLimit,
)


def test_so_many_of_a_name_pass_and_the_others_are_counted() -> None:
    limit = EventLimit()
    assert limit.look(1000.0) == {}
    passed = [limit.passes("segment_deleted", {}) for _ in range(EVENTS_LIMIT + 7)]
    assert (passed.count(True), passed[-7:]) == (EVENTS_LIMIT, [False] * 7)
    assert limit.passes("reconnected", {}), "each name has its own share"
    assert limit.look(1000.0 + SPAN_SECONDS - 0.1) == {}
    assert limit.look(1000.0 + SPAN_SECONDS) == {"segment_deleted": 7}
    assert limit.passes("segment_deleted", {})
    assert limit.finish(1000.0 + SPAN_SECONDS + 1) == {}


def test_made_up_names_are_no_way_past_the_limit_and_the_first_of_a_name_is_not_crowded_out() -> None:
    limit = EventLimit()
    limit.look(1000.0)
    passed = [limit.passes(f"name-{number % 60}", {}) for number in range(3000)]
    assert passed.count(True) == TOTAL_LIMIT
    assert limit.passes("verification", {})
    passed = [limit.passes(f"other-{number}", {}) for number in range(3000)]
    assert passed.count(True) == NAMES_LIMIT - 61
    held_back = limit.finish(1001.0)
    assert len(held_back) <= NAMES_LIMIT + 1
    assert held_back[OTHERS] > 0
    assert sum(held_back.values()) + TOTAL_LIMIT + 1 + NAMES_LIMIT - 61 == 6001


def test_details_without_end_are_left_out() -> None:
    limit = EventLimit()
    limit.look(1000.0)
    assert not limit.passes("huge", {"text": "x" * DETAIL_LIMIT_BYTES})
    assert limit.passes("small", {"text": "x"})
    passed = [limit.passes("large", {"text": "x" * (DETAIL_LIMIT_BYTES - 100)}) for _ in range(10)]
    assert passed.count(True) == SPAN_LIMIT_BYTES // DETAIL_LIMIT_BYTES
    assert limit.finish(1001.0) == {"huge": 1, "large": 10 - passed.count(True)}
    assert limit.passes("large", {"text": "x" * 1000})


def test_names_of_a_run_that_came_first_are_kept_and_the_others_are_told_of_once() -> None:
    limit, room = NameLimit(), NAMES_LIMITS["gauges"]
    first = EngineWindow(0, 1, {"operations": 1}, {f"gauge-{number}": 1.0 for number in range(room)})
    assert (limit.fit(first), len(first.gauges)) == ([], room)
    for news in (["gauges"], []):
        later = EngineWindow(1, 2, {"operations": 1}, {"gauge-1": 2.0, "another": 1.0})
        assert limit.fit(later) == news
        assert (later.gauges, later.counters) == ({"gauge-1": 2.0}, {"operations": 1})


def test_as_many_parts_as_a_run_takes_keep_all_their_names() -> None:
    parts = 1 + MORE_TARGETS_LIMIT
    names = [f"nvme{part}n1/latency-{number}" for part in range(parts) for number in range(NAMES_LIMITS["latency"])]
    window = EngineWindow(0.0, 1.0, {}, latency=dict.fromkeys([*names, "append", "fsync"], Histogram()))
    assert NameLimit(parts).fit(window) == []
    assert len(window.latency) == len(names) + 2
