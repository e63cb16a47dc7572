"""A system that others load, seen through a real Prometheus that goes away and comes back."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from testkit.waiting import wait_until
from testkit.worker_runs import events, queue_run, start_worker, status
from tests.observer.observed import SELECTOR, ObservedDemo
from tests.telemetry.prometheus_server import PrometheusServer

from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.engines.contract import EngineContext, Probe
from cliffwatch.engines.observe import ObserveEngine, ObserveLoad
from cliffwatch.journal import EventLog, JournalReader, JournalWindow, files
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import ObservedTarget

LOAD: dict[str, Any] = {"latency": {"publish": {"histogram": SELECTOR}}, "bytes": "demo_bytes_total"}
WORKLOAD: dict[str, Any] = {"engine": "observe", "window": "2s", "phases": {"soak": "40s"}}


@pytest.fixture
def prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrometheusServer:
    server = PrometheusServer(tmp_path / "prometheus")
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", server.url)
    return server


def probe(load: dict[str, Any], directory: Path, window_seconds: float = 2.0) -> Probe:
    now = time.time()
    context = EngineContext(
        run_id="checked",
        path=directory,
        is_device=False,
        scratch=directory,
        window_seconds=window_seconds,
        start=now,
        stop=now + 10,
        state_directory=directory,
    )
    return ObserveEngine().probe(ObserveLoad.model_validate(load), context)


def windows_of(directory: Path) -> list[JournalWindow]:
    return list(JournalReader(directory).windows())


def engine_of(directory: Path) -> int:
    """Process id of the run's engine."""
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    return heartbeat.engines[0].pid


@contextmanager
def scraped(prometheus: PrometheusServer) -> Iterator[ObservedDemo]:
    """A system that is under load, and that Prometheus has scraped for some seconds."""
    with ObservedDemo() as system:
        prometheus.scrape("demo", system.port)
        with prometheus:
            wait_until(lambda: prometheus.has(f"demo_bytes_total > {4096 * 400}"), "samples of the system")
            yield system


def names_of(directory: Path) -> list[str]:
    return [event.name for event in events(directory) if event.name.startswith("metrics_")]


def test_a_window_has_what_was_counted_in_it_and_a_slow_span_is_in_the_percentiles(
    tmp_path: Path, prometheus: PrometheusServer
) -> None:
    with scraped(prometheus) as system:
        directory = queue_run(tmp_path / "watched", target=ObservedTarget(name="demo"), load=LOAD, **WORKLOAD)
        worker = start_worker(directory)
        wait_until(lambda: len(windows_of(directory)) >= 4, "windows")
        system.latency_seconds = 0.1
        wait_until(lambda: len(windows_of(directory)) >= 8, "windows of the slow span")
        prometheus.kill()
        wait_until(lambda: names_of(directory) == ["metrics_missing"], "the event that Prometheus is away")
        prometheus.start()
        wait_until(lambda: names_of(directory) == ["metrics_missing", "metrics_resumed"], "that it is back")
        assert worker.wait(120) == 0
    windows = windows_of(directory)
    fast, slow = windows[1], windows[7]
    assert fast.latency["publish"]["p99"] == pytest.approx(0.004, rel=0.1)
    assert slow.latency["publish"]["p50"] == pytest.approx(0.096, abs=0.032)
    counted = sum(window.counters["operations"] for window in windows)
    # The span without Prometheus is a gap, and in no window.
    assert counted == pytest.approx(200 * sum(window.gauges["observed_span_seconds"] for window in windows), rel=0.02)
    assert all(window.gauges["observed_span_seconds"] <= 4.5 for window in windows)
    assert len(windows) >= 12
    assert sum(window.counters["bytes"] for window in windows) == 4096 * counted
    assert all(0 < window.gauges["observed_age_seconds"] < 2.5 for window in windows)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert report["verdict"]["name"] in {"pass", "invalid"}
    assert any("errors are not observed" in each for each in report["facts"]["warnings"])


