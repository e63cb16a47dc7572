"""Runs of real programs that a machine's owner allowed, executed by real workers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from testkit.kafka_broker import start_cluster, tool
from testkit.waiting import wait_until
from testkit.worker_runs import events, execute_run, queue_run, start_worker
from tests.engines.command.commands import DB_BENCH, SYSBENCH, allow, definition

from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader, JournalWindow, files
from cliffwatch.model.target import AnyTarget, BrokerTarget, DirectoryTarget, ObservedTarget

#: Makes 100 operations a second, of 2 ms each, and stalls for a second after three: what was due then is late.
STALLING = """
import sys, time
due = start = time.time()
while True:
    due += 0.01
    time.sleep(max(0.0, due - time.time()))
    if 3.0 <= time.time() - start < 3.5:
        time.sleep(1.0)
        start -= 10
    print(due, (time.time() - due) * 1000 + 2, flush=True)
"""
SECRET = "CLIFFWATCH_DATABASE_URL"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the workers that this test starts."""
    monkeypatch.setenv("CLIFFWATCH_STATE_DIRECTORY", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


def queue(state: Path, name: str, target: AnyTarget, arguments: dict[str, Any] | None = None, **changes: Any) -> Path:
    load = {"command": name, "arguments": arguments or {}}
    given = {"window": "1s", "phases": {"soak": "6s"}} | changes
    return queue_run(state / "runs" / "made", target=target, engine="command", load=load, **given)


def windows_of(directory: Path) -> list[JournalWindow]:
    return list(JournalReader(directory).windows())


def target_in(state: Path) -> DirectoryTarget:
    place = state.parent / "target"
    place.mkdir()
    return DirectoryTarget(path=str(place))


@pytest.mark.gate(why="one real program is run before every merge")
def test_sysbench_on_a_directory(state: Path) -> None:
    allow(state, "sysbench", SYSBENCH)
    target = target_in(state)
    directory = queue(state, "sysbench", target, {"rate": 40})
    execute_run(directory)
    windows = windows_of(directory)
    assert len(windows) == 6
    assert sum(window.counters["operations"] for window in windows) == pytest.approx(240, rel=0.35)
    assert all(window.gauges["requested_operations_per_second"] == 40 for window in windows)
    known = [window.latency["sync"]["p99"] for window in windows if "sync" in window.latency]
    assert len(known) >= 4
    assert all(value is not None and 0 < value < 1 for value in known)
    assert list(Path(target.path).iterdir()) == [], "what the command made is removed"
    facts = json.loads((directory / files.FACTS).read_text())
    assert "--rate=40" in facts["engine"]["command"]
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert "p99" in report["quantiles"]["sync"]["quantiles"]


def test_db_bench_on_a_directory(state: Path) -> None:
    allow(state, "rocksdb", DB_BENCH)
    directory = queue(state, "rocksdb", target_in(state))
    execute_run(directory)
    windows = windows_of(directory)
    assert len(windows) == 6
    rates = sorted(window.counters["operations"] for window in windows)
    assert rates[3] > 3000, "2 MB/s are 17,000 entries of 116 bytes a second"


def test_the_producer_test_of_kafka_on_a_broker(state: Path) -> None:
    words = tool("org.apache.kafka.tools.ProducerPerformance")
    arguments = ["--topic", "perf", "--num-records", "100000000", "--record-size", "1024", "--throughput", "{rate}"]
    producer = ["--reporting-interval", "1000", "--producer-props", "bootstrap.servers={servers}"]
    pattern = r"(?P<operations>[0-9]+) records sent, .* ms avg latency, (?P<max>[0-9.]+) ms max latency"
    text = definition(
        target="broker",
        command=[*words, *arguments, *producer],
        arguments={"rate": {"least": 1, "most": 1000000}},
        rate="{rate}",
        output={"format": "progress", "pattern": pattern, "unit": "milliseconds"},
        operation="publish",
    )
    cluster = start_cluster(state.parent / "broker")
    try:
        cluster.create_topic("perf", 4)
        allow(state, "perf", text)
        target = BrokerTarget(bootstrap_servers=[cluster.bootstrap])
        directory = queue(state, "perf", target, {"rate": 500}, window="2s", phases={"warm_up": "4s", "soak": "8s"})
        execute_run(directory)
    finally:
        cluster.stop()
    soak = [window for window in windows_of(directory) if window.phase == "soak"]
    assert len(soak) == 4
    assert sum(window.counters["operations"] for window in soak) == pytest.approx(4000, rel=0.3)
    assert all((window.latency["publish"]["max"] or 0) > 0 for window in soak)


def test_a_stall_of_a_second_is_in_the_percentiles_of_what_was_due(state: Path) -> None:
    script = state / "stalling.py"
    script.write_text(STALLING)
    allow(state, "stalling", definition(command=[sys.executable, str(script)]))
    directory = queue(state, "stalling", ObservedTarget(name="demo"), phases={"soak": "8s"})
    execute_run(directory)
    windows = windows_of(directory)
    assert len(windows) == 8
    assert sum(window.counters["operations"] for window in windows) == pytest.approx(800, rel=0.1)
    stalled = max(windows, key=lambda window: window.latency.get("write", {}).get("max") or 0)
    assert stalled.latency["write"]["max"] == pytest.approx(1.0, abs=0.2)
    quiet = [window for window in windows if (window.latency.get("write", {}).get("max") or 9) < 0.2]
    assert len(quiet) >= 4
    merged = JournalReader(directory).merged(windows, lambda window: "load")["load"]["write"]
    # A hundredth of what was due in eight seconds is eight; a hundred came late, by up to a second.
    assert merged.percentiles_seconds([0.99])[0] == pytest.approx(0.93, abs=0.15)


def test_a_program_that_speaks_the_engine_contract(state: Path) -> None:
    load = json.dumps({"operations_per_second": 500, "time": "real"}).replace("{", "{{").replace("}", "}}")
    synthetic = [sys.executable, "-m", "cliffwatch.engines.synthetic", load, "{start}", "{stop}", "{window_seconds}"]
    allow(state, "contract", definition(command=[*synthetic, "{start}"], output={"format": "engine"}))
    directory = queue(state, "contract", ObservedTarget(name="demo"))
    execute_run(directory)
    windows = windows_of(directory)
    assert [window.counters["operations"] for window in windows] == [500] * 6


#: Prints a line of a second's work each second, into a buffer of 4 KiB.
BUFFERING = """
import os, sys, time
out = os.fdopen(1, "w", buffering=4096)
due = time.time()
while True:
    due += 0.2
    time.sleep(max(0.0, due - time.time()))
    out.write("rate: 1000.0 op/s p99: 2.1 ms".ljust(230) + "\\n")
"""


@pytest.mark.parametrize("seconds", [3, 12])
def test_a_command_that_buffers_its_output_is_no_pass(state: Path, seconds: int) -> None:
    script = state / "buffering.py"
    script.write_text(BUFFERING)
    pattern = r"rate: (?P<operations_per_second>[0-9.]+) op/s p99: (?P<p99>[0-9.]+) ms"
    output = {"format": "progress", "pattern": pattern, "unit": "milliseconds"}
    allow(state, "buffering", definition(command=[sys.executable, str(script)], output=output))
    directory = queue(state, "buffering", ObservedTarget(name="demo"), phases={"soak": f"{seconds}s"})
    execute_run(directory)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert report["verdict"]["name"] == ("failed" if seconds == 3 else "invalid")
    assert "stdbuf -oL" in report["verdict"]["reasons"][0]
    assert report["findings"] == []
    rates = [window.counters["operations"] / window.seconds for window in windows_of(directory)]
    assert all(rate == pytest.approx(1000, rel=0.2) for rate in rates), "no burst"
    if seconds == 12:
        assert {event.name for event in events(directory) if event.type == "gap"} == {"nothing_printed"}


def test_totals_that_are_taken_for_counts_fail_the_load(state: Path) -> None:
    script = "n=0; while :; do n=$((n + 10)); echo $n done; sleep 0.1; done"
    output = {"format": "progress", "pattern": "(?P<operations>[0-9]+) done"}
    allow(state, "totals", definition(command=["sh", "-c", script], output=output))
    directory = queue(state, "totals", ObservedTarget(name="demo"), phases={"soak": "4s"})
    execute_run(directory)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert report["verdict"]["name"] == "failed"
    assert "name the group operations_total" in report["verdict"]["reasons"][0]


@pytest.mark.gate(why="a report with the operator's environment is sent on to others")
def test_a_command_that_ends_early_is_started_again_and_says_so(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMETHING_OF_THE_OPERATOR", "1")
    command = ["sh", "-c", "echo nothing to do >&2; exit 3"]
    allow(state, "short", definition(command=command))
    directory = queue(state, "short", ObservedTarget(name="demo"), engine_restarts=1)
    execute_run(directory)
    assert [event.detail.get("command") for event in events(directory) if event.name == "started"] == [command, None]
    assert "SOMETHING_OF_THE_OPERATOR" not in (directory / files.REPORT_HTML).read_text()
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert "the command ended with status 3 before the load was over" in report["verdict"]["reasons"][0]
    assert not report.get("journal_faults")
    assert {gap["reason"] for gap in report["coverage"]["gaps"]} <= {"engine_restart", "load_failed"}
    died = [event.detail["message"] for event in events(directory) if event.name == "died"]
    assert len(died) == 2
    assert "the command ended with status 3 before the load was over" in died[0]
    assert "nothing to do" in died[0]
    statuses = [event.detail["status"] for event in events(directory) if event.name == "exited"]
    assert statuses == [3, 3], "its own, and not that of the program around it"


def test_a_load_that_ends_before_its_command_was_heard_says_why(state: Path) -> None:
    allow(state, "short", definition(command=["sh", "-c", "exit 7"]))
    directory = queue(state, "short", ObservedTarget(name="demo"), phases={"soak": "3s"}, engine_restarts=50)
    execute_run(directory)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert [gap["reason"] for gap in report["coverage"]["gaps"]] == ["engine_restarted"]


def test_output_printed_by_a_command_before_it_died_is_kept(state: Path) -> None:
    script = "for n in 1 2 3 4 5 6 7; do sleep 0.5; echo 50 done; done; exit 3"
    output = {"format": "progress", "pattern": "(?P<operations>[0-9]+) done"}
    allow(state, "dying", definition(command=["sh", "-c", script], output=output))
    directory = queue(state, "dying", ObservedTarget(name="demo"), engine_restarts=0)
    execute_run(directory)
    windows = windows_of(directory)
    assert len(windows) == 3
    assert sum(window.counters["operations"] for window in windows) == pytest.approx(300, rel=0.1)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert {gap["reason"] for gap in report["coverage"]["gaps"]} == {"load_failed"}
    assert "of the time until the load failed" in report["verdict"]["reasons"][1]


@pytest.mark.parametrize("restarts", [0, 9])
def test_a_command_that_was_started_again_shortly_before_the_end_fails_for_no_other_reason(
    state: Path, restarts: int
) -> None:
    """Its last process ends with the load, before it printed a line."""
    script = "sleep 1.2; echo 50 done; sleep 0.2; exit 3"
    output = {"format": "progress", "pattern": "(?P<operations>[0-9]+) done"}
    allow(state, "dying", definition(command=["sh", "-c", script], output=output))
    directory = queue(state, "dying", ObservedTarget(name="demo"), engine_restarts=restarts)
    execute_run(directory)
    report = json.loads((directory / files.REPORT_JSON).read_text())
    assert report["verdict"]["name"] == ("invalid" if restarts else "failed")
    assert not any("no line that reports" in reason for reason in report["verdict"]["reasons"])


def test_lines_that_are_not_understood_are_counted(state: Path) -> None:
    allow(state, "chatty", definition(command=["sh", "-c", "while :; do echo hello; sleep 0.2; done"]))
    directory = queue(state, "chatty", ObservedTarget(name="demo"), phases={"soak": "3s"})
    execute_run(directory)
    strange = [event.detail for event in events(directory) if event.name == "output_not_understood"]
    assert strange
    assert "hello" in strange[0]["message"]


@pytest.mark.gate(why="a secret that leaks is not found out later")
@pytest.mark.parametrize("output", ["engine", "latencies"])
def test_a_command_gets_no_secret_of_the_service(state: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.setenv(SECRET, "sqlite:////secret")
    seen = state / "seen"
    form = {"format": output} | ({"unit": "seconds"} if output == "latencies" else {})
    allow(state, "nosy", definition(command=["sh", "-c", f"env > {seen}; sleep 60"], output=form))
    execute_run(queue(state, "nosy", ObservedTarget(name="demo"), phases={"soak": "2s"}, stop_grace="1s"))
    assert "PATH=" in seen.read_text()
    assert SECRET not in seen.read_text()


@pytest.mark.parametrize("killed", ["engine", "worker"])
def test_a_command_dies_with_what_started_it(state: Path, killed: str) -> None:
    mark = f"cliffwatch-command-{os.getpid()}-{killed}"
    script = f"echo {mark} > /dev/null; while :; do echo $(date +%s) 1; sleep 0.1; done"
    allow(state, "endless", definition(command=["sh", "-c", script]))
    directory = queue(state, "endless", ObservedTarget(name="demo"), phases={"soak": "30s"}, engine_restarts=0)
    worker = start_worker(directory)
    wait_until(lambda: len(windows_of(directory)) >= 2, "windows")
    assert running(mark)
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    if killed == "engine":
        os.kill(heartbeat.engines[0].pid, signal.SIGKILL)
        assert worker.wait(60) == 0
    else:
        worker.kill()
        worker.wait()
    wait_until(lambda: not running(mark), "the command's end")


def running(mark: str) -> bool:
    """Whether a shell with this in its script is there, which is neither this process nor one that starts it."""
    found = subprocess.run(["pgrep", "-f", f"^sh -c echo {mark} "], capture_output=True, check=False)
    time.sleep(0.05)
    return found.returncode == 0
