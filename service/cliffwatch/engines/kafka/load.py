"""The `load` of a kafka workload, and the document that the load generator reads.

Fields that are not given are left out of the document, so that each default is defined only in the load generator. The
brokers come from the target, never from the workload.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from cliffwatch.base.units import Duration, Size
from cliffwatch.model.document import Strict
from cliffwatch.model.target import AbsolutePath

#: Bytes of a record's value for the producer, sequence, time and checksum that verify it.
RECORD_MINIMUM_BYTES = 32
#: Batches of a producer and partition that a broker remembers with idempotence.
IDEMPOTENT_IN_FLIGHT = 5

Rate = Annotated[float, Field(gt=0, le=1e9)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class Topics(Strict):
    """Either `existing` topics, which are kept as they are, or new ones (`<prefix>-00000`), which are removed."""

    existing: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")], ...] = ()
    prefix: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = None
    count: Count = 1
    partitions: Count = 1
    replication_factor: Annotated[int | None, Field(ge=1, le=100)] = None
    settings: dict[str, str] = Field(default_factory=dict)
    delete_at_end: bool = True

    @model_validator(mode="after")
    def _either_existing_or_made(self) -> Self:
        made = self.model_fields_set - {"existing"}
        if self.existing and made:
            raise ValueError(f"`existing` topics are left as they are; leave out {', '.join(sorted(made))}")
        return self


class KafkaRateStep(Strict):
    """Change of the rate `after` the load's start, in records a second of all producers together."""

    after: Annotated[Duration, Field(gt=0)]
    rate: Rate


class KafkaRecordSize(Strict):
    """A size of a record's value, and how often it comes relative to the others."""

    size: Annotated[Size, Field(ge=RECORD_MINIMUM_BYTES, le=64 * 1024 * 1024)]
    weight: Annotated[float, Field(gt=0)] = 1.0


class Key(Strict):
    """How a record's key, and with it its partition, is chosen."""

    distribution: Literal["none", "round_robin", "random", "zipf"] = "none"
    count: Annotated[int | None, Field(ge=1, le=10_000_000)] = None
    exponent: Annotated[float | None, Field(gt=0, le=10)] = None


class Producer(Strict):
    """Producers: they send `rate` records a second in all; without `rate`, as many as the brokers take."""

    producers: Annotated[int, Field(ge=1, le=256)] = 1
    rate: Rate | None = None
    steps: tuple[KafkaRateStep, ...] = ()
    catch_up_ratio: Annotated[float | None, Field(ge=1)] = None
    record_size: Annotated[Size | None, Field(ge=RECORD_MINIMUM_BYTES, le=64 * 1024 * 1024)] = None
    record_sizes: tuple[KafkaRecordSize, ...] = ()
    random_ratio: Annotated[float | None, Field(ge=0, le=1)] = None
    key: Key = Key()
    acks: Literal["0", "1", "all"] | None = None
    idempotence: bool | None = None
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = None
    linger: Annotated[Duration | None, Field(ge=0, le=60)] = None
    batch_size: Annotated[Size | None, Field(ge=1)] = None
    request_size: Annotated[Size | None, Field(ge=1)] = None
    max_in_flight: Annotated[int | None, Field(ge=1, le=1000)] = None
    buffer: Annotated[Size | None, Field(ge=1)] = None
    request_timeout: Annotated[Duration | None, Field(gt=0)] = None
    delivery_timeout: Annotated[Duration | None, Field(gt=0)] = None
    retry_backoff: Annotated[Duration | None, Field(gt=0)] = None
    retry_backoff_max: Annotated[Duration | None, Field(gt=0)] = None

    @field_validator("acks", mode="before")
    @classmethod
    def _acks_as_text(cls, value: object) -> object:
        # YAML reads 0 and 1 as numbers, and Kafka's own files write -1 for all.
        return {"0": "0", "1": "1", "-1": "all"}.get(str(value), value)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.record_size is not None and self.record_sizes:
            raise ValueError("give `record_size` or `record_sizes`, not both")
        if self.steps and self.rate is None:
            raise ValueError("`steps` change a rate; give `rate` to begin with")
        if [step.after for step in self.steps] != sorted({step.after for step in self.steps}):
            raise ValueError("`steps`: each must come after the one before it")
        in_flight = self.max_in_flight or IDEMPOTENT_IN_FLIGHT
        if self.idempotence and (self.acks not in (None, "all") or in_flight > IDEMPOTENT_IN_FLIGHT):
            raise ValueError(f"`idempotence` needs acks: all and at most {IDEMPOTENT_IN_FLIGHT} for max_in_flight")
        return self


class Pause(Strict):
    """Consumers stop reading `after` the load's start, `for` a time or until `backlog` waits, whichever is first."""

    after: Annotated[Duration, Field(ge=0)]
    duration: Annotated[Duration | None, Field(gt=0)] = Field(default=None, alias="for")
    backlog: Annotated[Size | None, Field(ge=1)] = None

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.duration is None and self.backlog is None:
            raise ValueError("give `for`, `backlog` or both, or the pause would never end")
        return self


class Consumer(Strict):
    """Consumers: they read every partition once, or as members of `group`."""

    consumers: Annotated[int, Field(ge=1, le=256)] = 1
    group: Annotated[str | None, Field(min_length=1, max_length=249)] = None
    from_: Annotated[Literal["earliest", "latest"] | None, Field(alias="from")] = None
    fetch_min: Annotated[Size | None, Field(ge=1)] = None
    fetch_max_wait: Annotated[Duration | None, Field(ge=0)] = None
    fetch_max: Annotated[Size | None, Field(ge=1)] = None
    partition_max: Annotated[Size | None, Field(ge=1)] = None
    pauses: tuple[Pause, ...] = ()
    clock_offset_seconds: Annotated[float | None, Field(ge=-1e9, le=1e9, allow_inf_nan=False)] = None