@pytest.mark.gate(why="one system that others load is observed before every merge")
def test_quantiles_that_were_no_histograms_are_of_each_window_and_of_nothing_longer(
    tmp_path: Path, prometheus: PrometheusServer
) -> None:
    load = {
        "latency": {
            "publish": {
                "quantiles": {
                    "p50": 'demo_totaltimems{quantile="0.5"}',
                    "p99": 'demo_totaltimems{quantile="0.99"}',
                    "p99.9": 'demo_totaltimems{quantile="0.999"}',
                },
                "unit": "milliseconds",
            }
        },
        "operations": 'demo_request_latency_seconds_count{request="produce"}',
        "errors": "demo_errors_total",
    }
    with scraped(prometheus) as system:
        found = probe(load, tmp_path)
        assert (found.unreachable, found.refused) == ((), ())
        directory = queue_run(
            tmp_path / "ready",
            target=ObservedTarget(name="demo"),
            load=load,
            **WORKLOAD | {"phases": {"soak": "12s"}},
        )
        worker = start_worker(directory)
        wait_until(lambda: bool(windows_of(directory)), "a window")
        system.fail(3)
        assert worker.wait(60) == 0
    windows = windows_of(directory)
    assert len(windows) >= 5
    assert sum(window.counters["errors"] for window in windows) == 3, "the counter began with them"
    for window in windows:
        known = window.latency["publish"]
        assert (known["p50"], known["p99"], known["p999"]) == pytest.approx((0.003, 0.009, 0.021))
        assert (known["count"], known["p90"]) == (0, None)
        assert window.counters["operations"] == pytest.approx(400, rel=0.3)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert report["latency"] == {}
    assert report["quantiles"]["publish"]["quantiles"]["p99"]["highest_seconds"] == 0.009
    assert any("quantiles of publish are read ready-made" in each for each in report["facts"]["warnings"])


def test_a_system_that_stands_still_is_a_stall_although_its_quantiles_stay(
    tmp_path: Path, prometheus: PrometheusServer
) -> None:
    load = {
        "latency": {"publish": {"quantiles": {"p99": 'demo_totaltimems{quantile="0.99"}'}, "unit": "milliseconds"}},
        "operations": 'demo_request_latency_seconds_count{request="produce"}',
    }
    with scraped(prometheus) as system:
        directory = queue_run(
            tmp_path / "still",
            target=ObservedTarget(name="demo"),
            load=load,
            limits=["no stall"],
            **WORKLOAD | {"phases": {"soak": "60s"}},
        )
        worker = start_worker(directory)
        wait_until(lambda: len(windows_of(directory)) >= 13, "windows of the healthy span")
        system.is_standing_still = True
        wait_until(lambda: sum(window.operations == 0 for window in windows_of(directory)) >= 8, "windows without work")
        system.is_standing_still = False
        assert worker.wait(120) == 0
    still = [window for window in windows_of(directory) if window.operations == 0]
    assert len(still) >= 8
    assert all(not window.latency for window in still), "a quantile beside a count that did not move is none"
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert report["verdict"]["name"] == "degraded"
    assert [finding["kind"] for finding in report["findings"]] == ["stall"]
    assert [limit["held"] for limit in report["limits"]] == [False]


