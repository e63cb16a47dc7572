"""A dry run asks the brokers: who does not answer and why, how many there are, and what they would refuse."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.kafka_broker import HOST, Cluster
from testkit.ports import free_ports
from tests.engines.kafka.checking import check

from cliffwatch.app.runs import RunPlan, RunService
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.engines.kafka.probe import probe_of
from cliffwatch.model.request import RunRequest
from cliffwatch.model.settings import read_settings
from cliffwatch.store.database import Database, open_database, upgrade


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RunService]:
    url = f"sqlite:///{tmp_path / 'database'}"
    upgrade(url)
    database: Database = open_database(url)
    service = RunService(read_settings(state_directory=tmp_path), database, SystemClock())
    service.sweep()
    yield service
    database.close()


def request(servers: str, **load: Any) -> RunRequest:
    document = {"version": 1, "name": "brokers", "engine": "kafka", "phases": {"soak": "1m"}}
    return RunRequest.model_validate(
        {
            "workload": document | {"load": {"producer": {}} | load},
            "target": {"kind": "broker", "bootstrap_servers": servers.split(",")},
        }
    )


def recorded(plan: RunPlan) -> dict[str, str]:
    return {objection.code: objection.message for objection in plan.objections}


def test_a_dry_run_with_nothing_listening_says_who_does_not_answer_and_a_start_is_refused(runs: RunService) -> None:
    ports = free_ports(2)
    order = request(",".join(f"{HOST}:{port}" for port in ports))
    messages = [objection.message for objection in runs.plan(order).objections]
    assert [message.split(" does not")[0] for message in messages] == [f"{HOST}:{port}" for port in ports]
    assert all("Connection refused" in message and "start the broker" in message for message in messages)
    with pytest.raises(Problem) as refused:
        runs.submit(order, "a test")
    assert refused.value.code is Code.TARGET_MISSING
    assert {fault.field for fault in refused.value.faults} == {"target.bootstrap_servers"}


def test_a_silent_listener_is_reported_as_an_unreachable_broker(runs: RunService) -> None:
    with socket.socket() as silent:
        silent.bind((HOST, 0))
        silent.listen()
        address = f"{HOST}:{silent.getsockname()[1]}"
        assert f"{address} does not answer" in recorded(runs.plan(request(address)))["brokers_unreachable"]


def test_a_dry_run_says_how_many_brokers_there_are_and_makes_nothing(runs: RunService, broker: Cluster) -> None:
    (port,) = free_ports(1)
    plan = runs.plan(request(f"{broker.bootstrap},{HOST}:{port}"))
    assert plan.objections == ()
    assert f"the cluster has 1 broker: {broker.bootstrap}" in plan.notes
    assert [note for note in plan.notes if "name those of the brokers' hosts by --drives" in note]
    assert any(note.startswith(f"{HOST}:{port} does not answer: Connection refused") for note in plan.notes)
    assert broker.topics() == set()


def test_settings_that_brokers_would_refuse_are_reported_by_the_plan(runs: RunService, broker: Cluster) -> None:
    replicas = recorded(runs.plan(request(broker.bootstrap, topics={"replication_factor": 3})))
    assert "INVALID_REPLICATION_FACTOR" in replicas["load_refused"]
    settings = recorded(runs.plan(request(broker.bootstrap, topics={"settings": {"retention.ms": "soon"}})))
    assert "INVALID_CONFIG" in settings["load_refused"]
    missing = recorded(runs.plan(request(broker.bootstrap, topics={"existing": ["nowhere"]})))
    assert "nowhere: the broker says UNKNOWN_TOPIC_OR_PARTITION" in missing["load_refused"]
    assert broker.topics() == set()


def test_topics_that_are_there_are_held_against_the_load(broker: Cluster) -> None:
    broker.create_topic("small", 2, max_message_bytes="9000")
    try:
        topics = {"existing": ["small"], "prefix": None}
        (fault,) = check(broker.bootstrap, topics=topics)["faults"]
        assert "producer.batch_size_bytes: topic small takes batches of max.message.bytes=9000" in fault
        assert check(broker.bootstrap, topics=topics, producer={"batch_size_bytes": 4096})["faults"] == []
    finally:
        broker.delete_topic("small")


def test_a_file_of_the_connections_that_is_not_there_is_named(runs: RunService, broker: Cluster) -> None:
    with pytest.raises(Problem, match=r"/nowhere\.pem cannot be read on this machine"):
        runs.plan(request(broker.bootstrap, security={"tls": {"ca_file": "/nowhere.pem"}}))


@pytest.mark.parametrize("place", ["token", "secrets/../token", "/etc/hostname"])
def test_no_file_but_a_secret_is_told_to_a_broker(runs: RunService, tmp_path: Path, place: str) -> None:
    sasl = {"mechanism": "PLAIN", "username": "soak", "password_file": str(tmp_path / place)}
    with socket.create_server((HOST, 0)) as stranger:
        with pytest.raises(Problem) as refused:
            runs.plan(request(f"{HOST}:{stranger.getsockname()[1]}", security={"sasl": sasl}))
        stranger.settimeout(0.2)
        with pytest.raises(TimeoutError):
            stranger.accept()
    assert refused.value.code is Code.BAD_REQUEST
    assert [fault.field for fault in refused.value.faults] == ["load.security.sasl.password_file"]
    assert str(tmp_path / "secrets") in refused.value.faults[0].message


def test_a_secret_is_read(runs: RunService, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "password").write_text("secret\n", encoding="utf-8")
    sasl = {"mechanism": "PLAIN", "username": "soak", "password_file": str(tmp_path / "secrets" / "password")}
    (port,) = free_ports(1)
    objections = runs.plan(request(f"{HOST}:{port}", security={"sasl": sasl})).objections
    assert ["Connection refused" in objection.message for objection in objections] == [True]


def test_a_broker_that_the_cluster_names_and_that_is_not_reached_is_an_objection() -> None:
    found = {
        "servers": [{"address": "a:1", "fault": None}],
        "brokers": [{"address": "a:1", "fault": None}, {"address": "b:1", "fault": "connecting to b:1: timed out"}],
        "faults": [],
    }
    probe = probe_of(found)
    assert probe.notes == ("the cluster has 2 brokers: a:1, b:1",)
    (hidden,) = probe.unreachable
    assert hidden.startswith("the cluster names b:1 as one of its brokers, which does not answer: timed out;")
