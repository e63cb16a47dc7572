"""Drives of the hosts of an observed system, from what a Prometheus kept of node_exporter's counters."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cliffwatch.coordinator.drive_counts import DriveCounts
from cliffwatch.machine.diskstats import DeviceCounters
from cliffwatch.model.drives import SELECTOR_LIMIT
from cliffwatch.observer.bounded import SAMPLES_LIMIT, BoundedQueries
from cliffwatch.observer.increases import Target, target_of
from cliffwatch.observer.past import WINDOWS_BEFORE, fresh
from cliffwatch.part.interval import Interval
from cliffwatch.telemetry.drives import (
    COUNTERS,
    DRIVES_LIMIT,
    INFO,
    WRITES,
    RemoteDrive,
    counters_in,
    counters_of,
    drive_name,
    numbered,
)

#: Devices that are no drives, or are made of others that are counted by themselves.
_NO_DRIVES = 'device!~"(dm-|fd|loop|md|nbd|ram|sr|zram).*"'
_PORT = re.compile(r":\d+$")
#: Queries of each chunk of windows: of the counters, and of when they were scraped.
_QUERIES = 2


@dataclass(frozen=True, slots=True)
class HostDrives:
    """Drives of a system's hosts. `selector` matches their series, `scraped` the `up` of their exporters, and `targets`
    has the exporter of each by its name, where several know it."""

    drives: tuple[RemoteDrive, ...]
    selector: str
    scraped: str
    targets: dict[str, Target]

    @property
    def chunk(self) -> int:
        """Number of windows that each query is for."""
        return SAMPLES_LIMIT // (len(COUNTERS) * len(self.drives)) - WINDOWS_BEFORE

    def queries(self, windows: int) -> int:
        """Number of queries that read so many windows."""
        return _QUERIES * -(-windows // self.chunk)


def drives_of_hosts(
    prometheus: BoundedQueries, instances: Sequence[str], span: tuple[int, int, int]
) -> HostDrives | None:
    """Drives of the hosts of these instances between the moments start, start + step, … end of `span` (milliseconds).

    None where Prometheus has none of them, or more than a run can have. Raises QueryFailed.
    """
    hosts = "|".join(sorted({re.escape(_PORT.sub("", each)) for each in instances})).replace("\\", "\\\\")
    of_hosts = f'instance=~"({hosts})(:[0-9]+)?"'
    selector = f"{of_hosts},{_NO_DRIVES}"
    if len(selector) > SELECTOR_LIMIT:
        return None
    found = prometheus.query_range(f"count by (job, instance, device) ({WRITES}{{{selector}}})", *span)
    targets: dict[str, Target] = {}
    for answer in sorted(found, key=target_of):
        targets.setdefault(drive_name(answer.labels), target_of(answer))
    if not 0 < len(targets) <= DRIVES_LIMIT:
        return None
    described = {
        drive_name(each.labels): each.labels
        for each in prometheus.query_range(f"{INFO}{{{selector}}}", span[1], span[1], 1000)
    }
    drives = numbered({name: instance for name, (_, instance) in targets.items()}, described)
    return HostDrives(tuple(drives), selector, f"up{{{of_hosts}}}", targets)


def past_intervals(
    hosts: HostDrives, prometheus: BoundedQueries, bounds: tuple[float, float], window_seconds: float
) -> Iterator[Interval]:
    """Counters and gauges of the drives in each window between two moments on the grid, as a run has them that watches
    these drives live. Raises QueryFailed."""
    step = round(window_seconds * 1000)
    start, stop = (round(each * 1000) for each in bounds)
    counts = DriveCounts({drive.name: drive.number for drive in hosts.drives}, lag_seconds=0.0)
    for begin in range(start, stop, hosts.chunk * step):
        end = min(begin + hosts.chunk * step, stop)
        scrapes = _scrapes(hosts, prometheus, (begin - (WINDOWS_BEFORE - 1) * step, end, step))
        for at in range(begin + step, end + 1, step):
            while scrapes and scrapes[-1][0] <= at / 1000:
                moment, name, counters = scrapes.pop()
                counts.add({name: {moment: counters}})
            yield counts.between((at - step) / 1000, at / 1000)


def _scrapes(
    hosts: HostDrives, prometheus: BoundedQueries, asked: tuple[int, int, int]
) -> list[tuple[float, str, DeviceCounters]]:
    """Time, drive and counters of each scrape that is the newest one at a moment that is asked for, the last first."""
    scraped = {target_of(each): each for each in prometheus.query_range(f"timestamp({hosts.scraped})", *asked)}
    answers = []
    for answer in prometheus.query_range(counters_of(hosts.selector), *asked):
        if hosts.targets.get(drive_name(answer.labels)) == target_of(answer):
            samples = fresh(answer, scraped)
            answers.append(replace(answer, times=samples.times, values=samples.values))
    found = counters_in(answers)
    scrapes = [(moment, name, counters) for name, known in found.items() for moment, counters in known.items()]
    return sorted(scrapes, key=lambda scrape: scrape[0], reverse=True)
