"""Producing to and consuming from a real broker, and what is reported of it."""

import time
from itertools import pairwise
from typing import Any

import pytest
from testkit.kafka_broker import Cluster
from testkit.kafka_load import Outcome, configuration, finish, read_until, run, started, stop


def assert_clean(verification: dict[str, Any]) -> None:
    faults = ("lost", "duplicated", "reordered", "corrupted", "unacknowledged", "partitions_not_drained")
    assert {name: verification[name] for name in faults} == dict.fromkeys(faults, 0)
    assert verification["made"] == verification["acknowledged"] == verification["read"] == verification["in_log"]


@pytest.mark.gate(why="smoke of the Kafka engine and a broker")
def test_every_record_that_was_due_is_acknowledged_read_and_measured(broker: Cluster) -> None:
    document = configuration(broker.bootstrap, seconds=3, producer={"producers": 2}, consumer={"consumers": 2})
    outcome = run(document)
    assert (outcome.status, outcome.end) == (0, {"type": "end", "status": "completed"})
    assert_clean(outcome.verification)
    for counter in ("operations", "produced_records", "consumed_records"):
        assert outcome.total(counter) == 3000
    assert outcome.total("bytes") == 3000 * 1024
    for name in ("publish", "publish_service", "end_to_end"):
        assert outcome.latency(name).count == 3000
    assert [window["seq"] for window in outcome.windows] == list(range(6))
    start = outcome.start_of(document)
    assert (outcome.windows[0]["start"], outcome.windows[-1]["end"]) == (start, start + 3)
    assert all(before["end"] == after["start"] for before, after in pairwise(outcome.windows))
    assert outcome.windows[0]["gauges"]["target_rate"] == 1000
    assert broker.topics() == set()


@pytest.mark.parametrize(
    "settings",
    [
        {"compression": "gzip", "key": {"distribution": "round_robin", "count": 100}},
        {"compression": "snappy", "key": {"distribution": "random", "count": 100}},
        {"compression": "lz4", "key": {"distribution": "zipf", "count": 100}},
        {"compression": "zstd", "record_sizes": [{"size_bytes": 32}, {"size_bytes": 5000, "weight": 0.2}]},
        {"acks": "1", "max_in_flight": 20, "linger_seconds": 0.0},
        {"acks": "0", "batch_size_bytes": 1100, "random_ratio": 0.0},
    ],
    ids=lambda settings: "-".join(str(settings.get(name, "")) for name in ("compression", "acks")),
)
def test_batches_of_every_kind_come_back_as_they_were_sent(broker: Cluster, settings: dict[str, Any]) -> None:
    outcome = run(configuration(broker.bootstrap, seconds=1, producer=settings))
    assert outcome.end["status"] == "completed"
    assert_clean(outcome.verification)
    assert outcome.total("consumed_records") == 1000


def test_topics_that_were_there_are_left_alone_and_others_records_are_not_measured(broker: Cluster) -> None:
    broker.create_topic("mine", 3)
    try:
        theirs = run(configuration(broker.bootstrap, seconds=1, topics={"existing": ["mine"], "prefix": None}))
        assert_clean(theirs.verification)
        everything: dict[str, Any] = {
            "topics": {"existing": ["mine"], "prefix": None},
            "consumer": {"from": "earliest"},
        }
        ours = run(configuration(broker.bootstrap, seconds=1, **everything))
        assert ours.total("foreign_records") == 1000
        assert ours.verification["read"] == ours.latency("end_to_end").count == 1000
        reading = configuration(broker.bootstrap, seconds=1, **everything)
        del reading["producer"]
        only_read = run(reading)
        assert only_read.total("operations") == only_read.verification["read"] == 2000
        assert only_read.verification["lost"] == only_read.verification["partitions_not_drained"] == 0
        assert broker.topics() == {"mine"}
        assert sum(broker.end_offsets("mine").values()) == 2000
    finally:
        broker.delete_topic("mine")


def test_asked_to_stop_it_reports_its_last_window_and_accounts_for_everything(broker: Cluster) -> None:
    with started(configuration(broker.bootstrap, seconds=None)) as process:
        outcome = Outcome(0)
        read_until(process, outcome, 2)
        stop(process)
        rest = finish(process)
    assert (rest.status, rest.end["status"]) == (0, "completed")
    assert_clean(rest.verification)
    recorded = outcome.windows + rest.windows
    assert sum(window["counters"]["produced_records"] for window in recorded) == rest.verification["made"]
    assert broker.topics() == set()


