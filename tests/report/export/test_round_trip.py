"""A run that is exported for analysis and analysed again gives the findings and the verdict of its journal."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testkit.recorded_runs import GapEvent, JournalPlan, at_window, make_journal

from cliffwatch.base.histogram import Histogram
from cliffwatch.cli import analyze
from cliffwatch.journal import Event, EventType
from cliffwatch.report.export.formats import write_analyzable
from cliffwatch.report.export.window_table import table_of

WINDOWS, CLIFF, OPERATIONS = 420, 240, 200
UNDECLARED = JournalPlan()
LIMIT = "p99 <= 20ms over any 1m"
ONSET_WINDOWS = 15


@dataclass(frozen=True)
class Kind:
    """How a recorded run differs from a healthy one: each operation's p99 by window, the drives' and what is around."""

    name: str
    p99: Callable[[int], dict[str, float]]
    device_seconds: Callable[[int], dict[str, float]] = lambda index: {"": 0.0002}
    plan: JournalPlan = UNDECLARED
    verdict: str = "pass"


def times(factor: float, since: int = CLIFF, until: int = WINDOWS) -> Callable[[int], float]:
    return lambda index: factor if since <= index < until else 1.0


def operations(**factors: Callable[[int], float]) -> Callable[[int], dict[str, float]]:
    return lambda index: {name: 0.004 * factor(index) for name, factor in factors.items()}


def devices(**factors: Callable[[int], float]) -> Callable[[int], dict[str, float]]:
    return lambda index: {name.removeprefix("_"): 0.0002 * factor(index) for name, factor in factors.items()}


HEALTHY = times(1.0)
PHASES = JournalPlan(warm_up_windows=30, baseline_windows=60)
DIED = Event(at_window(PHASES, 200) + 3.7, EventType.ENGINE, "died", {"message": "exit status 1"})
KINDS = (
    Kind("healthy", operations(append=HEALTHY), plan=PHASES),
    Kind("cliff", operations(append=times(40)), devices(_=times(30)), PHASES, "degraded"),
    Kind("without phases", operations(publish=times(12)), devices(_=times(9)), UNDECLARED, "degraded"),
    Kind("step", operations(append=times(1.4)), devices(_=times(1.4)), PHASES, "degraded"),
    Kind(
        "another operation only",
        operations(append=HEALTHY, sync=times(30), read=HEALTHY),
        devices(_=times(20)),
        PHASES,
        "degraded",
    ),
    Kind(
        "an operation a little later",
        operations(append=times(30), sync=times(25, CLIFF + 6)),
        devices(_=times(20)),
        PHASES,
        "degraded",
    ),
    Kind(
        "one drive of two",
        operations(write=times(20)),
        devices(_=times(10), a=HEALTHY, b=times(20)),
        PHASES,
        "degraded",
    ),
    Kind("a drive that no client felt", operations(append=HEALTHY), devices(_=times(30)), PHASES),
    Kind(
        "gaps",
        operations(append=times(40)),
        devices(_=times(30)),
        replace(PHASES, missing=(120, 121), gaps=(GapEvent(120, 121, "engine_restart"),)),
        "degraded",
    ),
    Kind(
        "much not measured",
        operations(append=HEALTHY),
        plan=replace(PHASES, missing=tuple(range(300, 330))),
        verdict="invalid",
    ),
    Kind("the warm-up not measured", operations(append=HEALTHY), plan=replace(PHASES, missing=tuple(range(2, 31)))),
    Kind("a restart that explains", operations(append=times(8, 201, 260)), plan=replace(PHASES, events=(DIED,))),
    Kind(
        "a limit and no finding",
        operations(append=times(9, 300, 303)),
        plan=replace(PHASES, limits=(LIMIT,)),
        verdict="degraded",
    ),
    Kind(
        "half of what was asked for",
        operations(append=HEALTHY),
        plan=replace(PHASES, gauges=lambda index: {"requested_operations_per_second": 2000.0}),
        verdict="degraded",
    ),
    Kind("came back", operations(append=times(40, 120, 340)), devices(_=times(30, 120, 340)), PHASES, "degraded"),
)


def recorded(directory: Path, kind: Kind) -> Path:
    noise = random.Random(5)

    def latency(index: int) -> dict[str, Histogram]:
        found = {}
        for place, (name, p99) in enumerate(kind.p99(index).items()):
            spread = np.random.default_rng(11 * index + place)
            values = spread.lognormal(np.log(p99 / 3 * noise.lognormvariate(0, 0.03)), 0.45, OPERATIONS)
            found[name] = Histogram()
            found[name].record_many(np.rint(values * 1e9).astype(np.int64))
        return found

    def counters(index: int) -> dict[str, int]:
        body = {"operations": 9000, "written_bytes": 4096, "device_written_bytes": 4096}
        for name, seconds in kind.device_seconds(index).items():
            prefix = "device_" if not name else f"259:{ord(name) - ord('a')}."
            body |= {f"{prefix}write_operations": 9000, f"{prefix}write_milliseconds": round(9000 * seconds * 1000)}
        return body

    facts = {"target": {"kind": "directory"}, "drives": [{"name": "nvme0n1", "major_minor": "259:0", "serial": "S1"}]}
    plan = replace(
        kind.plan, windows=WINDOWS, target="directory:/data", facts=facts, latency=latency, counters=counters
    )
    return make_journal(directory, plan)


def exported(directory: Path, journal: Path) -> Path:
    path = directory / "run.csv"
    with path.open("wb") as output:
        write_analyzable(table_of(journal), output)
    return path


def reported(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What a finding says: what it is, when and of what, and how much."""
    names = ("kind", "series", "onset_seconds", "until_seconds", "baseline", "level", "ratio")
    return [tuple(each[name] for name in names) for each in found]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_export_of_a_run_gives_the_findings_and_the_verdict_of_its_journal(tmp_path: Path, kind: Kind) -> None:
    journal = recorded(tmp_path / "run", kind)
    table = exported(tmp_path, journal)
    for mode in analyze.Mode:
        of_journal, of_table = analyze._of_journal(journal, mode), analyze._of_table(table, None, mode)
        assert reported(of_table.findings) == reported(of_journal.findings)
        assert of_table.verdict == of_journal.verdict == kind.verdict


@pytest.mark.parametrize("mode", analyze.Mode)
def test_where_no_client_was_measured_a_slow_drive_degrades(tmp_path: Path, mode: analyze.Mode) -> None:
    journal = recorded(tmp_path / "run", Kind("a drive alone", operations(), devices(_=times(30)), PHASES))
    assert analyze._of_journal(journal, mode).verdict == "degraded"


@pytest.mark.parametrize("kind", [each for each in KINDS if each.verdict != "invalid"], ids=lambda kind: kind.name)
def test_live_and_the_whole_run_agree_on_what_there_is(tmp_path: Path, kind: Kind) -> None:
    journal = recorded(tmp_path / "run", kind)
    live, whole = (analyze._of_journal(journal, mode).findings for mode in (analyze.Mode.ONLINE, analyze.Mode.OFFLINE))

    def what(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        worse = [each for each in found if each["kind"] != "recovery"]
        return [(each["kind"], each["series"], each["cause"]["name"]) for each in worse]

    assert what(live) == what(whole)
    for one, other in zip(live, whole, strict=False):
        assert one["onset_seconds"] == pytest.approx(other["onset_seconds"], abs=ONSET_WINDOWS * 10)
