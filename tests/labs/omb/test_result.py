"""A run as the benchmark's result file: its field names, its units, and numbers that are the journal's own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from testkit.journals import START

from cliffwatch.base import durable
from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import WindowLog, files
from cliffwatch.labs.omb.result import result_of
from cliffwatch.model.order import RunOrder
from cliffwatch.model.target import BrokerTarget
from cliffwatch.model.window import EngineWindow
from cliffwatch.model.workload import workload_from

#: Arrays and aggregates that upstream's `create_charts.py` and `ResultsToCsv.java` read.
PER_SAMPLE = ("publishRate", "publishErrorRate", "consumeRate", "backlog")
QUANTILES = ("Avg", "50pct", "75pct", "95pct", "99pct", "999pct", "9999pct", "Max")


def journal(tmp_path: Path, engine: str = "kafka", windows: int = 6, **changes: Any) -> Path:
    load: dict[str, Any] = {
        "topics": {"count": 2, "partitions": 24},
        "producer": {"producers": 4},
        "consumer": {"consumers": 2},
    }
    workload = workload_from(
        {
            "version": 1,
            "name": "charted",
            "engine": engine,
            "window": "10s",
            "phases": {"warm_up": "20s", "soak": "40s"},
            "load": load | changes if engine == "kafka" else {},
        }
    )
    order = RunOrder(
        run_id="charted-1",
        workload=workload,
        target=BrokerTarget(bootstrap_servers=["127.0.0.1:9092"]),
        created_at=START,
        created_by="tester",
    )
    directory = tmp_path / order.run_id
    directory.mkdir(parents=True)
    durable.write_json_durably(directory / files.ORDER, order.model_dump(mode="json"))
    log = WindowLog(directory, START)
    for index in range(windows):
        start = START + index * 10
        slow = 1_000_000_000 if index < 2 else 4_000_000
        latency = {
            "publish": Histogram.from_values([(slow + 500_000, 1000)]),
            "publish_service": Histogram.from_values([(slow, 1000)]),
            "end_to_end": Histogram.from_values([(2 * slow, 500), (20 * slow, 500)]),
        }
        counters = {
            "operations": 2000,
            "bytes": 2_048_000,
            "errors": 10,
            "produced_records": 1000,
            "produced_bytes": 1_024_000,
            "consumed_records": 990,
            "consumed_bytes": 1_013_760,
        }
        window = EngineWindow(start, start + 10, counters, {"backlog_records": 7.0}, latency)
        log.append(window, "warm_up" if index < 2 else "soak")
    log.close()
    return directory


def test_the_soaks_samples_and_aggregates_are_there_in_the_benchmarks_units(tmp_path: Path) -> None:
    result = result_of(journal(tmp_path))
    assert (result["topics"], result["partitions"], result["messageSize"]) == (2, 24, 1024)
    assert (result["producersPerTopic"], result["consumersPerTopic"]) == (2, 1)
    for name in PER_SAMPLE:
        assert len(result[name]) == 4, name
    assert result["publishRate"] == [100.0] * 4
    assert result["publishErrorRate"] == [1.0] * 4
    assert result["backlog"] == [7] * 4
    for quantile in QUANTILES:
        assert len(result[f"publishLatency{quantile}"]) == 4
        assert result[f"aggregatedPublishLatency{quantile}"] == pytest.approx(4.0, rel=1e-3)
    assert result["aggregatedEndToEndLatency50pct"] == pytest.approx(8.0, rel=1e-3)
    assert result["aggregatedEndToEndLatencyMax"] == pytest.approx(80.0, rel=1e-3)
    assert result["aggregatedPublishDelayLatencyAvg"] == pytest.approx(500, rel=0.02)
    assert result["endTime"] - result["beginTime"] == 40_000


def test_a_side_with_every_default_is_one_and_a_side_that_is_not_there_is_none(tmp_path: Path) -> None:
    result = result_of(journal(tmp_path, topics={}, producer={}, consumer={}))
    assert (result["producersPerTopic"], result["consumersPerTopic"]) == (1, 1)
    result = result_of(journal(tmp_path / "other", topics={}, producer=None))
    assert (result["producersPerTopic"], result["consumersPerTopic"]) == (0, 2)


def test_quantiles_rise_from_0_to_100(tmp_path: Path) -> None:
    quantiles = result_of(journal(tmp_path))["aggregatedEndToEndLatencyQuantiles"]
    percents = [float(text) for text in quantiles]
    assert percents == sorted(percents)
    assert len(set(percents)) == len(percents)
    assert (percents[0], percents[-1]) == (0.0, 100.0)
    assert list(quantiles.values()) == sorted(quantiles.values())


def test_the_command_writes_it_from_a_journal_alone(tmp_path: Path) -> None:
    directory, target = journal(tmp_path), tmp_path / "result.json"
    program = str(Path(sys.executable).with_name("cliffwatch"))
    command = [program, "run", "export", str(directory), "--format", "omb", "--to", str(target)]
    environment = os.environ | {"CLIFFWATCH_STATE_DIRECTORY": str(tmp_path / "state")}
    subprocess.run(command, check=True, env=environment, capture_output=True)
    assert json.loads(target.read_text()) == result_of(directory)


def test_a_synthetic_run_or_a_run_without_soak_windows_has_no_omb_result(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(Problem, match="synthetic"):
        result_of(journal(tmp_path / "a", engine="synthetic"))
    with pytest.raises(Problem, match="no window of its soak"):
        result_of(journal(tmp_path / "b", windows=2))
