"""Three brokers, one of which is killed and comes back."""

from collections.abc import Iterator

import pytest
from tests.engines.kafka.broker import Cluster, start_cluster
from tests.engines.kafka.load import Outcome, configuration, finish, read_until, started


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    # A broker is given up sooner than after the usual nine seconds.
    settings = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    three = start_cluster(tmp_path_factory.mktemp("cluster"), nodes=3, heap="320m", settings=settings)
    yield three
    three.stop()


@pytest.mark.parametrize("key", ["none", "random"])
def test_a_broker_killed_and_restarted_under_load_loses_no_acknowledged_record(cluster: Cluster, key: str) -> None:
    document = configuration(
        cluster.bootstrap,
        seconds=24,
        window=1.0,
        topics={"partitions": 12, "replication_factor": 3},
        producer={"key": {"distribution": key}},
    )
    outcome = Outcome(0)
    with started(document) as process:
        read_until(process, outcome, 3)
        cluster.nodes[0].kill()
        read_until(process, outcome, 10)
        cluster.nodes[0].start()
        cluster.nodes[0].wait_ready()
        rest = finish(process)
    rest.windows, rest.events = outcome.windows + rest.windows, outcome.events + rest.events
    found = rest.verification
    faults = ("lost", "duplicated", "reordered", "corrupted", "unacknowledged", "unsent", "partitions_not_drained")
    assert {name: found[name] for name in faults} == dict.fromkeys(faults, 0)
    assert found["made"] == found["acknowledged"] == found["read"] == found["in_log"] == 24_000
    # What was on its way to the broker when it died waited for another to take over, and says so.
    assert rest.latency("publish").count == 24_000
    assert rest.seconds("publish", 1.0) > 1.0
    assert rest.total("disconnects") > 0
    assert rest.total("leader_changes") > 0
    assert {"disconnected", "leader_changed"} <= {event["name"] for event in rest.events}