@pytest.mark.parametrize("killed", ["engine", "worker"])
def test_windows_missed_while_a_process_is_down_are_read_afterwards(
    tmp_path: Path, prometheus: PrometheusServer, killed: str
) -> None:
    with scraped(prometheus):
        directory = queue_run(
            tmp_path / killed,
            target=ObservedTarget(name="demo"),
            load=LOAD,
            **WORKLOAD | {"phases": {"soak": "20s"}},
        )
        worker = start_worker(directory)
        wait_until(lambda: len(windows_of(directory)) >= 3, "windows")
        if killed == "engine":
            os.kill(engine_of(directory), signal.SIGKILL)
        else:
            worker.kill()
            worker.wait()
            # Longer than a window.
            time.sleep(5)
            for state in (RunState.INTERRUPTED, RunState.STARTING):
                change_state(EventLog(directory), state, time.time())
            worker = start_worker(directory)
        assert worker.wait(120) == 0
    windows = windows_of(directory)
    assert len(windows) == 10
    assert all(after.start == pytest.approx(before.end) for before, after in pairwise(windows))
    counted = [window.counters["operations"] for window in windows]
    assert counted == pytest.approx([400] * 10, rel=0.1)
    assert json.loads((directory / files.REPORT_JSON).read_text())["verdict"]["name"] == "pass"


def test_windows_missed_at_the_end_of_the_load_are_read_by_a_later_worker(
    tmp_path: Path, prometheus: PrometheusServer
) -> None:
    with scraped(prometheus):
        directory = queue_run(
            tmp_path / "late",
            target=ObservedTarget(name="demo"),
            load=LOAD,
            **WORKLOAD | {"phases": {"soak": "20s"}, "stop_grace": "1s"},
        )
        worker = start_worker(directory)
        wait_until(lambda: len(windows_of(directory)) >= 3, "windows")
        worker.kill()
        worker.wait()
        load_stop = status(directory).load_stop
        assert load_stop is not None
        # Later than an engine is waited for: two windows and the grace.
        wait_until(lambda: time.time() > load_stop + 10, "the load's end")
        for state in (RunState.INTERRUPTED, RunState.STARTING):
            change_state(EventLog(directory), state, time.time())
        assert start_worker(directory).wait(120) == 0
    windows = windows_of(directory)
    assert len(windows) == 10
    assert [window.counters["operations"] for window in windows] == pytest.approx([400] * 10, rel=0.1)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert (report["verdict"]["name"], report["coverage"]["gaps"]) == ("pass", [])


def test_a_check_says_what_there_is_and_what_is_missing(
    tmp_path: Path, prometheus: PrometheusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable = probe(LOAD, tmp_path).unreachable
    assert "does not answer" in unreachable[0]
    with ObservedDemo() as system:
        prometheus.scrape("demo", system.port)
        with prometheus:
            wait_until(lambda: prometheus.has("count_over_time(demo_bytes_total[1m]) >= 4"), "samples of the system")
            found = probe(LOAD, tmp_path)
            assert found.notes == (
                f"load.latency.publish: 11 series of 127.0.0.1:{system.port}, scraped every 1s",
                f"load.bytes: 1 series of 127.0.0.1:{system.port}, scraped every 1s",
            )
            assert (found.unreachable, found.refused) == ((), ())
            once = probe(LOAD, tmp_path, 1.0)
            assert (once.refused, "one has the counts of none or of two scrapes" in once.notes[3]) == ((), True)
            often = probe(LOAD, tmp_path, 0.5).refused
            assert "make the window 1s or longer" in often[0]
            none = 'demo_bytes_total{request="none"}'
            note = probe(LOAD | {"errors": none}, tmp_path)
            assert (note.refused, f"load.errors: Prometheus has no samples of {none} yet" in note.notes[2]) == (
                (),
                True,
            )
            missing = probe(LOAD | {"bytes": none}, tmp_path).refused
            assert missing == (
                'load.bytes: Prometheus has no samples of demo_bytes_total{request="none"} in the last five minutes',
            )
            refused = probe(LOAD | {"bytes": "demo_bytes_total{request=}"}, tmp_path).unreachable
            assert "Prometheus refused" in refused[0]
    unknown = probe(LOAD | {"prometheus": "stagign"}, tmp_path).refused
    assert "'stagign' is no Prometheus that is known" in unknown[0]
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", "")
    assert "set CLIFFWATCH_PROMETHEUS_URL" in probe(LOAD, tmp_path).refused[0]
