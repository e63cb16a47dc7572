"""Drives' counters of the past, held against those of a run that watches the same drives live."""

import time
from collections.abc import Iterator

import pytest
from testkit.waiting import wait_until
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.coordinator.drive_counts import LONGEST_SECONDS, DriveCounts
from cliffwatch.labs.look_back.drives import HostDrives, drives_of_hosts, past_intervals
from cliffwatch.observer.bounded import BoundedQueries
from cliffwatch.telemetry.drives import read_counters
from cliffwatch.telemetry.prometheus import Prometheus

WINDOW, SCRAPE, WINDOWS = 60, 15, 40
#: Minutes in which the host is away, and in whose middle it is started anew.
AWAY, RESTART = range(10, 16), 25
OF_A_WRITE = {"written_bytes": 65536.0, "write_time_seconds": 0.0011, "io_time_weighted_seconds": 0.0013}
OTHERS = ("reads_completed", "read_bytes", "read_time_seconds")


def samples(start: int) -> Iterator[str]:
    """node_exporter of one host with two drives, one of them busier, and a partition's device-mapper twin; a second
    exporter of the host counts otherwise."""
    lines: dict[str, list[str]] = {}
    for number in range(-8, WINDOWS * WINDOW // SCRAPE + 1):
        at, minute = start + number * SCRAPE + 3, number * SCRAPE // 60
        if minute in AWAY:
            continue
        since = number - (RESTART * 60 // SCRAPE + 2)
        scrapes = since if since >= 0 else number + 8
        for job, instance, done in (("node", "one.example:9100", scrapes), ("other", "one.example:9200", 3 * scrapes)):
            lines.setdefault("up", []).append(f'up{{job="{job}",instance="{instance}"}} 1 {at}')
            for device, writes in (("nvme0n1", 100), ("nvme1n1", 700), ("dm-0", 100)):
                labels = f'{{job="{job}",instance="{instance}",device="{device}"}}'
                counted: dict[str, float] = {"writes_completed": done * writes + number % 3}
                counted |= {name: round(done * writes * each, 3) for name, each in OF_A_WRITE.items()}
                counted |= dict.fromkeys(OTHERS, done)
                for name, value in counted.items():
                    lines.setdefault(f"node_disk_{name}_total", []).append(
                        f"node_disk_{name}_total{labels} {value} {at}"
                    )
    for name, each in lines.items():
        yield f"# TYPE {name.removesuffix('_total')} {'gauge' if name == 'up' else 'counter'}"
        yield from each


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, int]]:
    """A Prometheus with 40 minutes of the past, and when those begin."""
    server = PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    start = (int(time.time()) - 2 * 3600) // WINDOW * WINDOW
    fill(server.data, samples(start))
    with server:
        wait_until(lambda: server.has("vector(1)"), "Prometheus")
        prometheus = Prometheus(server.address, time.monotonic() + 300)
        yield prometheus, start
        prometheus.close()


def found(prometheus: Prometheus, start: int) -> HostDrives:
    span = (start * 1000, (start + WINDOWS * WINDOW) * 1000, 60_000)
    hosts = drives_of_hosts(BoundedQueries(prometheus), ["one.example:9644"], span)
    assert hosts is not None
    return hosts


def test_drives_of_a_systems_hosts_are_found_once(past: tuple[Prometheus, int]) -> None:
    prometheus, start = past
    hosts = found(prometheus, start)
    assert [(drive.name, drive.number) for drive in hosts.drives] == [
        ("one.example/nvme0n1", "0:1"),
        ("one.example/nvme1n1", "0:2"),
    ]
    assert set(hosts.targets.values()) == {("node", "one.example:9100")}
    span = (start * 1000, (start + WINDOWS * WINDOW) * 1000, 60_000)
    assert drives_of_hosts(BoundedQueries(prometheus), ["onesexample:9644", "other"], span) is None


def test_counters_of_the_past_are_those_that_were_watched_live(
    past: tuple[Prometheus, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    prometheus, start = past
    hosts = found(prometheus, start)
    monkeypatch.setattr(HostDrives, "chunk", 7)
    queries = BoundedQueries(prometheus)
    intervals = list(past_intervals(hosts, queries, (start, start + WINDOWS * WINDOW), WINDOW))
    assert (len(intervals), queries.asked) == (WINDOWS, hosts.queries(WINDOWS))
    live = DriveCounts({drive.name: drive.number for drive in hosts.drives}, lag_seconds=0.0)
    selector = f'{hosts.selector},job="node"'
    unlike = []
    for number, interval in enumerate(intervals):
        begin = float(start + number * WINDOW)
        live.add(read_counters(prometheus, selector, begin + WINDOW, LONGEST_SECONDS))
        expected = live.between(begin, begin + WINDOW)
        if (interval.counters, interval.gauges) != (expected.counters, expected.gauges):
            unlike.append(number)
    assert unlike == []
    assert intervals[5].counters["0:2.write_operations"] == pytest.approx(4 * 700, abs=3)
    assert intervals[RESTART].counters == {}, "a counter that is reset shows nothing of its window"
    assert {number for number in range(WINDOWS) if not intervals[number].counters} == {*AWAY, 16, RESTART}
