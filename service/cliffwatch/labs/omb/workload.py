"""Import the keys of an OpenMessaging Benchmark workload file.

The default length of the warm-up is 1 minute upstream, and 30 minutes in the forks by Redpanda and by J. Vanlightly. A
file counts as a fork's when it has a key that only forks have.
"""

import math
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cliffwatch.base.regular_files import open_regular
from cliffwatch.base.units import format_share
from cliffwatch.engines.kafka.load import RECORD_MINIMUM_BYTES
from cliffwatch.labs.omb.files import UNKNOWN, Keys, Remarks, wrong
from cliffwatch.model.phase import Phase

UPSTREAM_WARM_UP_MINUTES, FORK_WARM_UP_MINUTES = 1, 30
#: Keys that only forks have.
_FORK_KEYS = (
    "sampleRateMillis",
    "existingTopicList",
    "existingProduceTopicList",
    "existingConsumeTopicList",
    "warmupProducerRate",
    "warmupProducerRateSeparationMinutes",
    "backlogProducerRate",
)
#: Keys of forks that override the load given by the other keys, each with what to write instead.
_OTHER_LOADS = {
    "producerRateList": (
        "the benchmark's rate follows the hours of the day by it, and producerRate counts for nothing; write its rates "
        "into `producer.steps` of a workload, each with the time after the load's start, and take it out"
    ),
    "partitionsPerTopicList": "topics of several sizes; make a workload of each, with partitionsPerTopic",
    "producersPerTopicList": "topics of several numbers of producers; make a workload of each, with producersPerTopic",
    "consumerPerSubscriptionList": "groups of several sizes; make a workload of each, with consumerPerSubscription",
}
_KEYS = {"NO_KEY": "none", "KEY_ROUND_ROBIN": "round_robin", "RANDOM_NANO": "random"}
#: Number of record keys that the benchmark chooses from.
_KEY_COUNT = 10_000
_GIB = 1024**3
_RANGE = re.compile(r"\s*(\d+)\s*-\s*(\d+)\s*")
#: Search that replaces the benchmark's "find the maximum rate", which has no limit of its own.
_SEARCH = {"first_rate": 10_000.0, "trial": "60s", "p99": "1s"}
#: Bytes of a payload file that are read to see how well it compresses.
_PAYLOAD_LIMIT_BYTES = 16 * 1024**2
_FOREVER_MINUTES = 90 * 24 * 60


@dataclass(slots=True)
class ImportedLoad:
    """Imported workload file: name, phases, window and the engine's load, without brokers."""

    name: str
    description: str
    phases: dict[str, str]
    window: str
    topics: dict[str, Any] = field(default_factory=dict)
    producer: dict[str, Any] | None = None
    consumer: dict[str, Any] | None = None
    search: dict[str, Any] | None = None


def import_workload(content: dict[str, Any], path: Path, remarks: Remarks) -> ImportedLoad:
    """Import a workload file. `path` is the file's path; a payload file is looked for in its directory and in the one
    above. Raises Problem(bad_request) that names the key."""
    keys = Keys(content, "workload")
    warm_up_minutes = _warm_up(keys, remarks)
    load = ImportedLoad(
        name=_name(str(keys.take("name", path.stem)), remarks),
        description=f"Taken over from the OpenMessaging Benchmark workload {keys.take('name', path.stem)}.",
        phases={Phase.WARM_UP.value: _minutes(warm_up_minutes), Phase.SOAK.value: _minutes(_duration(keys, remarks))},
        window=f"{keys.whole('sampleRateMillis', keys.whole('logIntervalMillis', 10_000, 100), 100)}ms",
    )
    _refuse_other_loads(keys)
    topics = _topics(keys, load, remarks)
    _producer(keys, load, topics, warm_up_minutes, path, remarks)
    _consumer(keys, load, topics, warm_up_minutes, remarks)
    if keys.flag("randomTopicNames"):
        remarks.note("randomTopicNames", "topics are named after the run")
    for key in keys.rest():
        remarks.warn(key, UNKNOWN)
    return load


def _refuse_other_loads(keys: Keys) -> None:
    """Refuse forks' keys that override the load given by other keys. Raises Problem(bad_request) that names the key."""
    for key, words in _OTHER_LOADS.items():
        if key in keys:
            raise wrong(f"workload.{key}", words)


