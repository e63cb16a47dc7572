"""Every query of every panel, sent to a real Prometheus that watched real runs."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dashboards.documents import PATHS, PanelQuery, load, queries, variables
from tests.dashboards.watched import RUNS, Watched, watched_runs

#: Four scrapes, as Grafana chooses it for short spans.
RATE_INTERVAL = "4s"
ALL_QUERIES = [(path, query) for path in PATHS for query in queries(load(path))]


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched_runs(tmp_path_factory.mktemp("watched")) as runs:
        yield runs


def choices(path: Path, watched: Watched, run: str) -> dict[str, list[str]]:
    """What each variable can be for the run; Grafana asks them in the order of the dashboard."""
    chosen: dict[str, list[str]] = {"run": [run]}
    for name, (series, label) in variables(load(path)).items():
        values = {known: "|".join(options) for known, options in chosen.items()}
        if name != "run":
            chosen[name] = watched.label_values(series.rendered(values), label)
        else:
            assert run in watched.label_values(series.expression, label)
    return chosen


def renderings(query: PanelQuery, chosen: dict[str, list[str]]) -> Iterator[str]:
    """The query as it is sent: once for each value of the variable that its panel is repeated for."""
    values = {name: "|".join(options) for name, options in chosen.items()} | {"__rate_interval": RATE_INTERVAL}
    for value in chosen[query.repeat] if query.repeat else [""]:
        yield query.rendered(values | ({query.repeat: value} if query.repeat else {}))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_variables_offer_what_the_run_has(path: Path, watched: Watched) -> None:
    chosen = choices(path, watched, "with-fio")
    assert chosen["instance"] == ["local"]
    assert [name for name in chosen["device"] if name.startswith("loop")] == chosen["device"] != []
    assert chosen["operation"] == ["read", "sync", "write"]
    assert {"read", "write"} <= set(chosen["request"])
    assert choices(path, watched, "synthetic")["device"] == []


@pytest.mark.parametrize(("path", "query"), ALL_QUERIES, ids=lambda each: getattr(each, "where", None))
def test_a_query_is_answered_with_data(path: Path, query: PanelQuery, watched: Watched) -> None:
    """By one of the runs: fio has no schedule to be behind of, and the synthetic engine has no drive."""
    answers = {}
    for run in RUNS:
        for expression in renderings(query, choices(path, watched, run)):
            answers[expression] = watched.series(expression)
    values = [float(value) for series in answers.values() for one in series for _, value in one["values"]]
    assert [value for value in values if not math.isnan(value)], list(answers)


@pytest.mark.parametrize(("path", "query"), ALL_QUERIES, ids=lambda each: getattr(each, "where", None))
def test_every_metric_of_a_query_is_one_that_exists(path: Path, query: PanelQuery, watched: Watched) -> None:
    exist = set(watched.label_values('{__name__!=""}', "__name__"))
    asked = query.metrics()
    assert asked
    assert not asked - exist, query.where
