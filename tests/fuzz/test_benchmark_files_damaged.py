"""Files of OpenMessaging Benchmark: taken over as they are, or refused with the key that is wrong."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st
from tests.fuzz.damage import restructured, spoiled
from tests.fuzz.explore import bounded, explore, holds
from tests.fuzz.journals import PLAN, bodies, journal, resealed

from cliffwatch.base.documents import readable_yaml
from cliffwatch.base.errors import Problem
from cliffwatch.journal import files
from cliffwatch.labs.omb.files import properties_of
from cliffwatch.labs.omb.importer import import_files
from cliffwatch.labs.omb.result import result_of
from cliffwatch.model.target import parse_target
from cliffwatch.model.workload import format_workload, parse_workload

WORKLOAD: dict[str, Any] = {
    "name": "1 topic",
    "topics": 1,
    "partitionsPerTopic": 10,
    "keyDistributor": "KEY_ROUND_ROBIN",
    "messageSize": 1024,
    "messageSizeDistribution": {"0-256": 10, "256-1024": 2.5},
    "useRandomizedPayloads": True,
    "randomBytesRatio": 0.5,
    "randomizedPayloadPoolSize": 100,
    "payloadFile": "payload.data",
    "subscriptionsPerTopic": 1,
    "consumerPerSubscription": 2,
    "producersPerTopic": 4,
    "producerRate": 50_000,
    "warmupProducerRate": 100,
    "consumerBacklogSizeGB": 1,
    "backlogDrainRatio": 1.0,
    "existingTopicList": ["a", "b"],
    "sampleRateMillis": 10_000,
    "testDurationMinutes": 15,
    "warmupDurationMinutes": 1,
}
DRIVER: dict[str, Any] = {
    "name": "Kafka",
    "driverClass": "io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver",
    "replicationFactor": 3,
    "reset": True,
    "topicConfig": "min.insync.replicas=2\n",
    "commonConfig": 'bootstrap.servers=localhost:9092\nsecurity.protocol=SASL_SSL\nsasl.jaas.config=x username="u"\n',
    "producerConfig": "acks=all\nlinger.ms=1\nbatch.size=1048576\nmax.in.flight.requests.per.connection=5\n",
    "consumerConfig": "auto.offset.reset=earliest\nfetch.max.bytes=1\n",
}


def taken_over(workload: bytes, driver: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="cliffwatch-fuzz-") as place, bounded():
        paths = Path(place) / "workload.yaml", Path(place) / "driver.yaml"
        for path, content in zip(paths, (workload, driver), strict=True):
            path.write_bytes(content)
        try:
            imported = import_files(*paths)
        except Problem as problem:
            assert problem.faults
            assert str(problem).encode("utf-8", "backslashreplace")
            return
        text = format_workload(imported.workload)
        assert parse_workload(text).model_dump() == imported.workload.model_dump()
        assert parse_target(str(imported.target)) == imported.target
        assert "\n".join((*imported.warnings, *imported.notes)).encode("utf-8", "backslashreplace")


def written(document: dict[str, Any]) -> st.SearchStrategy[bytes]:
    """JSON is YAML, and so is what people write."""
    changed = restructured(st.just(document)).map(lambda text: text.encode("utf-8", "surrogatepass"))
    return changed | spoiled(st.just(readable_yaml(document).encode()))


@holds(examples=80, workload=written(WORKLOAD))
def test_a_workload_file_is_taken_over_or_refused(workload: bytes) -> None:
    taken_over(workload, readable_yaml(DRIVER).encode())


@holds(examples=50, driver=written(DRIVER))
def test_a_driver_file_is_taken_over_or_refused(driver: bytes) -> None:
    taken_over(readable_yaml(WORKLOAD).encode(), driver)


@holds(examples=50, text=st.text(st.sampled_from("a=: \\u00\n\r\t#!4é"), max_size=40))
def test_properties_are_text(text: str) -> None:
    assert all(isinstance(word, str) for pair in properties_of(text).items() for word in pair)


ORDER = {
    "run_id": PLAN.run_id,
    "created_at": 1_790_002_792.0,
    "created_by": "tests",
    "target": {"kind": "broker", "bootstrap_servers": ["localhost:9092"]},
    "workload": {
        "version": 1,
        "name": "w",
        "engine": "kafka",
        "window": "10s",
        "phases": {"soak": "70s"},
        "load": {"topics": {"count": 2, "partitions": 3}, "producer": {"producers": 4}, "consumer": {"consumers": 2}},
    },
}


@holds(
    examples=60,
    order=st.just(json.dumps(ORDER).encode())
    | restructured(st.just(ORDER)).map(lambda text: text.encode("utf-8", "surrogatepass")),
    line=restructured(st.sampled_from(bodies(files.WINDOWS)[2:])),
)
def test_a_result_is_written_or_refused(order: bytes, line: str) -> None:
    with journal(order_json=order) as directory, bounded():
        with (directory / files.WINDOWS).open("ab") as windows:
            windows.write(resealed(line).encode("utf-8", "surrogatepass"))
        try:
            result = result_of(directory)
        except Problem as problem:
            assert problem.detail
            return
        json.dumps(result, allow_nan=False)
        assert len(result["publishRate"]) == len(result["publishLatency99pct"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("testDurationMinutes", ".inf"),
        ("topics", ".inf"),
        ("existingTopicList", "7"),
        ("existingTopicList", "text"),
        ("messageSizeDistribution", "{0-256: [1]}"),
        ("messageSizeDistribution", "{0-256: null}"),
        ("backlogDrainRatio", "many"),
        ("payloadFile", '"a\\0b"'),
        ("messageSize", "[" * 3000 + "]" * 3000),
    ],
)
def test_a_key_that_cannot_be_is_named(tmp_path: Path, key: str, value: str) -> None:
    content = yaml.safe_dump(
        {name: each for name, each in WORKLOAD.items() if name != key} | {"useRandomizedPayloads": False}
    )
    (tmp_path / "w.yaml").write_text(f"{content}{key}: {value}\n")
    (tmp_path / "d.yaml").write_text(readable_yaml(DRIVER))
    with pytest.raises(Problem) as caught:
        import_files(tmp_path / "w.yaml", tmp_path / "d.yaml")
    assert caught.value.faults[0].field in {f"workload.{key}", "workload"}


@pytest.mark.real(why="damage at random")
def test_benchmark_files_at_random() -> None:
    explore(
        test_a_workload_file_is_taken_over_or_refused,
        test_a_driver_file_is_taken_over_or_refused,
        test_properties_are_text,
        test_a_result_is_written_or_refused,
    )
