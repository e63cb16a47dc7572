"""Native histograms of a real Prometheus, and of answers that are made."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testkit.waiting import wait_until
from tests.observer.native import NAME, NativeExporter
from tests.telemetry.prometheus_server import PrometheusServer

from cliffwatch.base.clock import SystemClock
from cliffwatch.engines.observe import ObserveLoad
from cliffwatch.observer.system import ObservedSystem, of_source
from cliffwatch.telemetry.native_histograms import cumulative_buckets
from cliffwatch.telemetry.prometheus import PrometheusAnswer

LOAD = ObserveLoad.model_validate({"latency": {"publish": {"histogram": f'{NAME}{{request="produce"}}'}}})


def scraped(server: PrometheusServer, count: int) -> float:
    """Time at which Prometheus has so many latencies."""
    wait_until(lambda: server.has(f"histogram_count({NAME}) == {count}"), f"{count} latencies")
    return time.time()


def test_a_window_has_the_latencies_of_a_native_histogram(tmp_path: Path) -> None:
    server = PrometheusServer(tmp_path / "prometheus")
    server.enable("native-histograms")
    with NativeExporter(schema=3) as exporter:
        server.scrape("demo", exporter.port)
        with server:
            exporter.observe(0.0011, 50)
            begin = scraped(server, 50)
            system = ObservedSystem(LOAD, server.address)
            found = system.check(2.0, SystemClock())
            assert (found.refused, found.unreachable) == ([], [])
            exporter.observe(0.003, 300)
            exporter.observe(0.1, 100)
            middle = scraped(server, 450)
            first = system.window(begin, middle)
            # The exporter halves its resolution, twice, and then begins anew.
            exporter.schema = 1
            exporter.observe(0.003, 1000)
            later = scraped(server, 1450)
            second = system.window(middle, later)
            exporter.restart()
            exporter.observe(0.02, 40)
            third = system.window(later, scraped(server, 40))
            system.close()
    assert first is not None
    assert second is not None
    assert third is not None
    assert [each.counters["operations"] for each in (first, second, third)] == [400, 1000, 40]
    p50, p90 = first.latency["publish"].percentiles_seconds([0.5, 0.9])
    # A bucket of schema 3 is 9 % wide, one of schema 1 41 %.
    assert p50 == pytest.approx(0.003, rel=0.1)
    assert p90 == pytest.approx(0.1, rel=0.1)
    assert second.latency["publish"].percentiles_seconds([0.5, 0.999]) == pytest.approx([0.003, 0.003], rel=0.42)
    assert third.latency["publish"].percentiles_seconds([0.5]) == pytest.approx([0.02], rel=0.42)


def test_samples_are_compared_at_bounds_of_the_lowest_resolution() -> None:
    fine = {"count": "6", "buckets": [[0, "1", "2", "1"], [0, "2", "4", "2"], [0, "8", "16", "3"]]}
    coarse = {"count": "9", "buckets": [[0, "1", "4", "6"], [0, "4", "16", "3"]]}
    found = cumulative_buckets([fine, coarse, {"count": "0"}])
    assert {bound: counts.tolist() for bound, counts in found.items()} == {
        "1.0": [0, 0, 0],
        "4.0": [3, 6, 0],
        "16.0": [6, 9, 0],
        "+Inf": [6, 9, 0],
    }


def test_the_zero_bucket_and_what_is_above_all_bounds_are_counted() -> None:
    sample = {"count": "5", "buckets": [[3, "-1e-9", "1e-9", "2"], [0, "1", "2", "1"], [0, "2", "+Inf", "2"]]}
    found = cumulative_buckets([sample])
    assert {bound: counts.tolist() for bound, counts in found.items()} == {
        "0.0": [0],
        "1e-09": [2],
        "1.0": [2],
        "2.0": [3],
        "+Inf": [5],
    }


@pytest.mark.parametrize(
    "sample",
    [
        {"buckets": [[0, "1", "2", "1"]]},
        {"count": "1", "buckets": [[0, "1", "2"]]},
        {"count": "1", "buckets": [[0, "NaN", "2", "1"]]},
        {"count": "1", "buckets": [[0, "2", "1", "1"]]},
        {"count": "2", "buckets": [[0, "2", "4", "1"], [0, "1", "2", "1"]]},
        {"count": "x"},
        None,
    ],
)
def test_a_malformed_native_histogram_is_refused(sample: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        cumulative_buckets([sample])


def test_no_samples_are_no_buckets() -> None:
    assert {bound: np.asarray(counts).tolist() for bound, counts in cumulative_buckets([]).items()} == {"+Inf": []}


def answer(name: str, **labels: str) -> PrometheusAnswer:
    return PrometheusAnswer(labels, np.array([1000]), np.array([1.0]), name)


def test_of_a_histogram_that_is_kept_both_ways_the_native_is_read() -> None:
    native, classic, other = answer(NAME, le="0.1"), answer(f"{NAME}_bucket", le="0.1"), answer(NAME)
    assert of_source("latency.publish", [native, classic, other]) == [native]
    assert of_source("latency.publish", [classic, other]) == [classic]
    assert of_source("latency.publish", [other]) == [other]
    assert of_source("operations", [native, classic]) == [native, classic]
