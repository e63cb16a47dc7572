"""What cannot work is refused with one sentence that names the setting or the broker's own error."""

from typing import Any

import pytest
from testkit.kafka_broker import HOST, Cluster
from testkit.kafka_load import configuration, run
from testkit.ports import free_ports


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"topics": {"existing": ["nowhere"], "prefix": None}}, 1, ["nowhere", "UNKNOWN_TOPIC_OR_PARTITION"]),
        ({"topics": {"replication_factor": 3}}, 1, ["creating topic", "INVALID_REPLICATION_FACTOR"]),
        ({"topics": {"settings": {"retention.ms": "soon"}}}, 1, ["creating topic", "INVALID_CONFIG"]),
        ({"topics": {"settings": {"min.insync.replicas": "2"}}}, 2, ["min.insync.replicas=2", "NOT_ENOUGH_REPLICAS"]),
        (
            {
                "topics": {"settings": {"max.message.bytes": "2000"}},
                "producer": {"record_sizes": [{"size_bytes": 2000}]},
            },
            2,
            ["producer.record_sizes", "max.message.bytes=2000", "MESSAGE_TOO_LARGE"],
        ),
        (
            {"topics": {"settings": {"max.message.bytes": "9000"}}},
            2,
            ["producer.batch_size_bytes", "MESSAGE_TOO_LARGE"],
        ),
        ({"producer": {"rate": -1}}, 2, ["producer.rate", "more than 0"]),
        ({"producer": {"record_sizes": [{"size_bytes": 31}]}}, 2, ["producer.record_sizes", "at least 32 bytes"]),
        ({"producer": {"idempotence": True, "acks": "1"}}, 2, ["producer.idempotence", "acks"]),
        ({"producer": {"speed": 11}}, 2, ["unknown field `speed`"]),
        ({"bootstrap_servers": ["somewhere"]}, 2, ["bootstrap_servers", "somewhere is not host:port"]),
        ({"security": {"tls": {"ca_file": "/nowhere.pem"}}}, 2, ["security.tls.ca_file", "/nowhere.pem"]),
    ],
)
def test_a_kafka_load_that_cannot_work_is_refused_with_the_setting_or_broker_error(
    broker: Cluster, changes: dict[str, Any], status: int, words: list[str]
) -> None:
    document = configuration(broker.bootstrap, **changes)
    outcome = run(document)
    try:
        assert (outcome.status, outcome.end["status"], outcome.windows) == (status, "failed", [])
        for word in words:
            assert word in outcome.end["message"]
    finally:
        for topic in broker.topics():
            broker.delete_topic(topic)


def test_brokers_that_do_not_answer_are_named() -> None:
    (port,) = free_ports(1)
    outcome = run(configuration(f"{HOST}:{port}"))
    assert (outcome.status, outcome.end["status"]) == (1, "failed")
    assert f"connecting to {HOST}:{port}" in outcome.end["message"]


def test_a_topic_that_is_there_with_other_settings_is_not_used(broker: Cluster) -> None:
    broker.create_topic("other-00000", 4, retention_ms="1000")
    try:
        fewer = run(configuration(broker.bootstrap, topics={"prefix": "other", "partitions": 3}))
        assert "topic other-00000 is there already and has 4 partitions" in fewer.end["message"]
        settings = {"retention.ms": "2000"}
        longer = run(configuration(broker.bootstrap, topics={"prefix": "other", "partitions": 4, "settings": settings}))
        assert "topic other-00000 is there already and has retention.ms=1000" in longer.end["message"]
        assert broker.topics() == {"other-00000"}
    finally:
        broker.delete_topic("other-00000")


def test_preparing_makes_topics_and_is_content_with_its_own(broker: Cluster) -> None:
    document = configuration(broker.bootstrap, topics={"prefix": "prepared", "count": 2})
    try:
        for _ in range(2):
            outcome = run(document, "--prepare")
            assert (outcome.status, outcome.end["status"], outcome.windows) == (0, "completed", [])
            assert broker.topics() == {"prepared-00000", "prepared-00001"}
    finally:
        for topic in broker.topics():
            broker.delete_topic(topic)
