"""Export a run as OpenMessaging Benchmark's result file, so that chart scripts made for it still work.

Field names and units: `TestResult.java` of the benchmark, with the times and lengths that the forks add. Only the soak
is exported, as the benchmark leaves out its warm-up. As in the benchmark, `publishLatency` is from sending to
acknowledgement and `endToEndLatency` from the record's time to its reading. `publishDelayLatency`, from when a record
was due to when it was sent, has only a mean, since its percentiles cannot be computed.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.kafka.load import KafkaLoad
from cliffwatch.journal import JournalReader, JournalWindow, files
from cliffwatch.model.operation import Operation
from cliffwatch.model.order import RunOrder
from cliffwatch.model.phase import Phase

_QUANTILES = {"50pct": 0.5, "75pct": 0.75, "95pct": 0.95, "99pct": 0.99, "999pct": 0.999, "9999pct": 0.9999}
#: Steps of the quantiles in the aggregated maps: finer towards 100 %, as in HdrHistogram's percentile iterator.
_STEPS_TO_HALF_DISTANCE = 20
_HALVINGS = 16


def result_of(directory: Path) -> dict[str, Any]:
    """Result file of a run. Raises Problem: bad_request if the run's engine is not kafka or the soak has no window yet,
    journal_unreadable for an invalid order.json."""
    reader = JournalReader(directory)
    order, load = _order(reader)
    if order.workload.engine != "kafka":
        raise Problem(
            Code.BAD_REQUEST,
            f"the benchmark's result file is for runs on brokers; this run's engine is {order.workload.engine}",
        )
    windows = [window for window in reader.windows() if window.phase == Phase.SOAK and window.seconds > 0]
    if not windows:
        raise Problem(Code.BAD_REQUEST, f"run {order.run_id} has no window of its soak yet")
    return _identity(order, load, windows) | _rates(windows) | _latencies(reader, windows)


def _order(reader: JournalReader) -> tuple[RunOrder, dict[str, Any]]:
    """Read the run's order.json, and its `load` with defaults filled in for the engine kafka, unchanged for others."""
    try:
        order = RunOrder.model_validate(reader.document(files.ORDER))
        load = order.workload.load
        if order.workload.engine == "kafka":
            load = KafkaLoad.model_validate(load).model_dump(mode="json", exclude_none=True)
    except ValidationError as error:
        detail = f"{reader.directory / files.ORDER} does not hold an order"
        raise Problem(Code.JOURNAL_UNREADABLE, detail, faults_of(error)) from error
    return order, load


def _identity(order: RunOrder, load: dict[str, Any], windows: list[JournalWindow]) -> dict[str, Any]:
    producer, consumer, topics = load.get("producer"), load.get("consumer"), load.get("topics") or {}
    records = sum(window.counters.get("produced_records", 0) for window in windows)
    size = sum(window.counters.get("produced_bytes", 0) for window in windows) / records if records else 0
    count = len(topics.get("existing") or ()) or topics.get("count", 1)
    return {
        "workload": order.workload.name,
        "driver": "Kafka",
        "messageSize": round(size),
        "topics": count,
        "partitions": topics.get("partitions", 1),
        "producersPerTopic": max(1, producer.get("producers", 1) // count) if producer is not None else 0,
        "consumersPerTopic": max(1, consumer.get("consumers", 1) // count) if consumer is not None else 0,
        "beginTime": round(windows[0].start * 1000),
        "endTime": round(windows[-1].end * 1000),
        "sampleRateMillis": round(order.workload.window * 1000),
    }


def _rates(windows: list[JournalWindow]) -> dict[str, Any]:
    def rates(counter: str) -> list[float]:
        return [round(window.counters.get(counter, 0) / window.seconds, 3) for window in windows]

    return {
        "publishRate": rates("produced_records"),
        "publishErrorRate": rates("errors"),
        "consumeRate": rates("consumed_records"),
        "backlog": [round(window.gauges.get("backlog_records", 0)) for window in windows],
        "sampleTimes": [round(window.end * 1000) for window in windows],
    }


def _latencies(reader: JournalReader, windows: list[JournalWindow]) -> dict[str, Any]:
    """Latency fields for each window and merged over all windows, in milliseconds; delays in microseconds."""
    body: dict[str, list[Any]] = {}
    whole = {"publishLatency": Histogram(), "endToEndLatency": Histogram(), "due": Histogram()}
    for window in windows:
        measured = reader.histograms(window)
        sent = measured.get("publish_service", Histogram())
        due = measured.get(Operation.PUBLISH, Histogram())
        read = measured.get(Operation.END_TO_END, Histogram())
        for name, histogram in (("publishLatency", sent), ("endToEndLatency", read)):
            whole[name].merge(histogram)
            for field, value in _summary(name, histogram).items():
                body.setdefault(field, []).append(value)
        whole["due"].merge(due)
        body.setdefault("publishDelayLatencyAvg", []).append(_delay_microseconds(due, sent))
    aggregated: dict[str, Any] = {}
    for name in ("publishLatency", "endToEndLatency"):
        title = f"aggregated{name[0].upper()}{name[1:]}"
        aggregated |= _summary(title, whole[name])
        aggregated[f"{title}Quantiles"] = _quantiles(whole[name])
    aggregated["aggregatedPublishDelayLatencyAvg"] = _delay_microseconds(whole["due"], whole["publishLatency"])
    return body | aggregated


def _summary(name: str, histogram: Histogram) -> dict[str, float]:
    values = dict(zip(_QUANTILES, histogram.percentiles_seconds(_QUANTILES.values()), strict=True))
    mean = histogram.sum_seconds() / histogram.count if histogram.count else 0.0
    return (
        {f"{name}Avg": _milliseconds(mean)}
        | {f"{name}{field}": _milliseconds(value) for field, value in values.items()}
        | {f"{name}Max": _milliseconds(histogram.max_seconds)}
    )


def _quantiles(histogram: Histogram) -> dict[str, float]:
    percents = list(_percents())
    values = histogram.percentiles_seconds([percent / 100 for percent in percents])
    return {f"{percent:.10g}": _milliseconds(value) for percent, value in zip(percents, values, strict=True)}


def _percents() -> Iterable[float]:
    """Percentiles from 0 to 100, with equally many steps for each halving of the distance to 100."""
    start, distance = 0.0, 100.0
    for _ in range(_HALVINGS):
        for step in range(_STEPS_TO_HALF_DISTANCE):
            yield start + distance / 2 * step / _STEPS_TO_HALF_DISTANCE
        start, distance = start + distance / 2, distance / 2
    yield 100.0


def _delay_microseconds(due: Histogram, sent: Histogram) -> float:
    """Mean time from when a record was due to when it was sent: the difference of two mean latencies, at least 0."""
    if not due.count or not sent.count:
        return 0.0
    return round(max(0.0, due.sum_seconds() / due.count - sent.sum_seconds() / sent.count) * 1e6, 3)


def _milliseconds(seconds: float | None) -> float:
    return 0.0 if seconds is None else round(seconds * 1000, 6)
