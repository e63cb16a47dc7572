"""A network that delays, cuts, truncates and garbles, between the load generator and a real broker."""

from typing import Any

import pytest
from testkit.kafka_broker import Cluster
from testkit.kafka_load import Outcome, configuration, finish, read_line, read_until, started, stop
from testkit.waiting import wait_until
from tests.engines.kafka.proxy import Proxy


def run_with_fault(document: dict[str, Any], fault: Any, times: int = 1) -> Outcome:
    """Execute a load; `fault` happens after the first window, and each further one."""
    outcome = Outcome(0)
    with started(document) as process:
        for number in range(times):
            read_until(process, outcome, number + 1)
            fault()
        rest = finish(process)
    rest.windows, rest.events = outcome.windows + rest.windows, outcome.events + rest.events
    return rest


def assert_accounted_for(outcome: Outcome) -> None:
    found = outcome.verification
    assert (found["lost"], found["duplicated"], found["reordered"], found["corrupted"]) == (0, 0, 0, 0)
    assert found["made"] == found["acknowledged"] == found["read"] == outcome.latency("publish").count
    assert found["unacknowledged"] == found["unsent"] == found["partitions_not_drained"] == 0


def cut(proxy: Proxy) -> None:
    """End all connections, and return once a producer's and a consumer's are there again, to be cut next."""
    before = proxy.connections
    proxy.cut()
    wait_until(lambda: proxy.connections >= before + 2, "new connections")


def test_connections_that_are_cut_lose_and_repeat_nothing(broker: Cluster, proxy: Proxy) -> None:
    outcome = Outcome(0)
    with started(configuration(proxy.address, seconds=None)) as process:
        read_until(process, outcome, 1)
        for _ in range(3):
            cut(proxy)
            read_until(process, outcome, len(outcome.windows) + 1)
        stop(process)
        rest = finish(process)
    outcome = Outcome(rest.status, outcome.windows + rest.windows, outcome.events + rest.events, rest.end)
    assert_accounted_for(outcome)
    assert outcome.total("disconnects") >= 5
    assert outcome.total("reconnects") >= 4
    assert {"disconnected", "reconnected"} <= {event["name"] for event in outcome.events}
    assert broker.topics() == set()


def test_records_that_are_given_up_repeat_none_of_those_whose_answers_were_lost(broker: Cluster, proxy: Proxy) -> None:
    """The broker has all of them. Under the new id that it takes to go on, it would not know them again."""
    producer = {"rate": 500.0, "linger_seconds": 0.5, "request_timeout_seconds": 2.6, "delivery_timeout_seconds": 4.0}
    document = configuration(proxy.address, seconds=9, producer=producer, topics={"partitions": 1})
    outcome = Outcome(0)
    with started(document) as process:
        read_until(process, outcome, 1)
        proxy.swallows_answers = True
        # The first of five batches is too old, and those after it are not yet.
        while not outcome.events_named("records_failed"):
            read_line(process, outcome)
        proxy.swallows_answers = False
        proxy.cut()
        rest = finish(process)
    rest.windows, rest.events = outcome.windows + rest.windows, outcome.events + rest.events
    found = rest.verification
    assert (found["lost"], found["duplicated"], found["reordered"], found["corrupted"]) == (0, 0, 0, 0)
    assert 0 < found["unacknowledged"] < 1000
    assert found["acknowledged"] == rest.total("produced_records")
    assert rest.total("producer_id_resets") >= 1


@pytest.mark.parametrize("place", [1, 6, 30])
def test_an_answer_that_ends_early_is_asked_for_again(broker: Cluster, proxy: Proxy, place: int) -> None:
    def truncate() -> None:
        proxy.truncate_after_bytes = place

    outcome = run_with_fault(configuration(proxy.address, seconds=2), truncate)
    assert_accounted_for(outcome)
    assert outcome.total("disconnects") >= 1


def test_a_garbled_answer_corrupts_no_figure(broker: Cluster, proxy: Proxy) -> None:
    def garble() -> None:
        proxy.garble_after_bytes = 2_000

    outcome = run_with_fault(configuration(proxy.address, seconds=4), garble, times=5)
    found = outcome.verification
    # A byte within a record is found by its checksum; one elsewhere ends the connection, or names what is not there.
    assert found["duplicated"] == found["reordered"] == found["unacknowledged"] == 0
    assert found["lost"] <= found["corrupted"]
    assert found["made"] == found["acknowledged"] == 4000


def test_a_delay_is_in_every_latency(broker: Cluster, proxy: Proxy) -> None:
    proxy.delay_seconds = 0.2
    outcome = run_with_fault(configuration(proxy.address, seconds=3, window=1.0), lambda: None)
    assert_accounted_for(outcome)
    for name in ("publish", "publish_service", "end_to_end"):
        assert outcome.seconds(name, 0.01) > 0.2
    # At any moment of the load there is a record that has been due for so long and is not acknowledged.
    assert all(window["gauges"]["oldest_outstanding_seconds"] > 0.15 for window in outcome.windows[1:-1])
    assert outcome.windows[-1]["gauges"]["oldest_outstanding_seconds"] == 0
