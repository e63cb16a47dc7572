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


def values(differences: list[dict[str, Any]]) -> list[tuple[str, str | None, str | None]]:
    return [(each["place"], each["first"], each["second"]) for each in differences]


def test_run_differences_list_only_changed_values_with_their_field(api: Api) -> None:
    over(api, "one", FACTS, load={"operations_per_second": 1000})
    newer = FACTS | {
        "target": {"key": "b"},
        "warnings": [],
        "drives": [DRIVE | {"firmware": "GDC7502Q"}],
        "engine": {"io": "uring"},
    }
    over(api, "two", newer, load={"operations_per_second": 2000, "cliff_after": "30s"}, phases={"soak": "2m"})
    found = between(api, "one", "two")
    assert values(found["workload"]) == [
        ("phases.soak", "1m", "2m"),
        ("load.operations_per_second", "1000", "2000"),
        ("load.cliff_after", None, "30s"),
    ]
    assert values(found["environment"]) == [
        ("drives.0.firmware", "GDC7102Q", "GDC7502Q"),
        ("engine.io", None, "uring"),
    ]
    assert (found["targets"], found["faults"]) == ([], [])
    assert values(found["result"]) == [("verdict", "pass", "pass")]


def test_all_figures_of_both_are_beside_each_other(api: Api) -> None:
    over(api, "one", FACTS)
    over(api, "two", FACTS)
    figures = {"latency": "write", "p50_seconds": 0.001, "onset": {"kind": "cliff", "seconds": 90.0, "ratio": 40.0}}
    with api.services.database.session() as session:
        for run_id, p99, rate in (("one", 0.004, 100.0), ("two", 0.016, 90.0)):
            row = session.get(RunRow, run_id)
            assert row is not None
            row.figures = figures | {"p99_seconds": p99, "operations_per_second": rate}
    result = {place: rest for place, *rest in (each.values() for each in between(api, "two", "one")["result"])}
    assert result["write p99"] == ["16 ms", "4 ms", 4.0, "worse"]
    assert result["operations"] == ["90 /s", "100 /s", 0.9, "worse"]
    assert result["write p50"] == ["1 ms", "1 ms", 1.0, None]
    assert result["throughput"] == ["–", "–", None, None]
    assert result["first degradation"] == ["cliff at 0:01:30", "cliff at 0:01:30", None, None]
    assert between(api, "one", "two")["result"][2]["change"] == "better"


def test_a_text_of_several_lines_shows_only_those_that_differ(api: Api) -> None:
    over(api, "one", FACTS | {"job": "[global]\nbs=4k\nrw=write\n"})
    over(api, "two", FACTS | {"job": "[global]\nbs=16k\nrw=write\niodepth=4\n"})
    assert values(between(api, "one", "two")["environment"]) == [("job", "bs=4k", "bs=16k\niodepth=4")]


def test_the_id_of_a_run_in_its_values_is_no_difference(api: Api) -> None:
    for run_id in ("one", "two"):
        over(api, run_id, FACTS | {"directory": f"/mnt/{run_id}/cliffwatch-{run_id}", "nonesuch": f"as{run_id}"})
    assert values(between(api, "one", "two")["environment"]) == [("nonesuch", "asone", "astwo")]


def test_unreadable_requests_and_missing_environments_are_reported_as_faults(api: Api) -> None:
    over(api, "one", None)
    directory = over(api, "two", FACTS)
    (directory / files.ORDER).write_text("{")
    first = between(api, "one", "two")["faults"]
    assert first[0] == "run one: no environment was recorded"
    assert first[1].startswith("run two: ")
    assert between(api, "two", "two")["faults"] == [first[1]] * 2
    assert api.get("/runs/one/differences", params={"other": "three"}).status_code == 404
    assert api.get("/runs/one/differences").status_code == 422