def _warm_up(keys: Keys, remarks: Remarks) -> float:
    fork = [key for key in _FORK_KEYS if key in keys]
    default = FORK_WARM_UP_MINUTES if fork else UPSTREAM_WARM_UP_MINUTES
    if "warmupDurationMinutes" not in keys:
        reason = f"{fork[0]} is a key of the forks" if fork else "no key of the forks is there"
        remarks.note("warmupDurationMinutes", f"not given; {default} minutes, since {reason}")
    return keys.number("warmupDurationMinutes", default)


def _duration(keys: Keys, remarks: Remarks) -> float:
    minutes = keys.number("testDurationMinutes", 0)
    if minutes == 0:
        remarks.warn("testDurationMinutes", "0 is without an end; the run ends after 90 days, or when it is stopped")
        return _FOREVER_MINUTES
    return minutes


def _name(text: str, remarks: Remarks) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:63] or "imported"
    if name != text:
        remarks.note("name", f"{text!r} becomes {name!r}: names of workloads are also names of directories")
    return name


def _minutes(minutes: float) -> str:
    return f"{minutes:g}m" if float(minutes).is_integer() else f"{round(minutes * 60)}s"


def _topics(keys: Keys, load: ImportedLoad, remarks: Remarks) -> int:
    """Set the load's topics; returns their number."""
    existing = keys.names("existingTopicList")
    produced = keys.names("existingProduceTopicList")
    consumed = keys.names("existingConsumeTopicList")
    made, partitions = keys.whole("topics", 1, 0), keys.whole("partitionsPerTopic", 1, 0)
    named = existing or produced or consumed
    if not named:
        load.topics = {"count": max(1, made), "partitions": max(1, partitions)}
        return max(1, made)
    if produced and consumed and sorted(produced) != sorted(consumed):
        remarks.warn(
            "existingConsumeTopicList", "other topics than are produced to; all of them are produced to and read"
        )
    names = sorted({*existing, *produced, *consumed})
    load.topics = {"existing": names}
    return len(names)


def _producer(
    keys: Keys, load: ImportedLoad, topics: int, warm_up_minutes: float, path: Path, remarks: Remarks
) -> None:
    count = keys.whole("producersPerTopic", 1) * topics
    rate = keys.number("producerRate", 0)
    producer: dict[str, Any] = {"producers": min(256, max(1, count)), "key": _key(keys, remarks)}
    if count > 256:
        remarks.warn("producersPerTopic", f"{count} producers in all; at most 256 have a connection of their own")
    producer |= _sizes(keys, remarks)
    producer["random_ratio"] = _random_ratio(keys, path, remarks)
    warm_up_rate = keys.number("warmupProducerRate", -1, -1)
    if rate == 0:
        remarks.note("producerRate", "0 looks for the highest rate that is sustained with p99 up to 1 s; set `search`")
        load.search = dict(_SEARCH)
        if warm_up_rate > 0:
            remarks.warn("warmupProducerRate", "not honoured: the search for a rate begins with the warm-up")
    elif warm_up_rate > 0 and warm_up_minutes > 0:
        producer |= {"rate": warm_up_rate, "steps": [{"after": _minutes(warm_up_minutes), "rate": rate}]}
    else:
        producer["rate"] = rate
        if warm_up_rate > 0:
            remarks.note("warmupProducerRate", "of no effect: there is no warm-up")
    for key in ("warmupProducerRateSeparationMinutes", "backlogProducerRate"):
        if keys.number(key, -1, -1) > 0:
            remarks.warn(key, "not honoured; write the rates into `producer.steps`")
    if count == 0 and "existing" not in load.topics:
        words = "0: nothing would be written to topics that are new, so that there is nothing to read; say how many"
        raise wrong("workload.producersPerTopic", words)
    load.producer = producer if count > 0 else None


def _key(keys: Keys, remarks: Remarks) -> dict[str, Any]:
    text = str(keys.take("keyDistributor", "NO_KEY"))
    if text not in _KEYS:
        remarks.warn("keyDistributor", f"{text!r} is none of {', '.join(_KEYS)}; taken for NO_KEY, as upstream does")
    distribution = _KEYS.get(text, "none")
    return {"distribution": distribution} | ({} if distribution == "none" else {"count": _KEY_COUNT})


