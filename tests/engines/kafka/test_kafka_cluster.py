"""Three brokers, one of which is killed and comes back."""

import pytest
from testkit.kafka_broker import Cluster
from testkit.kafka_load import Outcome, configuration, finish, read_until, started


@pytest.mark.real(why="three brokers, and half a minute of load; test_kafka_faults.py has broken connections")
@pytest.mark.parametrize("key", ["none", "random"])
def test_a_broker_killed_and_restarted_under_load_loses_no_acknowledged_record(
    three_brokers: Cluster, key: str
) -> None:
    document = configuration(
        three_brokers.bootstrap,
        seconds=24,
        window=1.0,
        topics={"partitions": 12, "replication_factor": 3},
        producer={"key": {"distribution": key}},
    )
    outcome = Outcome(0)
    with started(document) as process:
        read_until(process, outcome, 3)
        three_brokers.nodes[0].kill()
        read_until(process, outcome, 10)
        three_brokers.nodes[0].start()
        three_brokers.nodes[0].wait_ready()
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
