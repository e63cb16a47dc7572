"""What differs between two runs: results, workload, targets and environment."""

from pathlib import Path
from typing import Any

from testkit import journals
from tests.api.harness import Api

from cliffwatch.base import durable
from cliffwatch.journal import files
from cliffwatch.store.models import RunRow

DRIVE = {"name": "nvme0n1", "firmware": "GDC7102Q", "scheduler": "none"}
FACTS = {"version": 1, "kernel": "6.1", "target": {"key": "a"}, "drives": [DRIVE], "warnings": ["one"]}


def over(api: Api, run_id: str, facts: dict[str, Any] | None, **changes: Any) -> Path:
    directory = journals.queue(api.settings.runs_directory, run_id, workload=journals.synthetic_workload(**changes))
    if facts is not None:
        durable.write_json_durably(directory / files.FACTS, facts)
    journals.start(directory)
    journals.finish(directory)
    api.index(run_id)
    return directory


def between(api: Api, run_id: str, other: str) -> dict[str, Any]:
    body: dict[str, Any] = api.get(f"/runs/{run_id}/differences", params={"other": other}).raise_for_status().json()
    return body


def test_what_is_the_same_is_left_out_and_what_is_not_has_its_place(api: Api) -> None:
    over(api, "one", FACTS, load={"operations_per_second": 1000})
    newer = FACTS | {
        "target": {"key": "b"},
        "warnings": [],
        "drives": [DRIVE | {"firmware": "GDC7502Q"}],
        "engine": {"io": "uring"},
    }
    over(api, "two", newer, load={"operations_per_second": 2000, "cliff_after": "30s"}, phases={"soak": "2m"})
    found = between(api, "one", "two")
    assert [tuple(each.values()) for each in found["workload"]] == [
        ("phases.soak", "1m", "2m"),
        ("load.operations_per_second", "1000", "2000"),
        ("load.cliff_after", None, "30s"),
    ]
    assert [tuple(each.values()) for each in found["environment"]] == [
        ("drives.0.firmware", "GDC7102Q", "GDC7502Q"),
        ("engine.io", None, "uring"),
    ]
    assert (found["targets"], found["faults"]) == ([], [])
    assert found["result"] == [{"place": "verdict", "first": "pass", "second": "pass"}]


def test_all_figures_of_both_are_beside_each_other(api: Api) -> None:
    over(api, "one", FACTS)
    over(api, "two", FACTS)
    figures = {"latency": "write", "p99_seconds": 0.004, "onset": {"kind": "cliff", "seconds": 90.0, "ratio": 40.0}}
    with api.services.database.session() as session:
        for run_id, p99 in (("one", 0.004), ("two", 0.016)):
            row = session.get(RunRow, run_id)
            assert row is not None
            row.figures = figures | {"p99_seconds": p99}
    result = {each["place"]: (each["first"], each["second"]) for each in between(api, "one", "two")["result"]}
    assert result["write p99"] == ("4 ms", "16 ms")
    assert result["throughput"] == ("–", "–")
    assert result["first degradation"] == ("cliff at 0:01:30",) * 2


def test_what_cannot_be_read_is_said_and_not_taken_for_equal(api: Api) -> None:
    over(api, "one", None)
    directory = over(api, "two", FACTS)
    (directory / files.ORDER).write_text("{")
    first = between(api, "one", "two")["faults"]
    assert first[0] == "run one: no environment was recorded"
    assert first[1].startswith("run two: ")
    assert between(api, "two", "two")["faults"] == [first[1]] * 2
    assert api.get("/runs/one/differences", params={"other": "three"}).status_code == 404
    assert api.get("/runs/one/differences").status_code == 422
