"""Windows of the past of a system, held against those that a run has which observes it live."""

import time
from collections.abc import Iterator

import pytest
from testkit.waiting import wait_until
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.engines.observe import ObserveLoad
from cliffwatch.model.window import EngineWindow
from cliffwatch.observer.bounded import QUERIES_LIMIT, BoundedQueries
from cliffwatch.observer.past import windows_of_the_past
from cliffwatch.observer.system import ObservedSystem
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.prometheus import Prometheus, PrometheusAnswer, QueryFailed

WINDOW, SCRAPE, WINDOWS = 60, 15, 60
LOAD = ObserveLoad.model_validate(
    {
        "latency": {
            "publish": {"histogram": "demo_latency_seconds"},
            "read": {"quantiles": {"p99": 'demo_read_ms{quantile="0.99"}'}, "unit": "milliseconds"},
        },
        "bytes": "demo_bytes_total",
        "errors": "demo_errors_total",
    }
)
BOUNDS = (0.001, 0.004, 0.016)
#: Windows in which an instance is back. Live, what is counted after its first sample there is in them.
BACK = (16, 50)
#: Window in whose middle an instance is started anew. Live, what it had counted before is in it.
RESET = 55


def scraped_at(instance: str, number: int) -> bool:
    """Whether there is a scrape: one instance is away for six minutes, the other for one scrape, and both for ten."""
    minute = number * SCRAPE / 60
    if 40 <= minute < 50:
        return False
    return not (10 <= minute < 16) if instance == "one" else number != 33


def samples(start: int) -> Iterator[str]:
    """Two instances. One is started anew in its absence; the other has its first error in the middle."""
    families: dict[str, list[str]] = {name: [] for name in ("latency", "bytes", "errors", "read", "up")}
    for place, instance in enumerate(("one", "two")):
        labels = f'job="demo",instance="{instance}"'
        counts, written = [0, 0, 0, 0], 0
        for number in range(-8, WINDOWS * WINDOW // SCRAPE + 1):
            at = start + number * SCRAPE + 2 * place + 1
            if number == (16 * 60 // SCRAPE if instance == "one" else RESET * 60 // SCRAPE + 2):
                counts, written = [0, 0, 0, 0], 0
            is_slow = 30 <= number * SCRAPE / 60 < 35
            for bucket, more in enumerate((10, 60, 90, 100) if is_slow else (70, 90, 99, 100)):
                counts[bucket] += more + (number + bucket) % 3
            written += 4096 * (100 + number % 7)
            if not scraped_at(instance, number):
                continue
            for bound, count in zip([*map(str, BOUNDS), "+Inf"], counts, strict=True):
                families["latency"].append(f'demo_latency_seconds_bucket{{{labels},le="{bound}"}} {count} {at}')
            families["bytes"].append(f"demo_bytes_total{{{labels}}} {written} {at}")
            if instance == "two" and number >= 100:
                families["errors"].append(f"demo_errors_total{{{labels}}} {1 + (number - 100) // 9} {at}")
            families["read"].append(f'demo_read_ms{{{labels},quantile="0.99"}} {5 + number % 11} {at}')
            families["up"].append(f"up{{{labels}}} 1 {at}")
    kinds = ("histogram", "counter", "counter", "gauge", "gauge")
    names = ("demo_latency_seconds", "demo_bytes", "demo_errors", "demo_read_ms", "up")
    for kind, name, lines in zip(kinds, names, families.values(), strict=True):
        yield f"# TYPE {name} {kind}"
        yield from lines


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrometheusAddress, int]]:
    """A Prometheus with an hour of the past, and when that begins."""
    server = PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    start = (int(time.time()) - 2 * 3600) // WINDOW * WINDOW
    fill(server.data, samples(start))
    with server:
        wait_until(lambda: server.has("vector(1)"), "Prometheus")
        yield server.address, start


def of_the_past(server: PrometheusAddress, start: int, chunk: int) -> list[EngineWindow | None]:
    prometheus = Prometheus(server, time.monotonic() + 30)
    system = ObservedSystem(LOAD, server)
    bounds = (float(start), float(start + WINDOWS * WINDOW))
    try:
        return list(windows_of_the_past(system, BoundedQueries(prometheus), 'up{job="demo"}', bounds, WINDOW, chunk))
    finally:
        prometheus.close()


@pytest.mark.parametrize("chunk", [7, 1000])
def test_windows_of_the_past_are_those_that_were_observed_live(past: tuple[PrometheusAddress, int], chunk: int) -> None:
    server, start = past
    live = ObservedSystem(LOAD, server)
    found = of_the_past(server, start, chunk)
    assert len(found) == WINDOWS
    for number, window in enumerate(found):
        begin = float(start + number * WINDOW)
        expected = live.window(begin, begin + WINDOW)
        if number in BACK:
            assert expected is not None
            assert window is None or window.counters["operations"] < expected.counters["operations"]
            continue
        if number == RESET:
            assert window is not None
            assert expected is not None
            before = 2 * 100
            assert window.counters["operations"] == pytest.approx(expected.counters["operations"] - before, abs=6)
            continue
        if expected is None:
            assert window is None, number
            continue
        assert window is not None, number
        assert (window.counters, window.gauges, window.quantiles) == (
            expected.counters,
            expected.gauges,
            expected.quantiles,
        ), number
        assert {name: each.encode() for name, each in window.latency.items()} == {
            name: each.encode() for name, each in expected.latency.items()
        }
    live.close()
    assert found[42] is None, "nothing was scraped for ten minutes, and Prometheus repeats its samples for five"
    errors = [window.counters.get("errors", 0) for window in found if window is not None]
    assert sum(errors) > 3, "a counter that begins with the first error counts from 0"


class Failing:
    """Prometheus of which the first queries fail."""

    deadline = 0.0

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def query_range(self, query: str, start: int, end: int, step: int) -> list[PrometheusAnswer]:
        self.failures -= 1
        if self.failures >= 0:
            raise QueryFailed("it is busy")
        return []


def test_a_failed_query_is_repeated_after_growing_pauses() -> None:
    pauses: list[float] = []
    queries = BoundedQueries(Failing(3), pauses.append)  # type: ignore[arg-type]
    assert queries.query_range("up", 0, 0, 1000) == []
    assert (pauses, queries.asked) == ([1.0, 5.0, 20.0], 4)
    with pytest.raises(QueryFailed, match="it is busy"):
        BoundedQueries(Failing(4), pauses.append).query_range("up", 0, 0, 1000)  # type: ignore[arg-type]


def test_no_more_than_the_limit_of_queries_is_asked() -> None:
    queries = BoundedQueries(Failing(0), asked=QUERIES_LIMIT - 1)  # type: ignore[arg-type]
    assert queries.query_range("up", 0, 0, 1000) == []
    with pytest.raises(QueryFailed, match=r"2,000 queries, which is the limit; look back less far"):
        queries.query_range("up", 0, 0, 1000)
