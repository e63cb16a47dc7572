"""A cliff, live: a real worker, Prometheus, Alertmanager and service, and the page that stands in the run's journal."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from testkit.waiting import wait_until
from tests.stack.machine import Machine, events_of, load_start

from cliffwatch.journal import EventType

RUN_ID = "falls"
#: Windows of 100 ms: half a minute of them is what detection takes for a baseline.
WORKLOAD = {
    "version": 1,
    "name": "falls",
    "engine": "synthetic",
    "window": "100ms",
    "phases": {"warm_up": "1s", "baseline": "31s", "soak": "5m"},
    "load": {"cliff_after": "33s", "cliff_ratio": 50},
}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    try:
        done = machine.run("up")
        assert done.returncode == 0, done.stderr
        yield machine
    finally:
        machine.run("run", "stop", RUN_ID, "--force")
        machine.run("down")


@pytest.mark.timing(why="the cliff is dated to half a second")
def test_a_cliff_raises_a_critical_alert_that_stands_in_the_journal(machine: Machine) -> None:
    path = machine.directory / "falls.yaml"
    path.write_text(json.dumps(WORKLOAD))
    done = machine.run("run", "start", str(path), "--target", f"synthetic:{RUN_ID}", "--id", RUN_ID)
    assert done.returncode == 0, done.stderr
    journal = machine.state / "runs" / RUN_ID

    [finding] = wait_until(partial(events_of, journal, EventType.FINDING, "cliff"), "the finding")
    assert finding.detail["series"] == "publish.p99"
    assert finding.detail["onset"] == pytest.approx(load_start(journal) + 33, abs=0.5)
    assert finding.detail["ratio"] == pytest.approx(50, rel=0.1)

    [alert] = wait_until(partial(events_of, journal, EventType.ALERT, "CliffwatchLatencyCliff"), "the page")
    assert alert.at >= finding.at
    assert (alert.detail["status"], alert.detail["severity"]) == ("firing", "critical")
    labels = {name: alert.detail["labels"][name] for name in ("run_id", "operation", "layer")}
    assert labels == {"run_id": RUN_ID, "operation": "publish", "layer": "client"}
    sentences = {finding.detail["summary"]}
    sentences |= {event.detail["summary"] for event in events_of(journal, EventType.NOTE, "finding_updated")}
    assert alert.detail["description"] in {f"{sentence} It is run {RUN_ID}." for sentence in sentences}
    [active] = machine.query(f'cliffwatch_finding_active{{run_id="{RUN_ID}", kind="cliff"}} == 1')
    assert active["metric"]["quantile"] == "0.99"
    assert not events_of(journal, EventType.NOTE, "detection_failed")
    fired = {event.name for event in events_of(journal, EventType.ALERT)}
    assert not fired & {"CliffwatchLatencyStep", "CliffwatchLatencyDrift", "CliffwatchLatencySpikes"}
