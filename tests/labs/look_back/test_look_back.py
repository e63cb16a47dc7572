"""`cliffwatch observe`: runs of the past that a real Prometheus has of two clusters, typed as in the documentation."""

import http.server
import json
import math
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.databases import indexed
from testkit.ports import free_port
from testkit.waiting import wait_until
from tests.cli.machine import Machine
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.journal import EventType, JournalReader, files
from cliffwatch.store.models import RunRow

HOUR = 3600
SCRAPE, HOURS, CLIFF_HOUR, AWAY_MINUTES = 30, 5, 4, 2
NAME = "redpanda_kafka_request_latency_seconds"
BOUNDS = tuple(0.0005 * 1.5**power for power in range(16))
#: Hour in which the cluster `clicks` is shut down, and number of series of a broker that has too many.
SHUT_DOWN_HOUR, TOO_MANY = 4, 6300


def scrapes(cluster: str, start: int) -> list[int]:
    """Times of scrapes. Prometheus is away for two minutes, in the third hour."""
    hours = SHUT_DOWN_HOUR if cluster == "clicks" else HOURS
    return [
        at for at in range(start, start + hours * HOUR, SCRAPE) if not 0 <= at - start - 2 * HOUR < AWAY_MINUTES * 60
    ]


def requests_of(cluster: str, instance: str, request: str, start: int, cliff: float) -> Iterator[str]:
    """Counters of a broker's requests, which are four times as slow from `cliff` on."""
    chance = random.Random(f"{cluster}{instance}{request}")
    labels = f'cluster="{cluster}",instance="{instance}",job="redpanda",redpanda_request="{request}"'
    counts = [0] * (len(BOUNDS) + 1)
    for at in scrapes(cluster, start):
        for _ in range(60):
            seconds = 0.003 * math.exp(chance.gauss(0, 0.4)) * (4 if at >= cliff else 1)
            place = next((index for index, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
            for index in range(place, len(counts)):
                counts[index] += 1
        for bound, count in zip([*map(repr, BOUNDS), "+Inf"], counts, strict=True):
            yield f'{NAME}_bucket{{{labels},le="{bound}"}} {count} {at}'
        yield f"{NAME}_count{{{labels}}} {counts[-1]} {at}"


def drives_of(cluster: str, host: str, start: int, cliff: float) -> Iterator[tuple[str, str]]:
    """Name and line of each sample of node_exporter's counters of a host's drive, which is slower from `cliff` on."""
    labels = f'{{job="node",instance="{host}:9100",device="nvme0n1"}}'
    totals = dict.fromkeys(("reads_completed", "read_bytes", "read_time_seconds"), 0.0)
    totals |= dict.fromkeys(
        ("writes_completed", "written_bytes", "write_time_seconds", "io_time_weighted_seconds"), 0.0
    )
    for number, at in enumerate(scrapes(cluster, start)):
        seconds = (0.0008 + 0.00002 * (number % 5)) * (6 if at >= cliff else 1)
        totals["writes_completed"] += 900
        totals["written_bytes"] += 900 * 65536
        totals["write_time_seconds"] += 900 * seconds
        totals["io_time_weighted_seconds"] += 900 * seconds
        yield "up", f'up{{job="node",instance="{host}:9100"}} 1 {at}'
        for name, total in totals.items():
            yield f"node_disk_{name}", f"node_disk_{name}_total{labels} {total} {at}"


def samples(start: int) -> Iterator[str]:
    """Two clusters, of which `orders` has a cliff and drives that are known, one with too many series, and an etcd that
    is scraped every five minutes."""
    ups = []
    yield f"# TYPE {NAME} histogram"
    for cluster, cliff in (("orders", start + CLIFF_HOUR * HOUR), ("clicks", math.inf)):
        for instance in (f"{cluster}-one:9644", f"{cluster}-two:9644"):
            yield from requests_of(cluster, instance, "produce", start, cliff)
            # A label of the metrics alone.
            labels = f'instance="{instance}",job="redpanda"'
            ups += [f"up{{{labels}}} 1 {at}" for at in scrapes(cluster, start)]
    labels = 'cluster="wide",instance="five:9644",job="wide",redpanda_request="produce",le="+Inf"'
    for number in range(TOO_MANY):
        for at in (start + 600, start + 840):
            yield f'{NAME}_bucket{{{labels},shard="{number}"}} 1 {at}'
    yield f"{NAME}_count{{{labels}}} 1 {start + 600}"
    ups += [f'up{{instance="five:9644",job="wide"}} 1 {at}' for at in range(start, start + 870, SCRAPE)]
    yield "# TYPE etcd_disk_wal_fsync_duration_seconds histogram"
    for number in range(HOURS * 12):
        for suffix, bound in (("bucket", ',le="+Inf"'), ("count", "")):
            labels = f'job="etcd",instance="three:2379"{bound}'
            yield f"etcd_disk_wal_fsync_duration_seconds_{suffix}{{{labels}}} {number} {start + number * 300}"
    families: dict[str, list[str]] = {}
    for host, slow_from in (("orders-one", start + CLIFF_HOUR * HOUR), ("orders-two", math.inf)):
        for name, line in drives_of("orders", host, start, slow_from):
            families.setdefault(name, []).append(line)
    ups += families.pop("up")
    for name, lines in families.items():
        yield f"# TYPE {name} counter"
        yield from lines
    yield "# TYPE up gauge"
    yield from ups


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    server = PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    fill(server.data, samples(int(time.time()) // 60 * 60 - HOURS * HOUR))
    with server:
        wait_until(lambda: server.has("vector(1)"), "Prometheus")
        yield server


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, free_port())


def test_each_system_has_a_run_with_a_report(prometheus: PrometheusServer, machine: Machine) -> None:
    done = machine.run("observe", "--prometheus", prometheus.url, "--since", "6h", "--yes", "--output", "json")
    assert done.returncode == 1, done.stderr
    assert "etcd-etcd is left out: it is scraped every 5m, and a window lasts a minute at most" in done.stderr
    assert f"wide is left out: one of its sources has {TOO_MANY:,} series, too many for queries of" in done.stderr
    healthy, degraded = json.loads(done.stdout)
    assert (healthy["system"], healthy["verdict"]) == ("redpanda-redpanda-clicks", "pass")
    assert (degraded["system"], degraded["verdict"]) == ("redpanda-redpanda-orders", "degraded")
    assert "publish p99 rose" in degraded["reasons"][0]
    assert " on orders-one/nvme0n1" in degraded["reasons"][0]
    directory = Path(degraded["report"]).parent
    assert "publish p99 rose" in (directory / "report.html").read_text()
    windows = list(JournalReader(directory).windows())
    # All of them but those at both ends, which are not whole, and those without a scrape.
    assert len(windows) == pytest.approx(HOURS * 60 - AWAY_MINUTES, abs=6)
    (gap,) = [each.event for each in JournalReader(directory).events() if each.event.type is EventType.GAP]
    assert (gap.name, gap.detail["seconds"]) == ("not_scraped", AWAY_MINUTES * 60)
    assert "not scraped" in (directory / "report.html").read_text()
    assert sum(window.counters["operations"] for window in windows[5:65]) == pytest.approx(2 * 60 * 120, rel=0.02)
    reader = JournalReader(directory)
    assert list(reader.document(files.ORDER)["workload"]["load"]["latency"]) == ["publish"], "nothing consumes"
    shut_down = JournalReader(Path(healthy["report"]).parent)
    assert len(list(shut_down.windows())) == pytest.approx(SHUT_DOWN_HOUR * 60 - AWAY_MINUTES, abs=3)
    gaps = [each.event.detail["seconds"] for each in shut_down.events() if each.event.type is EventType.GAP]
    assert gaps == [AWAY_MINUTES * 60], "it ends with its last scrape"
    with indexed(directory).session() as session:
        row = session.get(RunRow, directory.name)
        assert row is not None
        assert row.created_at > (row.finished_at or math.inf), "its end is no news, of which channels are notified"
        assert (row.state, row.verdict, row.target) == ("finished", "degraded", "observed:redpanda-redpanda-orders")
    assert [each.name for each in directory.parent.iterdir() if each.name.startswith(".")] == []


def test_the_systems_are_listed_and_nothing_is_read_without_a_yes(
    prometheus: PrometheusServer, machine: Machine
) -> None:
    done = machine.run("observe", "--prometheus", prometheus.url, "--since", "2h")
    assert done.returncode == 2
    row = next(line.split() for line in done.stderr.splitlines() if line.startswith("redpanda-redpanda-orders"))
    assert row[1:4] == ["orders-one:9644,", "orders-two:9644", "2"]
    # Its samples end when the file was made, which is as long ago as the tests before this one took.
    assert 100 <= int(row[-4]) <= 120
    assert row[-3:-1] == ["of", "1m"]
    assert "nothing was read: there is no terminal to ask; give --yes" in done.stderr
    assert not list((machine.directory / "state").glob("runs/*"))


@pytest.mark.parametrize(
    ("since", "words"),
    [
        ("soon", "--since: 'soon' is not a duration"),
        ("1m", "--since: 1m is not between 10m and 90d"),
        ("91d", "--since: 91d is not between 10m and 90d"),
    ],
)
def test_a_length_that_cannot_be_is_refused(machine: Machine, since: str, words: str) -> None:
    done = machine.run("observe", "--prometheus", "http://127.0.0.1:1", "--since", since)
    assert done.returncode == 2
    assert words in done.stderr


def test_an_unknown_server_is_named_by_its_option(machine: Machine) -> None:
    done = machine.run("observe", "--prometheus", "stagign")
    assert done.returncode == 2
    assert "--prometheus: 'stagign' is no Prometheus that is known" in done.stderr


def test_a_password_in_the_address_is_refused(machine: Machine) -> None:
    done = machine.run("observe", "--prometheus", "http://me:secret@127.0.0.1:1")
    assert done.returncode == 2
    assert "write its user and password into a file of servers" in done.stderr
    assert "secret" not in done.stderr


class LoginPage(http.server.BaseHTTPRequestHandler):
    """Web server that answers everything with a page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html><body>Log in</body></html>")

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def test_a_server_without_metrics_of_a_known_system_is_named(tmp_path: Path, machine: Machine) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), LoginPage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    done = machine.run("observe", "--prometheus", url)
    server.shutdown()
    server.server_close()
    assert (done.returncode, f"what answers at {url} is not Prometheus" in done.stderr) == (3, True), done.stderr
    done = machine.run("observe", "--prometheus", url)
    assert (done.returncode, f"Prometheus at {url} does not answer" in done.stderr) == (3, True), done.stderr
    with PrometheusServer(tmp_path / "empty") as empty:
        done = machine.run("observe", "--prometheus", empty.url, "--yes")
    assert done.returncode == 2
    assert f"{empty.url} has no metrics of a system that is known, since 14d" in done.stderr
