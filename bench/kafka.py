"""The Kafka load against Kafka's own performance tools: CPU, in turn, on one broker with the same topic settings.

CPU-seconds are of the client's whole process, user and system, for a million records of 1 KiB.
"""

import json
import math
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from testkit import kafka_load as load
from testkit.checkout import ROOT, STATE
from testkit.kafka_broker import Cluster, java, start_cluster

ROUNDS = 3
PARTITIONS = 24
RECORD_BYTES = 1024
#: Batch sizes of all producers: the default of Kafka's tools, and a large one.
BATCH_BYTES = 16 * 1024
LARGE_BATCH_BYTES = 128 * 1024
RECORDS = 1_000_000
#: Window length: as near to that of a soak as a benchmark can come.
WINDOW_SECONDS = 5.0
SECONDS = 15.0
#: Seconds before the load in which topics are made.
AHEAD_SECONDS = 4.0
SAMPLE_SECONDS = 0.2
#: Length of the load at maximum rate on a broker that stores nothing: some 100 million records.
FLAT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time and memory of a client process; `records` are those that it produced or consumed."""

    cpu_seconds: float
    memory_bytes: list[int]
    records: int
    seconds: float

    @property
    def per_million(self) -> float:
        return self.cpu_seconds / self.records * 1e6

    def __str__(self) -> str:
        rate = self.records / self.seconds
        return f"{self.per_million:.2f} CPU-s a million, {rate:,.0f} records/s, {max(self.memory_bytes) / 1e6:.0f} MB"


def resident(pid: int, field: str) -> int:
    """`VmRSS` or `VmHWM` of a process in bytes; 0 when it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def measured(command: Sequence[str]) -> tuple[str, float, list[int], float]:
    """Run a command to its end; returns its output, its CPU-seconds, samples of its memory in bytes (the last one is
    the peak), and its duration in seconds."""
    begun = time.monotonic()
    memory, largest = [], 0
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.DEVNULL)
        # Not by rusage alone: its peak memory is that of the parent process when that was larger.
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            memory.append(resident(process.pid, "VmRSS"))
            largest = max(largest, resident(process.pid, "VmHWM"))
            time.sleep(SAMPLE_SECONDS)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"{command[0]} failed"
        printed.seek(0)
        text = printed.read().decode()
    return text, usage.ru_utime + usage.ru_stime, [*memory, largest], time.monotonic() - begun


def cliffwatch(bootstrap: str, seconds: float, **changes: object) -> tuple[Cost, load.Outcome]:
    """Run a load of this project; its cost counts the records produced, or those consumed if it produces none."""
    start = math.ceil((time.time() + AHEAD_SECONDS) / WINDOW_SECONDS) * WINDOW_SECONDS
    span = {"start": start, "stop": start + seconds, "window_seconds": WINDOW_SECONDS}
    document = load.configuration(bootstrap) | span | changes
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        text, cpu_seconds, memory, _ = measured([load.program(), "kafka", "--config", file.name])
    outcome = load.Outcome(0)
    for line in text.splitlines():
        load.take(outcome, json.loads(line))
    found = outcome.verification
    assert found["lost"] == found["corrupted"] == found["unacknowledged"] == 0, found
    records = outcome.total("operations")
    return Cost(cpu_seconds, memory, records, seconds), outcome


def produce(cluster: Cluster, topic: str, batch_bytes: int) -> Cost:
    producer = {"linger_seconds": 0.001, "batch_size_bytes": batch_bytes, "acks": "all"}
    topics = {"existing": [topic]}
    return cliffwatch(cluster.bootstrap, SECONDS, topics=topics, producer=producer, consumer=None)[0]


def produce_java(cluster: Cluster, topic: str, batch_bytes: int) -> Cost:
    properties = f"bootstrap.servers={cluster.bootstrap} acks=all linger.ms=1 batch.size={batch_bytes}"
    arguments = f"--topic {topic} --num-records {RECORDS} --record-size {RECORD_BYTES} --throughput -1"
    command = java(
        "org.apache.kafka.tools.ProducerPerformance", *arguments.split(), "--producer-props", *properties.split()
    )
    _, cpu_seconds, memory, seconds = measured(command)
    return Cost(cpu_seconds, memory, RECORDS, seconds)


def consume(cluster: Cluster, topic: str) -> Cost:
    """Cost of consuming a whole topic: the load lasts one window, and its drain then reads on to the topic's end."""
    consumer = {"from": "earliest"}
    topics = {"existing": [topic]}
    begun = time.monotonic()
    changes = {"topics": topics, "producer": None, "consumer": consumer, "drain_timeout_seconds": 300}
    cost, outcome = cliffwatch(cluster.bootstrap, WINDOW_SECONDS, **changes)
    assert outcome.verification["partitions_not_drained"] == 0
    return Cost(cost.cpu_seconds, cost.memory_bytes, cost.records, time.monotonic() - begun)


def consume_java(cluster: Cluster, topic: str, records: int) -> Cost:
    arguments = f"--bootstrap-server {cluster.bootstrap} --topic {topic} --num-records {records} --timeout 60000"
    command = java("org.apache.kafka.tools.ConsumerPerformance", *arguments.split())
    _, cpu_seconds, memory, seconds = measured(command)
    return Cost(cpu_seconds, memory, records, seconds)


