"""Prometheus metrics: those of Cliffwatch's emulated drive that real drives count, too, and the exporter's own cost."""

import resource
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cliffwatch_drive_exporter.poll import DriveStatus, Reading

PREFIX = "cliffwatch_drive_"
_LABELS = ("device", "serial")
_AGE = "Read at most every 10 s."

#: Name, help, whether it is a counter, and its value in a reading; None is left out.
_FIGURES: Sequence[tuple[str, str, bool, Callable[[Reading], float | None]]] = (
    ("host_written_bytes", "Bytes written by the host.", True, lambda it: it.health.host_written_bytes),
    (
        "media_written_bytes",
        "Bytes written to NAND.",
        True,
        lambda it: None if it.media is None else it.media.written_bytes,
    ),
    (
        "media_counter_available",
        "Whether the drive counts media bytes.",
        False,
        lambda it: None if it.media_available is None else float(it.media_available),
    ),
    (
        "free_blocks_ratio",
        "Share of blocks that are free.",
        False,
        lambda it: None if it.media is None else it.media.free_blocks_ratio,
    ),
    ("temperature_celsius", "Temperature of the drive.", False, lambda it: it.health.temperature_celsius),
    ("spare_ratio", "Spare blocks left.", False, lambda it: it.health.spare_ratio),
    ("percentage_used_ratio", "Rated endurance used; may exceed 1.", False, lambda it: it.health.percentage_used_ratio),
    ("media_errors", "Uncorrectable media errors.", True, lambda it: it.health.media_errors),
)


class DriveCollector(Collector):
    """Collector that returns the last polls' results at a scrape; it queries no drive, so that none can hang it."""

    def __init__(self, statuses: Callable[[], list[DriveStatus]]) -> None:
        self._standings = statuses

    def collect(self) -> Iterator[Metric]:
        statuses = self._standings()
        for name, text, is_counter, value_of in _FIGURES:
            family = _family(name, f"{text} {_AGE}", is_counter, _LABELS)
            for status in statuses:
                value = None if status.reading is None else value_of(status.reading)
                if value is not None:
                    family.add_metric(_values(status), value)
            yield family
        yield _of_limits(statuses)
        yield from _of_polling(statuses)
        yield from _of_cost(statuses)


def _of_limits(statuses: Sequence[DriveStatus]) -> Metric:
    text = f"Time in which more was asked of a cloud's volume than a limit allows. {_AGE}"
    exceeded = _family("limit_exceeded_seconds", text, True, (*_LABELS, "limit"))
    for status in statuses:
        limits = None if status.reading is None else status.reading.limits
        for limit, seconds in (limits or {}).items():
            exceeded.add_metric([*_values(status), limit], seconds)
    return exceeded


def _of_polling(statuses: Sequence[DriveStatus]) -> Iterator[Metric]:
    up = _family("up", "Whether the last poll of the drive succeeded.", False, _LABELS)
    polls = _family("polls", "Polls of the drive.", True, _LABELS)
    errors = _family("poll_errors", "Polls that failed, by reason.", True, (*_LABELS, "reason"))
    duration = _family("poll_duration_seconds", "Duration of the last poll.", False, _LABELS)
    read_at = _family("last_poll_timestamp_seconds", "Time of the last successful poll.", False, _LABELS)
    source = _family(
        "media_source_info",
        "Always 1; the log that media bytes are read from.",
        False,
        (*_LABELS, "source"),
    )
    for status in statuses:
        values = _values(status)
        up.add_metric(values, float(status.reading is not None))
        polls.add_metric(values, status.polls)
        for reason, count in status.errors.items():
            errors.add_metric([*values, reason.value], count)
        if status.duration_seconds is not None:
            duration.add_metric(values, status.duration_seconds)
        if status.read_at is not None:
            read_at.add_metric(values, status.read_at)
        if status.reading is not None and status.reading.media_source is not None:
            source.add_metric([*values, status.reading.media_source], 1.0)
    yield from (up, polls, errors, duration, read_at, source)


def _of_cost(statuses: Sequence[DriveStatus]) -> Iterator[Metric]:
    commands = _family("exporter_commands", "Processes of nvme-cli that were started.", True, ())
    commands.add_metric([], sum(status.commands for status in statuses))
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = _family("exporter_commands_cpu_seconds", "Processor time of those that ended.", True, ())
    seconds.add_metric([], spent.ru_utime + spent.ru_stime)
    yield from (commands, seconds)


def _family(name: str, text: str, is_counter: bool, labels: Sequence[str]) -> "CounterMetricFamily | GaugeMetricFamily":
    kind = CounterMetricFamily if is_counter else GaugeMetricFamily
    return kind(PREFIX + name, text, labels=labels)


def _values(status: DriveStatus) -> list[str]:
    return [status.controller.device, status.controller.serial]
