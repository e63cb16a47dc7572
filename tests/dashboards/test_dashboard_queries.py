"""Every query of every panel, sent to a real Prometheus that watched real runs."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from dashboards.builder.compare import NONE, SLOTS, ZERO
from tests.dashboards.documents import DIRECTORY, PATHS, PanelQuery, choices_by_hand, load, queries, variables
from tests.dashboards.watched import (
    FAR,
    FAR_HOST,
    FIO,
    RECORDED,
    RUNS,
    SCRAPE_SECONDS,
    SYNTHETIC,
    Watched,
    watched_runs,
)

#: Four scrapes, as Grafana chooses it for short spans, and more than the runs take.
INTERVALS = {"__rate_interval": "4s", "__interval": "1s", "__range": "5m"}
ALL_QUERIES = [(path, query) for path in PATHS for query in queries(load(path))]
COMPARE = DIRECTORY / "compare.json"


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched_runs(tmp_path_factory.mktemp("watched")) as runs:
        yield runs


def choices(path: Path, watched: Watched, run: str, *others: str) -> dict[str, list[str]]:
    """What each variable can be for the run; Grafana asks them in the order of the dashboard.

    Where several runs are compared, the first and the third are this one, the second and the fourth another, which has
    operations of the same names; unless they are given.
    """
    document = load(path)
    chosen: dict[str, list[str]] = {name: [value] for name, value in choices_by_hand(document).items()}
    other = RECORDED if run == FIO else FIO
    runs = dict(zip(SLOTS, (run, *(others or (other, run, other))), strict=True))
    for variable in variables(document):
        values = watched.values_of(variable, {known: "|".join(options) for known, options in chosen.items()})
        if variable.name in runs:
            assert runs[variable.name] in values
            values = [runs[variable.name]]
        chosen[variable.name] = values
    return chosen


def renderings(path: Path, query: PanelQuery, chosen: dict[str, list[str]]) -> Iterator[str]:
    """The query as it is sent: for each value of variables that have but one at a time, or of a repeated panel."""
    several = {variable.name for variable in variables(load(path)) if variable.several} - {query.repeat}
    joined = {name: ["|".join(options)] if name in several else options for name, options in chosen.items()}
    asked = [name for name in joined if f"${name}" in query.expression or f"${{{name}}}" in query.expression]
    for values in itertools.product(*(joined[name] for name in asked)):
        yield query.rendered(dict(zip(asked, values, strict=True)) | INTERVALS)


def opens_at(path: Path) -> float | None:
    """Where the dashboard begins, if it has a time of its own."""
    begin = load(path)["time"]["from"]
    return None if begin.startswith("now") else datetime.fromisoformat(begin).timestamp()


def test_the_variables_offer_what_the_run_has(watched: Watched) -> None:
    for name in ("run", "layers", "drive"):
        chosen = choices(DIRECTORY / f"{name}.json", watched, FIO)
        assert chosen["instance"] == ["local"], name
        assert any(device.startswith("loop") for device in chosen["device"]), name
        if name != "run":
            assert {"read", "write"} <= set(chosen["request"])
    assert choices(DIRECTORY / "run.json", watched, FIO)["operation"] == ["write", "sync", "read"]
    assert choices(DIRECTORY / "run.json", watched, SYNTHETIC)["device"] == []
    of_run, of_none = (choices(DIRECTORY / "drive.json", watched, run)["device"] for run in (FIO, SYNTHETIC))
    assert "nvme0n1" not in of_run, "drives follow the run"
    assert "nvme0n1" in of_none, "of a run without a drive, those that say something of themselves"


@pytest.mark.parametrize("name", ["run", "compare"])
def test_the_newest_run_is_offered_first_and_live_ones_before_that(watched: Watched, name: str) -> None:
    (run,) = (each for each in variables(load(DIRECTORY / f"{name}.json")) if each.name == "run")
    offered = watched.values_of(run, {})
    starts = "max by (run_id) (cliffwatch_run_start_timestamp_seconds)"
    live = watched.values_of(replace(run, query=PanelQuery("live runs", starts)), {}) if name == "run" else []
    by_start = {
        series["metric"]["run_id"]: max(float(value) for _, value in series["values"])
        for series in watched.series(starts)
    }
    assert len(offered) > 2
    assert set(offered) == set(by_start)
    order = [(each in live, by_start[each]) for each in offered]
    assert order == sorted(order, reverse=True)
    assert len(set(order)) > 1


def test_drives_of_other_hosts_are_shown_by_what_their_own_exporters_say(watched: Watched) -> None:
    ours = choices(DIRECTORY / "drive.json", watched, FIO)["device"]
    for name, panels in (
        ("drive", ("Time of one write and one read A", "Size of one write and one read A")),
        ("layers", ("Operations of client and drives C", "Throughput of client and drives C")),
    ):
        path = DIRECTORY / f"{name}.json"
        chosen = choices(path, watched, FAR)
        assert chosen["instance"] == [FAR_HOST], name
        assert chosen["device"] == [device for device in ours if device.startswith("loop")], name
        found = {query.where for query in queries(load(path))}
        assert set(panels) <= found, found
        for query in queries(load(path)):
            if query.where in panels:
                answers = [watched.series(each) for each in renderings(path, query, chosen)]
                assert any(line["values"] for answer in answers for line in answer), query.where


@pytest.mark.parametrize(("path", "query"), ALL_QUERIES, ids=lambda each: getattr(each, "where", None))
def test_a_query_is_of_metrics_that_exist_and_is_answered_with_data(
    path: Path, query: PanelQuery, watched: Watched
) -> None:
    """Of one of the runs: fio has no schedule to be behind of, and the synthetic engine has no drive."""
    asked = query.metrics()
    assert asked
    assert not asked - watched.metrics, query.where
    sent = []
    for run in RUNS:
        for expression in renderings(path, query, choices(path, watched, run)):
            sent.append(expression)
            answer = watched.series(expression, opens_at(path))
            if any(not math.isnan(float(value)) for one in answer for _, value in one["values"]):
                return
    raise AssertionError(f"no data: {sent}")


def test_runs_are_compared_from_where_their_loads_began(watched: Watched) -> None:
    """The clock of the time axis reads how long each run has gone on: its phases begin when its journal says."""
    chosen = choices(COMPARE, watched, FIO, SYNTHETIC, FIO, FIO)
    (phases,) = (query for query in queries(load(COMPARE)) if query.where == "Phases of the runs B")
    (line,) = watched.series(next(renderings(COMPARE, phases, chosen)), float(ZERO))
    assert line["metric"]["run_id"] == SYNTHETIC
    numbers = {int(at) - ZERO: value for at, value in line["values"]}
    # Moved by whole seconds, and scraped every second after the worker moved it.
    begins = min(elapsed for elapsed, value in numbers.items() if value == "4")
    assert 9 <= begins <= watched.soak_begins_seconds + 3 * SCRAPE_SECONDS, numbers


def test_comparison_variables_do_not_depend_on_the_query_time(watched: Watched) -> None:
    """Versions of Grafana differ in whether they evaluate variables now or at the end of what is shown."""
    chosen = dict.fromkeys(SLOTS, FIO)
    for variable in variables(load(COMPARE)):
        now = watched.values_of(variable, chosen)
        assert now
        assert watched.values_of(variable, chosen, at=ZERO + 3600.0) == now, variable.name


def test_a_run_that_is_not_chosen_is_compared_with_nothing_and_is_no_error(watched: Watched) -> None:
    chosen = choices(COMPARE, watched, FIO, FIO, FIO, NONE)
    for query in queries(load(COMPARE)):
        if "${run_4}" in query.expression and "${run}" not in query.expression:
            for expression in renderings(COMPARE, query, chosen):
                assert watched.series(expression, float(ZERO)) == []


def test_host_bytes_of_a_run_are_counted_from_its_start(watched: Watched) -> None:
    path = DIRECTORY / "drive.json"
    chosen = choices(path, watched, FIO)
    chosen["device"] = [device for device in chosen["device"] if device.startswith("loop")]
    (query,) = (query for query in queries(load(path)) if query.where == "Host bytes of this run A")
    (line,) = watched.series(next(renderings(path, query, chosen)))
    values = [float(value) for _, value in line["values"]]
    written = 16 * 1024 * 50 * 15
    assert values == sorted(values)
    assert written / 2 < values[-1] - values[0]
