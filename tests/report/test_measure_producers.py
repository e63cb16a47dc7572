"""Every figure that a cause is weighed by has a producer, which works here: docs/causes.md names the figures."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from testkit.captured_host import Ticking, captured_interval
from testkit.loops import command, loop_drive
from testkit.recorded_runs import JournalPlan, make_journal
from testkit.storage_engine import load_of, run
from tests.docs.test_tables import table

from cliffwatch.analysis.causes import Measures
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.base.histogram import Histogram
from cliffwatch.machine.sysfs import device_number
from cliffwatch.model.window import EngineWindow
from cliffwatch.report.collect import Collected, collect
from cliffwatch.report.measures import compare_around
from cliffwatch.telemetry.catalogue import LAYER_SERIES, SERIES
from cliffwatch.telemetry.reader import Samples, Telemetry
from cliffwatch.worker.device_io import DeviceIo

NAME = re.compile(r"`([a-z0-9_.:]+)`")
#: What a layer's mean and a window's length come from, and no measure.
NO_MEASURE = {
    "8:0.read_milliseconds",
    "8:0.read_operations",
    "device_read_milliseconds",
    "measured_seconds",
    *LAYER_SERIES,
}


def weighed() -> dict[str, set[str]]:
    """By measure, the names that docs/causes.md gives for it."""
    rows = table("causes.md", "measure", "from windows", "from telemetry")
    # The cells have lost the first and the last of their quotes.
    return {measure: {name for cell in cells for name in NAME.findall(f"`{cell}`")} for measure, cells in rows.items()}


def figures(window: EngineWindow) -> set[str]:
    return set(window.counters) | set(window.gauges)


class Asked(dict[str, Any]):
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


class AskedTelemetry(Telemetry):
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
        replace(window, counters=Asked(window.counters, names), gauges=Asked(window.gauges, names))
        for window in run.windows
    ]
    watched = replace(run, windows=windows, telemetry=AskedTelemetry(names))
    finding = Finding(FindingKind.CLIFF, windows[20].start, f"{operation}.p99", 0.001, 0.01, 10.0, 0.9)
    compare_around(watched, finding, operation)
    return names


def test_the_figures_that_are_read_are_those_of_the_table(tmp_path: Path) -> None:
    stated = weighed()
    assert set(stated) == {each.name for each in fields(Measures)}
    drive = {"name": "nvme0n1", "major_minor": "8:0", "serial": "S1"}
    facts = {"target": {"kind": "directory"}, "drives": [drive]}
    some = {name: 1 for names in stated.values() for name in names if not name.endswith(("_ratio", "_seconds"))}
    plan = JournalPlan(
        windows=40,
        facts=facts,
        latency=lambda index: {
            "write": Histogram.from_values({1_000_000: 9}),
            "read": Histogram.from_values({2_000: 9}),
        },
    )
    asked: set[str] = set()
    one_drive = {name: count for name, count in some.items() if not name.startswith("8:0.")}
    # With figures one way through the code, without them the other.
    for number, counters in enumerate((lambda index: some, lambda index: one_drive, None)):
        directory = make_journal(tmp_path / str(number), replace(plan, counters=counters))
        for operation in ("write", "read"):
            asked |= asked_of(collect(directory), operation)
    assert asked - NO_MEASURE == set().union(*stated.values()) - NO_MEASURE


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
    # Its own test holds these tables against what the engine counts.
    return names | kafka("counter", "counts") | kafka("gauge", "meaning")


def kafka(*headings: str) -> set[str]:
    return {name for cell in table("engines/kafka.md", *headings) for name in NAME.findall(f"`{cell}`")}


def test_every_figure_that_a_cause_is_weighed_by_is_produced(produced: Iterable[str]) -> None:
    known = {*produced, *(series.name for series in SERIES)}
    assert {measure: sorted(names - known) for measure, names in weighed().items() if names - known} == {}
