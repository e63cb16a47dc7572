"""Brokers for the tests of the Kafka engine."""

from collections.abc import Iterator

import pytest
from tests.engines.kafka.broker import Cluster, start_cluster


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One node, shared by all tests that leave it as it was."""
    cluster = start_cluster(tmp_path_factory.mktemp("broker"))
    yield cluster
    cluster.stop()
