"""Parts of a run in its report: how far each is from the others, the furthest first."""

from typing import Any

from testkit.journals import order_of

from cliffwatch.report.parts_document import parts_document
from cliffwatch.report.schema.latency import LatencyOfOperation

ORDER = order_of(
    "directory:/mnt/a", "directory:/mnt/b", "directory:/mnt/c", part_names=("nvme0n1", "nvme1n1", "nvme2n1")
)


def latency(load: float | None, **phases: float) -> LatencyOfOperation:
    rows: Any = [{"phase": phase, "count": 9, "p99_seconds": value} for phase, value in phases.items()]
    return {"load": {"count": 9} if load is None else {"count": 9, "p99_seconds": load}, "phases": rows, "hours": []}


def test_parts_are_compared_by_their_rise_where_all_have_one() -> None:
    found = parts_document(
        ORDER,
        [],
        {
            "append": latency(0.02, baseline=0.005, soak=0.02),
            "nvme0n1/append": latency(0.02, baseline=0.010, soak=0.020),
            "nvme1n1/append": latency(0.02, baseline=0.002, soak=0.012),
            "nvme2n1/append": latency(0.02, baseline=0.004, soak=0.008),
        },
    )
    assert [(part["name"], part["ratio_to_others"]) for part in found] == [
        ("nvme1n1", 3.0),
        ("nvme0n1", 0.5),
        ("nvme2n1", 0.5),
    ]
    assert (found[0]["rise_ratio"], found[0]["baseline_p99_seconds"], found[0]["p99_seconds"]) == (6.0, 0.002, 0.012)
    assert found[0]["target"] == "directory:/mnt/b"


def test_without_a_baseline_they_are_compared_by_p99_and_one_that_measured_nothing_is_last() -> None:
    found = parts_document(
        ORDER, [], {"append": latency(0.02), "nvme0n1/append": latency(0.004), "nvme2n1/append": latency(0.012)}
    )
    assert [part["name"] for part in found] == ["nvme2n1", "nvme0n1", "nvme1n1"]
    assert found[0]["ratio_to_others"] == 3.0
    assert "p99_seconds" not in found[2]
    assert parts_document(ORDER, [], {}) == [
        {"name": name, "target": f"directory:/mnt/{path}", "operations": 0}
        for name, path in (("nvme0n1", "a"), ("nvme1n1", "b"), ("nvme2n1", "c"))
    ]


def test_a_run_with_one_target_has_no_parts() -> None:
    assert parts_document(order_of("directory:/mnt/a"), [], {}) == []
    assert parts_document(None, [], {}) == []