def _sizes(keys: Keys, remarks: Remarks) -> dict[str, Any]:
    size = keys.whole("messageSize", 1024)
    distribution = keys.take("messageSizeDistribution")
    if distribution is None:
        return {"record_size": f"{_at_least_minimum(size, 'messageSize', remarks)}B"}
    if not isinstance(distribution, dict) or not distribution:
        raise wrong("workload.messageSizeDistribution", "write a mapping of ranges to weights, such as 0-256: 10")
    sizes = []
    for text, weight in distribution.items():
        match = _RANGE.fullmatch(str(text))
        if match is None or isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            raise wrong("workload.messageSizeDistribution", f"{text!r}: write a range such as 0-256 with a weight")
        middle = math.ceil((int(match[1]) + int(match[2])) / 2)
        if float(weight) > 0:
            middle = _at_least_minimum(middle, "messageSizeDistribution", remarks)
            sizes.append({"size": f"{middle}B", "weight": float(weight)})
    remarks.note("messageSizeDistribution", "each range becomes the size in its middle")
    return {"record_sizes": sizes}


def _at_least_minimum(size: int, key: str, remarks: Remarks) -> int:
    if size < RECORD_MINIMUM_BYTES:
        words = f"{size} bytes become {RECORD_MINIMUM_BYTES}: so much proves that a record is whole and in order"
        remarks.warn(key, words)
    return max(size, RECORD_MINIMUM_BYTES)


def _random_ratio(keys: Keys, path: Path, remarks: Remarks) -> float:
    ratio, randomized = keys.number("randomBytesRatio", 0), keys.flag("useRandomizedPayloads")
    pool, payload = keys.take("randomizedPayloadPoolSize"), keys.take("payloadFile")
    if randomized:
        if pool:
            remarks.note("randomizedPayloadPoolSize", "not needed: payloads are not drawn from a pool")
        return min(1.0, ratio)
    if "randomBytesRatio" in keys:
        remarks.note("randomBytesRatio", "of no effect without useRandomizedPayloads, as in the benchmark")
    if not payload:
        return 1.0
    try:
        # The benchmark looks in the directory that it is started in, the parent of its workloads directory.
        content = next(
            filter(None, (_content(place / str(payload)) for place in (path.parent, path.parent.parent))), None
        )
        if content is None:
            words = (
                f"{payload} is neither beside the workload nor in the directory above; records are random instead, "
                "which do not compress, so that with compression the brokers write more than the benchmark's"
            )
            remarks.warn("payloadFile", words)
            return 1.0
    except ValueError as error:
        raise wrong("workload.payloadFile", f"{str(payload)[:80]!r} is no path ({error}); correct it") from error
    compressed = min(1.0, len(zlib.compress(content)) / max(1, len(content)))
    remarks.note("payloadFile", f"payloads are made that compress like it: {format_share(round(compressed, 2))} random")
    return round(compressed, 2)


def _content(payload: Path) -> bytes | None:
    try:
        with open(payload, "rb", opener=open_regular) as file:
            return file.read(_PAYLOAD_LIMIT_BYTES)
    except OSError:
        return None


def _consumer(keys: Keys, load: ImportedLoad, topics: int, warm_up_minutes: float, remarks: Remarks) -> None:
    subscriptions = keys.whole("subscriptionsPerTopic", 1)
    count = keys.whole("consumerPerSubscription", 1) * topics * min(1, subscriptions)
    if subscriptions > 1:
        remarks.warn(
            "subscriptionsPerTopic", f"{subscriptions}; every record is read once and not {subscriptions} times"
        )
    backlog, drain = keys.number("consumerBacklogSizeGB", 0), keys.number("backlogDrainRatio", 1)
    if count == 0:
        load.search = None
        if backlog > 0:
            remarks.warn("consumerBacklogSizeGB", "not honoured: there is no consumer that could fall behind")
        return
    consumer: dict[str, Any] = {"consumers": min(256, count)}
    if backlog > 0:
        consumer["pauses"] = [{"after": _minutes(warm_up_minutes), "backlog": f"{round(backlog * _GIB)}B"}]
        if drain != 1:
            remarks.note("backlogDrainRatio", "a backlog is drained whole, and how it shrinks is in every window")
    load.consumer = consumer