class Search(Strict):
    """Look for the highest rate that can be sustained: doubling from `first_rate`, then bisection."""

    first_rate: Rate
    trial: Annotated[Duration, Field(ge=5)]
    p99: Annotated[Duration, Field(gt=0)]
    behind: Annotated[Duration | None, Field(gt=0)] = None
    resolution_ratio: Annotated[float | None, Field(gt=0, lt=1)] = None


class Tls(Strict):
    """Files for TLS, in PEM format, on the service's machine."""

    ca_file: AbsolutePath
    certificate_file: AbsolutePath | None = None
    key_file: AbsolutePath | None = None
    server_name: str | None = None


class Sasl(Strict):
    """SASL credentials. The password is read from a file on the service's machine; no journal has it."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    username: Annotated[str, Field(min_length=1)]
    password_file: AbsolutePath


class Security(Strict):
    """Security of connections: TLS, SASL or both; plain TCP without either."""

    tls: Tls | None = None
    sasl: Sasl | None = None


class KafkaLoad(Strict):
    """Produce, consume, or both."""

    topics: Topics = Topics()
    producer: Producer | None = None
    consumer: Consumer | None = None
    search: Search | None = None
    security: Security = Security()
    client_id: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = None
    drain_timeout: Annotated[Duration | None, Field(ge=0)] = None

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.producer is None and self.consumer is None:
            raise ValueError("give a `producer`, a `consumer` or both; `producer: {}` is one with every default")
        if self.search is not None and (self.producer is None or self.consumer is None):
            raise ValueError("`search` needs a `producer` and a `consumer`: a rate without a consumer is not sustained")
        return self


def configuration(
    load: KafkaLoad,
    run_id: str,
    servers: tuple[str, ...],
    window_seconds: float,
    start: float,
    stop: float,
    begun: float | None = None,
) -> dict[str, Any]:
    """The load generator's document, in seconds, bytes and records a second; fields that were not given are absent.

    `begun`: when the run's load began, if this engine continues it.
    """
    topics = _given(load.topics.model_dump(mode="python"))
    if load.topics.existing:
        topics = {"existing": list(load.topics.existing)}
    else:
        topics |= {"prefix": load.topics.prefix or f"cliffwatch-{run_id}", "existing": []}
    return _given(
        {
            "run_id": run_id,
            "start": start,
            "stop": stop,
            "begun": begun,
            "window_seconds": window_seconds,
            "bootstrap_servers": list(servers),
            "client_id": load.client_id,
            "security": _given(
                {
                    "tls": _given(load.security.tls.model_dump()) if load.security.tls else None,
                    "sasl": load.security.sasl.model_dump() if load.security.sasl else None,
                }
            ),
            "topics": topics,
            "producer": _producer(load.producer) if load.producer else None,
            "consumer": _consumer(load.consumer) if load.consumer else None,
            "search": _search(load.search) if load.search else None,
            "drain_timeout_seconds": load.drain_timeout,
        }
    )


def _producer(producer: Producer) -> dict[str, Any]:
    sizes = [(size.size, size.weight) for size in producer.record_sizes]
    if producer.record_size is not None:
        sizes = [(producer.record_size, 1.0)]
    return _given(
        {
            "producers": producer.producers,
            "rate": producer.rate,
            "steps": [{"after_seconds": step.after, "rate": step.rate} for step in producer.steps],
            "catch_up_ratio": producer.catch_up_ratio,
            "record_sizes": [{"size_bytes": size, "weight": weight} for size, weight in sizes] or None,
            "random_ratio": producer.random_ratio,
            "key": _given(producer.key.model_dump()),
            "acks": producer.acks,
            "idempotence": producer.idempotence,
            "compression": producer.compression,
            "linger_seconds": producer.linger,
            "batch_size_bytes": producer.batch_size,
            "request_size_bytes": producer.request_size,
            "max_in_flight": producer.max_in_flight,
            "buffer_bytes": producer.buffer,
            "request_timeout_seconds": producer.request_timeout,
            "delivery_timeout_seconds": producer.delivery_timeout,
            "retry_backoff_seconds": producer.retry_backoff,
            "retry_backoff_max_seconds": producer.retry_backoff_max,
        }
    )


def _consumer(consumer: Consumer) -> dict[str, Any]:
    return _given(
        {
            "consumers": consumer.consumers,
            "group": consumer.group,
            "from": consumer.from_,
            "fetch_min_bytes": consumer.fetch_min,
            "fetch_max_wait_seconds": consumer.fetch_max_wait,
            "fetch_max_bytes": consumer.fetch_max,
            "partition_max_bytes": consumer.partition_max,
            "pauses": [
                {"after_seconds": pause.after, "seconds": pause.duration, "until_bytes": pause.backlog}
                for pause in consumer.pauses
            ],
            "clock_offset_seconds": consumer.clock_offset_seconds,
        }
    )


def _search(search: Search) -> dict[str, Any]:
    return _given(
        {
            "first_rate": search.first_rate,
            "trial_seconds": search.trial,
            "p99_seconds": search.p99,
            "behind_seconds": search.behind,
            "resolution_ratio": search.resolution_ratio,
        }
    )


def _given(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value is not None}


def files_needed(load: KafkaLoad) -> list[Path]:
    """The files that the load generator reads for its connections."""
    tls, sasl = load.security.tls, load.security.sasl
    names = [tls.ca_file, tls.certificate_file, tls.key_file] if tls else []
    return [Path(name) for name in [*names, sasl.password_file if sasl else None] if name is not None]
