"""A run beside earlier runs that have a label: which they are, and whether it is worse."""

from typing import Any

import pytest
from testkit import journals
from tests.api.harness import ORDER, Api

from cliffwatch.store.models import RunRow

FIGURES = {"latency": "write", "p50_seconds": 0.001, "p99_seconds": 0.004, "operations_per_second": 1000.0}
LABEL = {"release": "26.1"}


def over(api: Api, run_id: str, labels: dict[str, str] | None = None, **changes: Any) -> None:
    """A run that is over, with these figures in its report."""
    figures, verdict = changes.pop("figures", {}), changes.pop("verdict", "pass")
    directory = journals.queue(
        api.settings.runs_directory,
        run_id,
        workload=journals.synthetic_workload(**changes),
        at=journals.START - 1000 + len(api.get("/runs").json()["items"]),
    )
    journals.start(directory)
    journals.finish(directory)
    api.index(run_id)
    if labels:
        api.call("PATCH", f"/runs/{run_id}", {"labels": labels}).raise_for_status()
    with api.services.database.session() as session:
        row = session.get(RunRow, run_id)
        assert row is not None
        row.figures, row.verdict = FIGURES | figures, verdict


def compared(api: Api, run_id: str, label: str = "release") -> dict[str, Any]:
    body: dict[str, Any] = api.get(f"/runs/{run_id}/comparison", params={"label": label}).raise_for_status().json()
    return body


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    return {figure["name"]: figure["outcome"] for figure in found["figures"]}


def test_each_figure_is_held_to_that_of_the_earlier_runs(api: Api) -> None:
    for number, factor in enumerate((0.99, 1.0, 1.01)):
        over(api, f"r{number}", LABEL, figures={"p99_seconds": 0.004 * factor})
    over(api, "other")
    over(api, "new", figures={"p99_seconds": 0.006, "p50_seconds": 0.0005, "operations_per_second": 990.0})
    over(api, "later", LABEL)
    found = compared(api, "new")
    assert found["runs"] == ["r2", "r1", "r0"]
    assert outcomes(found) == {"write p50": "not_worse", "write p99": "worse", "operations": "not_worse"}
    p99 = next(figure for figure in found["figures"] if figure["name"] == "write p99")
    assert p99["ratio"] == pytest.approx(1.5, rel=0.01)
    assert p99["low"] < 1.5 < p99["high"] < 1.6
    assert found["outcome"] == "worse"
    assert found["summary"] == "worse than 3 earlier runs with the label release: write p99 ×1.5"
    assert p99["summary"] == "write p99 ×1.5 (95 %: 1.43 to 1.58): worse"
    slower = {"p99_seconds": 0.004, "p50_seconds": 0.001, "operations_per_second": 700.0}
    over(api, "slower", figures=slower)
    assert outcomes(compared(api, "slower", "release=26.1"))["operations"] == "worse"


def test_only_runs_of_the_same_load_that_were_measured_are_compared_with(api: Api) -> None:
    over(api, "good", LABEL)
    over(api, "fell", LABEL, verdict="degraded")
    over(api, "invalid", LABEL, verdict="invalid")
    over(api, "longer", LABEL, phases={"soak": "2m"})
    over(api, "faster", LABEL, load={"operations_per_second": 5})
    over(api, "another", LABEL, name="another")
    over(api, "older", {"release": "25.3"})
    over(api, "new")
    found = compared(api, "new", "release=26.1")
    assert found["runs"] == ["fell", "good"]
    assert {each["run"]: each["reason"] for each in found["left_out"]} == {
        "faster": "its load is another, by `load.operations_per_second`",
        "longer": "its load is another, by `phases.soak`",
        "invalid": "it is invalid",
    }
    assert found["outcome"] == "not_worse"
    assert found["summary"] == ("not worse than 2 earlier runs with the label release=26.1: no figure by ×1.2 or more")
    assert set(compared(api, "new", "release")["runs"]) == {"older", "fell", "good"}


@pytest.mark.parametrize(
    ("figures", "verdict", "said"),
    [
        ({}, "stopped", "inconclusive: this run is stopped"),
        ({"p99_seconds": None}, "pass", "write p99: inconclusive, it was not measured by this run"),
        ({"p99_seconds": 0.009}, "pass", "inconclusive, the earlier runs differ too much from one another"),
    ],
)
def test_an_inconclusive_comparison_states_why(api: Api, figures: dict[str, Any], verdict: str, said: str) -> None:
    over(api, "one", LABEL, figures={"p99_seconds": 0.001})
    over(api, "two", LABEL, figures={"p99_seconds": 0.1})
    over(api, "new", figures=figures, verdict=verdict)
    found = compared(api, "new")
    assert found["outcome"] == "inconclusive"
    unsaid = [figure["summary"] for figure in found["figures"] if figure["outcome"] == "inconclusive"]
    assert not any("95 %" in summary for summary in unsaid), "an interval of a factor of thousands says nothing"
    assert said in "\n".join([found["summary"], *(figure["summary"] for figure in found["figures"])])


def test_one_run_is_not_enough_and_a_run_that_goes_on_is_not_compared(api: Api) -> None:
    over(api, "one", LABEL)
    over(api, "new")
    assert compared(api, "new")["summary"] == (
        "inconclusive: 1 earlier run of the same load has the label release, "
        "and 2 are needed to know how much such runs differ"
    )
    api.put("/runs/goes-on", ORDER).raise_for_status()
    refused = api.get("/runs/goes-on/comparison", params={"label": "release"})
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
    assert api.get("/runs/none/comparison", params={"label": "release"}).status_code == 404
    for wrong in ({}, {"label": ""}, {"label": "=x"}, {"label": "release="}):
        assert api.get("/runs/new/comparison", params=wrong).status_code == 422, wrong


def test_before_a_run_it_is_said_that_the_earlier_ones_differ_too_much(api: Api) -> None:
    order = {**ORDER, "workload": journals.synthetic_workload().model_dump(mode="json")}
    for number, (p99, doubt) in enumerate(((1.0, None), (1.0, None), (1.4, "differs too much"), (30.0, "no number"))):
        over(api, f"r{number}", LABEL, figures={"p99_seconds": 0.004 * p99})
        found = api.post("/runs/comparable", order, scope="read", params={"label": "release"}).json()
        assert (found["doubt"] is None) == (doubt is None), found
        assert (doubt or "") in (found["doubt"] or "")


def test_before_a_run_it_is_said_which_runs_it_would_be_compared_with(api: Api) -> None:
    over(api, "one", LABEL)
    order = {**ORDER, "workload": journals.synthetic_workload().model_dump(mode="json")}
    found = api.post("/runs/comparable", order, scope="read", params={"label": "release"}).raise_for_status().json()
    assert found["runs"] == ["one"]
    assert found["objection"].startswith("1 earlier run of the same load has the label release")
    over(api, "two", LABEL)
    longer = {**order, "durations": {"soak": "2h"}}
    for wanted, runs in ((order, ["two", "one"]), (longer, [])):
        found = api.post("/runs/comparable", wanted, scope="read", params={"label": "release"}).json()
        assert (found["runs"], found["objection"] is None) == (runs, bool(runs))
    assert [run["id"] for run in api.get("/runs").json()["items"]] == ["two", "one"], "it starts nothing"