def both_sides(cluster: Cluster) -> Cost:
    topics = {"prefix": "both", "partitions": 288}
    cost, _ = cliffwatch(cluster.bootstrap, SECONDS, topics=topics, producer={"rate": 20_000.0}, consumer={})
    return cost


def both_sides_at_once(cluster: Cluster) -> Cost:
    """Cost of producing and consuming at once, as fast as the broker allows."""
    topics = {"prefix": "all", "partitions": 288}
    return cliffwatch(cluster.bootstrap, SECONDS, topics=topics, producer={}, consumer={})[0]


def flat() -> Cost:
    """Cost of producing as fast as possible to 288 partitions of a broker that stores nothing."""
    command = ["cargo", "bench", "--quiet", "--locked", "--package", "cliffwatch-kafka", "--bench", "null_broker"]
    environment = os.environ | {"CARGO_TARGET_DIR": str(STATE / "target")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        bootstrap = broker.stdout.readline().strip()
        cost, _ = cliffwatch(bootstrap, FLAT_SECONDS, topics={"existing": ["null"]}, producer={}, consumer=None)
        broker.stdin.close()
    return cost


def growth(memory_bytes: Sequence[int]) -> float:
    """Growth of median memory in bytes from after the first fifth, when all buffers were used, to the last tenth."""
    settled = memory_bytes[len(memory_bytes) // 5 : -1]
    tenth = max(1, len(settled) // 10)
    return statistics.median(settled[-tenth:]) - statistics.median(settled[:tenth])


def latencies() -> list[Figure]:
    """Latency that the client itself adds, and errors of the delays that it reports, by the Rust benchmark."""
    done = subprocess.run(
        ["cargo", "bench", "--locked", "--package", "cliffwatch-kafka", "--bench", "added_latency"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"CARGO_TARGET_DIR": str(STATE / "target")},
    )
    found = []
    for line in done.stdout.splitlines():
        match line.split():
            case ["added", name, _, p99]:
                found.append(Figure(f"kafka: {name} added by the client at 100,000/s, p99", float(p99), "µs", 200))
            case ["reported", delay, share, _]:
                found.append(Figure(f"kafka: error of a delay of {delay} / allowed (1 %, 100 µs)", float(share), "", 1))
    assert len(found) == 5, done.stdout
    return found


def figures() -> list[Figure]:
    base = Path(tempfile.mkdtemp(prefix="cliffwatch-kafka-"))
    costs: dict[str, list[Cost]] = {}

    def note(name: str, cost: Cost) -> None:
        costs.setdefault(name, []).append(cost)
        print(f"# {name}: {cost}", flush=True)

    cluster = start_cluster(base, heap="1g")
    try:
        for number in range(ROUNDS):
            topic = f"bench-{number}"
            cluster.create_topic(topic, PARTITIONS)
            note("ProducerPerformance", produce_java(cluster, topic, BATCH_BYTES))
            note("produce", produce(cluster, topic, BATCH_BYTES))
            note("ProducerPerformance, large batches", produce_java(cluster, topic, LARGE_BATCH_BYTES))
            note("produce, large batches", produce(cluster, topic, LARGE_BATCH_BYTES))
            cluster.delete_topic(topic)
            # Only records of this project's load, so that every one of them is checked.
            cluster.create_topic(f"{topic}-read", PARTITIONS)
            made = produce(cluster, f"{topic}-read", LARGE_BATCH_BYTES).records
            note("consume", consume(cluster, f"{topic}-read"))
            note("ConsumerPerformance", consume_java(cluster, f"{topic}-read", made))
            cluster.delete_topic(f"{topic}-read")
            note("20,000/s, 288 partitions, both sides", both_sides(cluster))
        note("maximum rate, 288 partitions, both sides", both_sides_at_once(cluster))
    finally:
        cluster.stop()
        shutil.rmtree(base)
    flatness = flat()
    note("maximum rate, 288 partitions, nothing kept", flatness)
    reported = latencies()

    def median(name: str) -> float:
        return statistics.median(cost.per_million for cost in costs[name])

    memory = max(max(cost.memory_bytes) for name, found in costs.items() if "Performance" not in name for cost in found)
    produced, consumed = median("produce, large batches"), median("consume")
    times = median("ProducerPerformance, large batches") / produced
    consumed_times = median("ConsumerPerformance") / consumed
    both = median("20,000/s, 288 partitions, both sides")
    return [
        Figure("kafka: produce, maximum rate, batches of 128 KiB", produced, "CPU-s/M", 0.7),
        Figure("kafka: ProducerPerformance / ours, the same batches", times, "×", 20, at_least=True),
        Figure("kafka: produce, maximum rate, batches of 16 KiB", median("produce"), "CPU-s/M", 0.7),
        Figure(
            "kafka: ProducerPerformance / ours, batches of 16 KiB",
            median("ProducerPerformance") / median("produce"),
            "×",
            20,
            at_least=True,
        ),
        Figure("kafka: consume, maximum rate", consumed, "CPU-s/M", 0.6),
        Figure("kafka: ConsumerPerformance / ours", consumed_times, "×", 10, at_least=True),
        Figure("kafka: 20,000/s on 288 partitions, both sides", both, "CPU-s/M", 3),
        Figure("kafka: memory, the largest of all", memory / 1e6, "MB", 100),
        Figure(
            f"kafka: growth of memory over {flatness.records / 1e6:.0f} million records",
            growth(flatness.memory_bytes) / 1e6,
            "MB",
            1,
        ),
        *reported,
    ]
