"""Which simulations answer a question."""

from pathlib import Path

import pytest

from cliffwatch.base.errors import Problem
from cliffwatch.labs.what_if.plan import SUPERBLOCKS_AT_LEAST, SimulationPlan, make_plan
from cliffwatch.labs.what_if.profile import read_profile, shipped_profiles


def field_report(**options: int | None) -> SimulationPlan:
    return make_plan(read_profile("field-report", {}), {}, **({"seeds": 3, "scale": None, "jobs": 2} | options))  # type: ignore[arg-type]


def test_every_row_covers_every_seed_and_every_value_that_is_unknown() -> None:
    plan = field_report()
    assert plan.unknown == {"over-provisioning": (0.07, 0.125, 0.2), "disorder": (0.1, 0.3, 1.0)}
    for case in plan.cases:
        if case.parameter is None or not case.parameter.is_unknown:
            covered = {(dict(one.values)["over-provisioning"], dict(one.values)["disorder"], one.seed)
                       for one in case.simulations}  # fmt: skip
            assert len(covered) == 3 * 3 * 3
            assert len(case.simulations) == len(covered)


def test_rows_differ_in_their_parameter_alone_and_share_simulations() -> None:
    plan = field_report(seeds=1)
    base = dict(plan.cases[0].simulations[0].values)
    for case in plan.cases[1:]:
        assert case.parameter is not None
        for simulation in case.simulations:
            differing = {name for name, value in simulation.values if value != base[name]}
            assert differing <= {case.parameter.name, *plan.unknown}
            assert dict(simulation.values)[case.parameter.name] == case.value
    described = [
        case for case in plan.cases if case.is_as_described and case.parameter and not case.parameter.is_unknown
    ]
    assert [case.parameter.name for case in described if case.parameter] == [
        "unpartitioned", "trim", "retention", "streams", "write-size",
    ]  # fmt: skip
    assert {case.simulations for case in described} == {plan.cases[0].simulations}
    # 9 for the first row and for each of 9 changes; the rows of what is unknown cost nothing.
    assert len(plan.simulations) == 9 * 10


def test_the_plan_varies_only_requested_and_unpublished_parameters() -> None:
    profile = read_profile("field-report", {})
    plan = make_plan(profile, {"unpartitioned": (0.25,), "disorder": (0.3,)}, seeds=1, scale=8, jobs=1)
    rows = [(case.parameter.name, case.value) for case in plan.cases if case.parameter is not None]
    assert [row for row in rows if row[0] == "unpartitioned"] == [("unpartitioned", 0.0), ("unpartitioned", 0.25)]
    assert {name for name, _ in rows} == {"unpartitioned", "over-provisioning", "disorder"}
    assert {dict(one.values)["disorder"] for one in plan.simulations} == {0.3}
    assert plan.scale == 8


def test_a_setting_that_was_given_is_where_all_rows_start() -> None:
    profile = read_profile("field-report", {"unpartitioned": "10%", "rate": "0.3GB"})
    plan = make_plan(profile, {"trim": (True,)}, seeds=1, scale=8, jobs=1)
    assert {dict(one.values)["unpartitioned"] for one in plan.simulations} == {0.1}
    assert profile.rate_bytes_per_second == 0.3e9
    assert profile.shipped is None, "it is the field report's question no more"


def test_unpublished_parameters_are_varied_unless_the_user_sets_them() -> None:
    """The field report's profile has values of both, which are assumptions."""
    assert {"over-provisioning", "disorder"} <= set(read_profile("field-report", {}).settings)
    held = make_plan(
        read_profile("field-report", {"disorder": "0.4"}), {"over-provisioning": (0.28,)}, seeds=1, scale=8, jobs=1
    )
    assert held.unknown == {"over-provisioning": (0.28,), "disorder": (0.4,)}
    assert held.cases[0].simulations[0].flags[-3:] == ["--over-provisioning=0.28", "--disorder=0.4", "--seed=1"]


def test_more_simulations_are_of_a_smaller_drive_but_never_of_a_crumb() -> None:
    one, many = field_report(seeds=1), field_report(seeds=50)
    assert one.scale <= many.scale
    superblocks = many.profile.superblocks
    assert superblocks is not None
    assert superblocks / many.scale >= SUPERBLOCKS_AT_LEAST
    assert many.seconds > one.seconds
    assert field_report(scale=1).seconds > field_report(scale=64).seconds * 63


def test_a_workload_without_streams_is_asked_about_the_drive_alone(tmp_path: Path) -> None:
    path = tmp_path / "uniform.yaml"
    path.write_text("workload: uniform\nblocks: 512\n")
    profile = read_profile(str(path), {})
    plan = make_plan(profile, {}, seeds=1, scale=None, jobs=1)
    assert {case.parameter.name for case in plan.cases if case.parameter} == {"unpartitioned", "over-provisioning"}
    assert plan.scale == 1
    with pytest.raises(Problem, match="trim: only the workload `streams` has it"):
        make_plan(profile, {"trim": (True,)}, seeds=1, scale=None, jobs=1)


def test_too_many_simulations_are_refused() -> None:
    with pytest.raises(Problem, match="seeds: that makes"):
        field_report(seeds=1000)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "is not YAML: line 1, column 5: "),
        ("- 1\n", "is not a list of settings"),
        ("workload: streams\ncapacity: 7.5 bananas\n", "capacity: "),
        ("workload: streams\nduration: soon\n", "duration: "),
        ("workload: streams\ntrim: perhaps\n", "trim: "),
        ("workload: trace\n", "trace: "),
    ],
)
def test_a_profile_that_is_wrong_is_refused_by_the_setting(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(content)
    with pytest.raises(Problem, match=message):
        make_plan(read_profile(str(path), {}), {}, seeds=1, scale=None, jobs=1)


def test_a_profile_that_is_not_there_is_answered_with_those_that_are() -> None:
    assert "field-report" in shipped_profiles()
    with pytest.raises(Problem, match=r"No such file.*built-in profile: .*field-report"):
        read_profile("nowhere", {})
