"""One process produces and another consumes: by how much their times differ is known, within a bound that holds."""

from collections.abc import Iterator
from typing import Any

import pytest
from testkit.kafka_broker import Cluster
from testkit.kafka_load import Outcome, configuration, finish, read_until, run, started

WINDOW_SECONDS = 0.5
#: What the producing process does before the consuming one begins, and after it has ended.
AHEAD_SECONDS, AFTER_SECONDS = 3.0, 1.0
#: A kernel of its own would have another monotonic clock; a time namespace has one too.
ANOTHER_CLOCK = ("unshare", "--time", "--monotonic", "86400", "--fork", "--kill-child")


@pytest.fixture
def topic(broker: Cluster) -> Iterator[str]:
    broker.create_topic("clocks", 3)
    yield "clocks"
    broker.delete_topic("clocks")


def execute_run(broker: Cluster, topic: str, seconds: float, within: tuple[str, ...] = (), **changes: Any) -> Outcome:
    """What a consuming process reports of what another produces for so long, a little before and a little after."""
    lasting = AHEAD_SECONDS + seconds + AFTER_SECONDS
    producing = configuration(broker.bootstrap, seconds=lasting, window=WINDOW_SECONDS)
    consuming = configuration(broker.bootstrap, seconds=seconds, window=WINDOW_SECONDS) | changes
    del producing["consumer"], consuming["producer"]
    producing["topics"] = consuming["topics"] = {"existing": [topic]}
    with started(producing, within=within) as producer:
        read_until(producer, Outcome(0), 1)
        consuming["start"] = producing["start"] + AHEAD_SECONDS
        consuming["stop"] = consuming["start"] + seconds
        outcome = run(consuming)
        finish(producer)
    assert outcome.end["status"] == "completed", outcome.end
    assert outcome.latency("end_to_end").count > 500 * seconds
    return outcome


def test_on_one_machine_the_difference_is_exact(broker: Cluster, topic: str) -> None:
    outcome = execute_run(broker, topic, 3)
    (recorded,) = outcome.events_named("clock_offset")
    assert (recorded["by"], recorded["bound_seconds"]) == ("the machine's clock", 1e-6)
    # Both took their time from the same wall clock, seconds apart.
    assert abs(recorded["offset_seconds"]) < 0.01
    gauges = outcome.windows[-1]["gauges"]
    assert gauges["clock_offset_seconds"] == recorded["offset_seconds"]
    assert gauges["clock_offset_bound_seconds"] == 1e-6
    assert outcome.total("negative_latencies") == 0
    assert gauges["round_trip_seconds"] > 0


def test_on_two_machines_the_bounds_narrow_and_hold_the_true_difference(broker: Cluster, topic: str) -> None:
    outcome = execute_run(broker, topic, 8, within=ANOTHER_CLOCK)
    recorded = outcome.events_named("clock_offset")
    assert {one["by"] for one in recorded} == {"notes left with the brokers"}
    for one in recorded:
        # One wall clock was read by both: the true difference is next to nothing.
        assert abs(one["offset_seconds"]) <= one["bound_seconds"] + 0.01
    bounds = [one["bound_seconds"] for one in recorded]
    assert bounds == sorted(bounds, reverse=True)
    assert outcome.windows[-1]["gauges"]["clock_offset_bound_seconds"] <= recorded[-1]["bound_seconds"] + 0.01


def test_a_difference_that_is_given_is_used_and_what_is_negative_is_counted(broker: Cluster, topic: str) -> None:
    outcome = execute_run(broker, topic, 1, consumer={"clock_offset_seconds": -100.0})
    assert outcome.events_named("clock_offset") == []
    assert "clock_offset_seconds" not in outcome.windows[-1]["gauges"]
    # As if it had been read long before it was due: nothing is dropped.
    assert outcome.total("negative_latencies") == outcome.latency("end_to_end").count
    assert outcome.seconds("end_to_end", 1.0) <= 1e-6
    ahead = execute_run(broker, topic, 1, consumer={"clock_offset_seconds": 100.0})
    assert ahead.total("negative_latencies") == 0
    assert ahead.seconds("end_to_end", 0.01) > 99.0
