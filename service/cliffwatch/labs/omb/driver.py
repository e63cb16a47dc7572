"""Import the keys of an OpenMessaging Benchmark driver file: brokers, topics, settings of Kafka's own clients."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cliffwatch.labs.omb.files import UNKNOWN, Keys, Remarks, properties_of, wrong
from cliffwatch.labs.omb.security import import_security

#: Settings without an equivalent here, each with the reason: serialisers, client names and pacing of Kafka's client.
_HARMLESS = {
    "key.serializer": "records carry bytes",
    "value.serializer": "records carry bytes",
    "key.deserializer": "records carry bytes",
    "value.deserializer": "records carry bytes",
    "enable.auto.commit": "offsets are only committed by a consumer group",
    "auto.commit.interval.ms": "offsets are only committed by a consumer group",
    "max.poll.records": "records are walked where they were received",
    "max.poll.interval.ms": "nothing keeps a consumer from polling",
    "max.block.ms": "the schedule never waits for the client; what cannot be sent in time is schedule debt",
    "retries": "tried again until the delivery timeout, as Kafka's own default",
    "send.buffer.bytes": "the kernel sizes its own buffers",
    "receive.buffer.bytes": "the kernel sizes its own buffers",
    "metadata.max.age.ms": "metadata are asked for again whenever a broker says that they are old",
    "default.api.timeout.ms": "each step has a timeout of its own",
    "partitioner.class": "keys are hashed as by Kafka's own client, records without one go batch by batch",
    "zone.id": "it only names the client",
}


@dataclass(slots=True)
class ImportedDriver:
    """Imported driver file: brokers, and settings of topics, producers, consumers and connections."""

    name: str
    bootstrap_servers: list[str]
    topics: dict[str, Any] = field(default_factory=dict)
    producer: dict[str, Any] = field(default_factory=dict)
    consumer: dict[str, Any] = field(default_factory=dict)
    security: dict[str, Any] = field(default_factory=dict)


def import_driver(content: dict[str, Any], remarks: Remarks) -> ImportedDriver:
    """Import a driver file. Raises Problem(bad_request) that names the key."""
    keys = Keys(content, "driver")
    kind = str(keys.take("driverClass", ""))
    if not kind.rpartition(".")[2].startswith(("Kafka", "Redpanda")):
        raise wrong("driver.driverClass", f"{kind!r} is not a driver for Kafka or Redpanda; give one of those")
    common = Keys(properties_of(keys.take("commonConfig", "")), "commonConfig")
    servers = [server.strip() for server in str(common.take("bootstrap.servers", "")).split(",") if server.strip()]
    if not servers:
        raise wrong("driver.commonConfig", "bootstrap.servers is missing; it says where the brokers are")
    driver = ImportedDriver(str(keys.take("name", "driver")), servers)
    if "replicationFactor" in keys:
        driver.topics["replication_factor"] = keys.whole("replicationFactor", 1, 1)
    driver.topics["settings"] = properties_of(keys.take("topicConfig", ""))
    if keys.flag("reset"):
        remarks.note("reset", "topics are made anew for each run and deleted at its end; others are never touched")
    client = str(common.take("client.id", ""))
    if "{" in client:
        remarks.note("commonConfig.client.id", f"{client!r} holds a placeholder; the client is named after the program")
    driver.security = import_security(common, remarks)
    producer = Keys(properties_of(keys.take("producerConfig", "")), "producerConfig")
    consumer = Keys(properties_of(keys.take("consumerConfig", "")), "consumerConfig")
    _apply(common, _COMMON, driver.producer, remarks)
    _apply(producer, _PRODUCER, driver.producer, remarks)
    _apply(consumer, _CONSUMER, driver.consumer, remarks)
    for part in (common, producer, consumer):
        for key in part.rest():
            _left(f"{part.where}.{key}", key, remarks)
    if keys.flag("enableTransactions"):
        remarks.warn("enableTransactions", "records are written without transactions, which cost the brokers less")
    for key in ("requestsPerTransaction", "offsetCommitLingerMs"):
        if key in keys:
            remarks.note(key, f"{keys.take(key)} is of transactions and of commits of the benchmark's, and left out")
    for key in keys.rest():
        remarks.warn(key, UNKNOWN)
    return driver


def _left(place: str, key: str, remarks: Remarks) -> None:
    if key in _HARMLESS:
        remarks.note(place, _HARMLESS[key])
    else:
        remarks.warn(place, "the client has no such setting, and does what it does without it")


def _milliseconds(text: str) -> str:
    return f"{int(text)}ms"


def _bytes(text: str) -> str:
    return f"{int(text)}B"


def _flag(text: str) -> bool:
    return text.strip().lower() == "true"


def _acks(text: str) -> str:
    return {"-1": "all"}.get(text.strip(), text.strip())


Setting = tuple[str, Callable[[str], Any]]
_COMMON: dict[str, Setting] = {
    "request.timeout.ms": ("request_timeout", _milliseconds),
    "retry.backoff.ms": ("retry_backoff", _milliseconds),
    "retry.backoff.max.ms": ("retry_backoff_max", _milliseconds),
}
_PRODUCER: dict[str, Setting] = _COMMON | {
    "acks": ("acks", _acks),
    "linger.ms": ("linger", _milliseconds),
    "batch.size": ("batch_size", _bytes),
    "max.request.size": ("request_size", _bytes),
    "buffer.memory": ("buffer", _bytes),
    "max.in.flight.requests.per.connection": ("max_in_flight", int),
    "compression.type": ("compression", str.strip),
    "enable.idempotence": ("idempotence", _flag),
    "delivery.timeout.ms": ("delivery_timeout", _milliseconds),
}
_CONSUMER: dict[str, Setting] = {
    "auto.offset.reset": ("from", str.strip),
    "fetch.min.bytes": ("fetch_min", _bytes),
    "fetch.max.wait.ms": ("fetch_max_wait", _milliseconds),
    "fetch.max.bytes": ("fetch_max", _bytes),
    "max.partition.fetch.bytes": ("partition_max", _bytes),
    "group.id": ("group", str.strip),
}


def _apply(keys: Keys, settings: dict[str, Setting], into: dict[str, Any], remarks: Remarks) -> None:
    for key, (name, convert) in settings.items():
        if key not in keys:
            continue
        text = str(keys.take(key))
        try:
            into[name] = convert(text)
        except ValueError as error:
            raise wrong(
                f"driver.{keys.where}.{key}", f"{text!r} is not what Kafka's client takes; correct it"
            ) from error