def test_a_broker_that_freezes_is_waited_for_and_every_overdue_record_counts(broker: Cluster) -> None:
    document = configuration(broker.bootstrap, seconds=5, topics={"delete_at_end": True})
    with started(document) as process:
        outcome = Outcome(0)
        read_until(process, outcome, 2)
        node = broker.nodes[0]
        node.pause()
        paused = time.monotonic()
        try:
            read_until(process, outcome, 6)
        finally:
            frozen_seconds = time.monotonic() - paused
            node.resume()
        rest = finish(process)
    rest.windows = outcome.windows + rest.windows
    assert_clean(rest.verification)
    assert rest.verification["made"] == 5000
    assert rest.latency("publish").count == 5000
    # A tenth of all records were due in the first half second, and waited for all the rest.
    assert rest.seconds("publish", 0.9) > frozen_seconds - 0.6
    assert rest.seconds("publish", 1.0) > frozen_seconds - 0.1


@pytest.mark.timing(why="what a second produces and consumes is held to a tenth")
def test_a_backlog_is_built_and_drained_with_its_latency(broker: Cluster) -> None:
    pauses = [{"after_seconds": 0.5, "seconds": 1.0}, {"after_seconds": 2.0, "until_bytes": 300_000}]
    outcome = run(configuration(broker.bootstrap, seconds=3, consumer={"pauses": pauses}))
    assert_clean(outcome.verification)
    first, second = outcome.events_named("consumers_resumed")
    assert first["backlog_records"] >= 900
    assert second["backlog_bytes"] >= 300_000
    assert len(outcome.events_named("backlog_drained")) == 2
    assert outcome.seconds("end_to_end", 1.0) > 0.9
    assert max(window["gauges"]["backlog_records"] for window in outcome.windows) > 300


def test_records_deleted_by_retention_before_reading_are_expired_and_not_lost(broker: Cluster) -> None:
    broker.create_topic("kept-briefly", 6)
    try:
        topics = {"existing": ["kept-briefly"], "prefix": None}
        pauses = [{"after_seconds": 1.0, "seconds": 9.0}]
        document = configuration(broker.bootstrap, seconds=12, topics=topics, consumer={"pauses": pauses})
        outcome = Outcome(0)
        with started(document) as process:
            read_until(process, outcome, 6)
            broker.delete_records("kept-briefly", 6)
            rest = finish(process)
    finally:
        broker.delete_topic("kept-briefly")
    found = rest.verification
    assert (rest.status, found["lost"], found["partitions_not_drained"]) == (0, 0, 0)
    assert found["expired"] >= 1000
    assert found["read"] + found["expired"] == found["acknowledged"] == 12_000
    assert rest.total("offset_resets") >= 6
    assert sum(partition["expired"] for partition in found["partitions"]) == found["expired"]


def test_members_of_a_group_share_the_partitions_and_read_every_record_once(broker: Cluster) -> None:
    consumer = {"group": "soak", "consumers": 3}
    outcome = run(configuration(broker.bootstrap, seconds=4, producer={"rate": 500.0}, consumer=consumer))
    assert_clean(outcome.verification)
    assert sum(assigned["partitions"] for assigned in outcome.events_named("group_assigned")[-3:]) == 6


def test_a_broker_that_asks_for_patience_gets_it_and_is_reported(broker: Cluster) -> None:
    configs = ("--bootstrap-server", broker.bootstrap, "--entity-type", "clients", "--entity-name", "hasty", "--alter")
    broker.run("kafka.admin.ConfigCommand", *configs, "--add-config", "producer_byte_rate=20000")
    outcome = run(configuration(broker.bootstrap, seconds=3, producer={"rate": 150.0}, client_id="hasty"))
    broker.run("kafka.admin.ConfigCommand", *configs, "--delete-config", "producer_byte_rate")
    assert_clean(outcome.verification)
    assert outcome.total("throttle_milliseconds") > 100
    assert outcome.events_named("throttled")


def test_steps_of_the_rate_come_at_their_time(broker: Cluster) -> None:
    steps = [{"after_seconds": 1.0, "rate": 3000.0}, {"after_seconds": 2.0, "rate": 500.0}]
    outcome = run(configuration(broker.bootstrap, seconds=3, producer={"steps": steps}))
    assert_clean(outcome.verification)
    assert outcome.verification["made"] == 1000 + 3000 + 500


@pytest.mark.timing(why="whether a rate holds for 0.4 s depends on other load on the processors")
def test_the_highest_rate_is_found_between_one_that_holds_and_one_that_does_not(broker: Cluster) -> None:
    search = {"first_rate": 500, "trial_seconds": 0.4, "p99_seconds": 0.2, "resolution_ratio": 1.0}
    outcome = run(configuration(broker.bootstrap, seconds=60, search=search))
    assert_clean(outcome.verification)
    (found,) = outcome.events_named("maximum_sustainable_rate")
    tried = {trial["rate"]: trial["sustained"] for trial in outcome.events_named("rate_tried")}
    assert tried[found["sustained"]] is True
    assert tried[found["not_sustained"]] is False
    assert found["not_sustained"] / found["sustained"] <= 2.0
