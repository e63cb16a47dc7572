"""Every figure that a cause is weighed by has a producer, which works here: docs/causes.md names the figures."""

import re
import urllib.request
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from testkit.captured_host import Ticking, captured_interval
from testkit.checkout import ROOT
from testkit.loops import command, loop_drive
from testkit.ports import free_port
from testkit.recorded_runs import JournalPlan, make_journal
from testkit.storage_engine import load_of, run
from tests.docs.tables import table

from cliffwatch.analysis.causes import Measures
from cliffwatch.analysis.causes.evidence import RESTART_EVENTS
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.journal_series import EXPLAINING, LEADER_EVENTS
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.pgbench.readings import TOTALS, Reading, Statistics
from cliffwatch.machine.sysfs import device_number
from cliffwatch.model.database import SAMPLES
from cliffwatch.model.settings import read_settings
from cliffwatch.model.window import DRIVES_SPAN, EngineWindow
from cliffwatch.part.device_io import DeviceIo
from cliffwatch.report.collect import Collected, collect
from cliffwatch.report.measures import compare_around
from cliffwatch.stack import processes
from cliffwatch.stack.components import NODE_EXPORTER
from cliffwatch.telemetry.catalogue import LAYER_SERIES, SERIES
from cliffwatch.telemetry.reader import Samples, Telemetry

NAME = re.compile(r"`([a-z0-9_.:]+)`")
#: The measure that is made of events, and of no figure.
EVENTS = "nearby_events"
#: Over which time all the others are.
SPANS = {"span_before", "span_after"}
#: Expositions of the real exporters that tests of theirs hold to the letter.
DRIVE_EXPOSITION = ROOT / "tests/exporters/drive/exposition.txt"
#: What a layer's mean and a window's length come from, and no measure.
NO_MEASURE = {
    "8:0.read_milliseconds",
    "8:0.read_operations",
    "device_read_milliseconds",
    DRIVES_SPAN,
    "measured_seconds",
    *LAYER_SERIES,
}


def weighed() -> dict[str, set[str]]:
    """By measure, the figures that docs/causes.md gives for it."""
    return {measure: names for measure, names in stated().items() if measure != EVENTS}


def stated() -> dict[str, set[str]]:
    """By measure, the names that docs/causes.md gives for it."""
    rows = table("causes.md", "measure", "from windows", "from telemetry")
    # The cells have lost the first and the last of their quotes.
    return {measure: {name for cell in cells for name in NAME.findall(f"`{cell}`")} for measure, cells in rows.items()}


def figures(window: EngineWindow) -> set[str]:
    return set(window.counters) | set(window.gauges)


class RecordingDict(dict[str, Any]):
    """Counters or gauges of a window that note which of them are asked for."""

    def __init__(self, figures: Mapping[str, float], names: set[str]) -> None:
        super().__init__(figures)
        self.names = names

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


class RecordingTelemetry(Telemetry):
    """Telemetry without a series that notes which are asked for."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(10.0, 0.0, 0.0, {}, (), ())
        object.__setattr__(self, "names", names)

    def of(self, name: str) -> tuple[Samples, ...]:
        self.names.add(name)  # type: ignore[attr-defined] # set above, since the class is frozen
        return ()


def asked_of(run: Collected, operation: str) -> set[str]:
    names: set[str] = set()
    windows = [
        replace(window, counters=RecordingDict(window.counters, names), gauges=RecordingDict(window.gauges, names))
        for window in run.windows
    ]
    watched = replace(run, windows=windows, telemetry=RecordingTelemetry(names))
    finding = Finding(FindingKind.CLIFF, windows[20].start, f"{operation}.p99", 0.001, 0.01, 10.0, 0.9)
    compare_around(watched, finding, operation)
    return names


def test_the_figures_that_are_read_are_those_of_the_table(tmp_path: Path) -> None:
    assert set(stated()) == {each.name for each in fields(Measures) if each.name not in SPANS}
    figures_stated = set().union(*weighed().values())
    drive = {"name": "nvme0n1", "major_minor": "8:0", "serial": "S1"}
    facts = {"target": {"kind": "directory"}, "drives": [drive]}
    some = {name: 1 for name in figures_stated - {SAMPLES} if not name.endswith(("_ratio", "_seconds"))}
    plan = JournalPlan(
        windows=40,
        facts=facts,
        latency=lambda index: {
            "write": Histogram.from_values({1_000_000: 9}),
            "read": Histogram.from_values({2_000: 9}),
        },
    )
    asked: set[str] = set()
    of_server = some | {SAMPLES: 1}
    one_drive = {name: count for name, count in some.items() if not name.startswith("8:0.")}
    # With figures one way through the code, without them the other.
    for number, counters in enumerate((lambda index: some, lambda index: one_drive, lambda index: of_server, None)):
        directory = make_journal(tmp_path / str(number), replace(plan, counters=counters))
        for operation in ("write", "read"):
            asked |= asked_of(collect(directory), operation)
    assert asked - NO_MEASURE == figures_stated - NO_MEASURE


@pytest.fixture(scope="module")
def produced(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What the storage engine, the worker's readings of host and drives, and Kafka's clients put into windows."""
    directory = tmp_path_factory.mktemp("produced")
    names: set[str] = set()
    for window in run(load_of(), directory / "load", 1).windows:
        names |= figures(window)
    host = captured_interval(directory)
    names |= {*host.counters, *host.gauges}
    with loop_drive(directory / "a.img") as first, loop_drive(directory / "b.img") as second:
        numbers = [str(device_number(drive.node)) for drive in (first, second)]
        device_io = DeviceIo(numbers, Ticking())
        command("dd", "if=/dev/zero", f"of={first.node}", "bs=64K", "count=64", "oflag=direct,sync")
        command("blkdiscard", first.node)
        drives = device_io.since_last()
    names |= {name.replace(f"{numbers[0]}.", "8:0.") for name in (*drives.counters, *drives.gauges)}
    return names | counted_by_kafka() | counted_by_pgbench()


