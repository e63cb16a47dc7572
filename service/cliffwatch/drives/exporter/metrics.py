"""What is exposed: the emulated drive's names, as far as a drive counts them, and what the exporter itself costs."""

import resource
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cliffwatch.drives.exporter.poll import Reading, Standing

PREFIX = "cliffwatch_drive_"
_LABELS = ("device", "serial")
_AGE = "Read at most every 10 s."

#: Name, help, whether it is a counter, and its value in a reading; None is left out.
_FIGURES: Sequence[tuple[str, str, bool, Callable[[Reading], float | None]]] = (
    ("host_written_bytes", "Bytes written by the host.", True, lambda it: it.health.host_written_bytes),
    (
        "media_written_bytes",
        "Bytes programmed on the flash.",
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
    ("percentage_used_ratio", "Rated life used; may exceed 1.", False, lambda it: it.health.percentage_used_ratio),
    ("media_errors", "Errors of the flash that could not be corrected.", True, lambda it: it.health.media_errors),
)


class DriveCollector(Collector):
    """Made anew at each scrape from what is known; asks no drive, so that none can hang a scrape."""

    def __init__(self, standings: Callable[[], list[Standing]]) -> None:
        self._standings = standings

    def collect(self) -> Iterator[Metric]:
        standings = self._standings()
        for name, text, is_counter, value_of in _FIGURES:
            family = _family(name, f"{text} {_AGE}", is_counter, _LABELS)
            for standing in standings:
                value = None if standing.reading is None else value_of(standing.reading)
                if value is not None:
                    family.add_metric(_values(standing), value)
            yield family
        yield from _of_polling(standings)
        yield from _of_cost(standings)


def _of_polling(standings: Sequence[Standing]) -> Iterator[Metric]:
    up = _family("up", "Whether the drive answered when it was last asked.", False, _LABELS)
    polls = _family("polls", "Times that the drive was asked.", True, _LABELS)
    errors = _family("poll_errors", "Questions that the drive did not answer.", True, (*_LABELS, "reason"))
    duration = _family("poll_duration_seconds", "How long it was last asked.", False, _LABELS)
    read_at = _family("last_poll_timestamp_seconds", "When it last answered.", False, _LABELS)
    source = _family("media_source_info", "1: the log that media bytes are from.", False, (*_LABELS, "source"))
    for standing in standings:
        values = _values(standing)
        up.add_metric(values, float(standing.reading is not None))
        polls.add_metric(values, standing.polls)
        for reason, count in standing.errors.items():
            errors.add_metric([*values, reason.value], count)
        if standing.duration_seconds is not None:
            duration.add_metric(values, standing.duration_seconds)
        if standing.read_at is not None:
            read_at.add_metric(values, standing.read_at)
        if standing.reading is not None and standing.reading.media_source is not None:
            source.add_metric([*values, standing.reading.media_source], 1.0)
    yield from (up, polls, errors, duration, read_at, source)


def _of_cost(standings: Sequence[Standing]) -> Iterator[Metric]:
    commands = _family("exporter_commands", "Processes of nvme-cli that were started.", True, ())
    commands.add_metric([], sum(standing.commands for standing in standings))
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = _family("exporter_commands_cpu_seconds", "Processor time of those that ended.", True, ())
    seconds.add_metric([], spent.ru_utime + spent.ru_stime)
    yield from (commands, seconds)


def _family(name: str, text: str, is_counter: bool, labels: Sequence[str]) -> "CounterMetricFamily | GaugeMetricFamily":
    kind = CounterMetricFamily if is_counter else GaugeMetricFamily
    return kind(PREFIX + name, text, labels=labels)


def _values(standing: Standing) -> list[str]:
    return [standing.controller.device, standing.controller.serial]
