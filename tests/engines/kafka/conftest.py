"""Brokers for the tests of the Kafka engine."""

from collections.abc import Iterator

import pytest
from testkit.kafka_broker import HOST, Cluster, start_cluster
from testkit.ports import free_ports
from tests.engines.kafka.proxy import Proxy

PROTOCOLS = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT"


@pytest.fixture(scope="package")
def proxied_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Proxy]]:
    """One node, and a proxy before a second listener of it, shared by all tests that leave them as they were."""
    behind, controller = free_ports(2)
    proxy = Proxy(behind)
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:{{port}},PROXIED://{HOST}:{behind},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{{port}},PROXIED://{HOST}:{proxy.port}",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listener.security.protocol.map": PROTOCOLS,
    }
    cluster = start_cluster(tmp_path_factory.mktemp("broker"), settings=settings)
    yield cluster, proxy
    proxy.close()
    cluster.stop()


@pytest.fixture
def broker(proxied_broker: tuple[Cluster, Proxy]) -> Cluster:
    """One node, without the proxy."""
    return proxied_broker[0]


@pytest.fixture
def proxy(proxied_broker: tuple[Cluster, Proxy]) -> Iterator[Proxy]:
    """A proxy before that node, which only passes on until the test says otherwise."""
    proxied_broker[1].behave()
    yield proxied_broker[1]
    proxied_broker[1].behave()


@pytest.fixture(scope="package")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes, for tests that kill one of them and start it again."""
    # A broker is given up sooner than after the usual nine seconds.
    settings = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    three = start_cluster(tmp_path_factory.mktemp("cluster"), nodes=3, heap="320m", settings=settings)
    yield three
    three.stop()