def counted_by_pgbench() -> set[str]:
    """What the engine adds to a window of what it read of the server."""
    statistics = Statistics(times_flushes=True)
    statistics.add(Reading(0.0, dict.fromkeys(TOTALS, 0), "0/1", 0.0, 1))
    return set(statistics.counters())


def counted_by_kafka() -> set[str]:
    """What a window of Kafka's engine holds: a test beside it holds the documentation's tables to these very names."""
    source = (ROOT / "load/kafka/src/names.rs").read_text(encoding="utf-8")
    found: set[str] = set()
    for kind in ("Counter", "Gauge"):
        listed = re.search(rf"^    {kind}:\n((?:    \w+ = \"\w+\",\n)+)", source, re.MULTILINE)
        assert listed is not None, kind
        found |= set(re.findall(r"\"(\w+)\"", listed[1]))
    return found


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The series of telemetry whose metric one of the exporters shows."""
    exposed = names_in(DRIVE_EXPOSITION.read_text(encoding="utf-8")) | names_in(scrape_of_the_host(tmp_path_factory))
    return {
        series.name
        for series in SERIES
        if (metric := re.search(r"\((\w+)\{", series.expression)) and metric[1] in exposed
    }


def names_in(exposition: str) -> set[str]:
    return set(re.findall(r"^(\w+)[{ ]", exposition, re.MULTILINE))


def scrape_of_the_host(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What node_exporter shows of this machine, with the arguments that it has in the stack."""
    settings = read_settings(state_directory=tmp_path_factory.mktemp("node"), node_exporter_port=free_port())
    (started,) = processes.start(settings, (NODE_EXPORTER,), SystemClock())
    try:
        assert started.reason == ""
        with urllib.request.urlopen(f"http://{NODE_EXPORTER.address(settings)}/metrics", timeout=30) as answer:
            text: str = answer.read().decode()
            return text
    finally:
        processes.stop(settings, SystemClock())


def test_every_figure_that_a_cause_is_weighed_by_is_produced(produced: set[str], collected: set[str]) -> None:
    known = produced | collected
    assert {measure: sorted(names - known) for measure, names in weighed().items() if names - known} == {}


def events_of_kafka() -> set[str]:
    """Names of events that its engine's source reports."""
    call = re.compile(r"\.(?:report|report_recurring)\(\s*\"(\w+)\"")
    sources = (ROOT / "load/kafka/src").rglob("*.rs")
    return {
        name for path in sources for name in call.findall(path.read_text(encoding="utf-8").split("#[cfg(test)]")[0])
    }


def events_of_worker() -> set[str]:
    """What it and its part record of the engine, and its reasons of gaps."""
    places = ("part/load.py", "coordinator/load.py")
    source = "".join((ROOT / "service/cliffwatch" / place).read_text(encoding="utf-8") for place in places)
    recorded = re.findall(r"record_event\(EventType\.ENGINE, \"(\w+)\"", source)
    return {f"engine_{name}" for name in recorded} | set(re.findall(r"_gap_reason = \"(\w+)\"", source))


def test_every_event_that_is_read_is_produced() -> None:
    assert stated()[EVENTS] == {*RESTART_EVENTS, *LEADER_EVENTS}
    assert set(LEADER_EVENTS) <= events_of_kafka()
    assert set(RESTART_EVENTS) <= events_of_worker()
    assert events_of_kafka() | {name.removeprefix("engine_") for name in events_of_worker()} >= EXPLAINING
