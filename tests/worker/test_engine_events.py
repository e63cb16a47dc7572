"""An engine that has more to say than a journal should hold."""

from cliffwatch.worker.engine_events import EVENTS_LIMIT, SPAN_SECONDS, EventLimit


def test_so_many_of_a_name_pass_and_the_others_are_counted() -> None:
    limit = EventLimit()
    assert limit.look(1000.0) == {}
    passed = [limit.passes("segment_deleted") for _ in range(EVENTS_LIMIT + 7)]
    assert (passed.count(True), passed[-7:]) == (EVENTS_LIMIT, [False] * 7)
    assert limit.passes("reconnected"), "each name has its own share"
    assert limit.look(1000.0 + SPAN_SECONDS - 0.1) == {}
    assert limit.look(1000.0 + SPAN_SECONDS) == {"segment_deleted": 7}
    assert limit.passes("segment_deleted")
    assert limit.finish(1000.0 + SPAN_SECONDS + 1) == {}
