"""Tables with the headings that other people and programs write: taken with their units, and said."""

import pytest
from testkit.soaks.trouble import Kind, Plan, Trouble, csv_of, rows_of, verdict_on

from cliffwatch.analysis.csv_table import read_table
from cliffwatch.analysis.foreign_headings import known_heading
from cliffwatch.base.errors import Problem


@pytest.mark.parametrize(
    ("heading", "meant"),
    [
        ("p99_ms", ("p99", 1e-3)),
        ("P99 (ms)", ("p99", 1e-3)),
        ("latency_p99_us", ("p99", 1e-6)),
        ("lat p99.9 [ns]", ("p999", 1e-9)),
        ("p99.99_seconds", ("p9999", 1.0)),
        ("avg_latency_ms", ("mean", 1e-3)),
        ("median_ms", ("p50", 1e-3)),
        ("max_s", ("max", 1.0)),
        ("tps", ("operations_per_second", 1.0)),
        ("ops/s", ("operations_per_second", 1.0)),
        ("Timestamp", ("elapsed_seconds", 1.0)),
        ("elapsed_ms", ("elapsed_seconds", 1e-3)),
        # Without a unit, or with another meaning, a heading is taken for nothing.
        ("latency", None),
        ("p99_latency", None),
        ("p99s", None),
        ("p75_ms", None),
        ("throughput", None),
        ("p99_ms_total", None),
    ],
)
def test_a_heading_is_taken_where_it_says_its_unit(heading: str, meant: tuple[str, float] | None) -> None:
    assert known_heading(heading) == meant


@pytest.mark.parametrize(
    "times",
    [
        ["0", "10", "20.5"],
        ["1790000000", "1790000010", "1790000020.5"],
        ["1790000000000", "1790000010000", "1790000020500"],
        ["2026-11-30T23:59:50Z", "2026-12-01T00:00:00Z", "2026-12-01T00:00:10.500Z"],
        ["2026-11-30 23:59:50", "2026-12-01 00:00:00", "2026-12-01 00:00:10.5"],
        ["2026-11-30T23:59:50+01:00", "2026-11-30T23:00:00Z", "2026-11-30T18:00:10.5-05:00"],
    ],
    ids=["elapsed", "epoch", "milliseconds", "zulu", "no zone", "zones"],
)
def test_times_count_from_the_first_row(times: list[str]) -> None:
    table = read_table(["timestamp,p99_ms,ops", *(f"{time},{index + 2},50" for index, time in enumerate(times))])
    assert [sample.start for sample in table.samples] == [0.0, 10.0, 20.5]
    assert [sample.values for sample in table.samples] == [
        {"p99": pytest.approx(milliseconds / 1000), "operations_per_second": 50.0} for milliseconds in (2, 3, 4)
    ]
    assert table.remark == "Taken: 'timestamp' for elapsed_seconds, 'p99_ms' for p99, 'ops' for operations_per_second."


def test_a_malformed_time_or_number_is_named_with_its_line() -> None:
    with pytest.raises(Problem) as problem:
        read_table(["time,p99_ms", "2026-11-30T00:00:00Z,2", "yesterday,fast"])
    assert [fault.message.partition(";")[0] for fault in problem.value.faults] == ["'yesterday' is not a number"]


@pytest.mark.parametrize(
    ("header", "refused"), [("time,p99,p99_ms", "p99_ms"), ("time,p99_ms,ops,tps", "tps"), ("time,ts,p99_ms", "ts")]
)
def test_a_second_heading_for_one_column_is_refused_by_its_own_name(header: str, refused: str) -> None:
    numbers = ",".join("2" for _ in header.split(",")[1:])
    with pytest.raises(Problem, match="cannot be analysed") as problem:
        read_table([header, f"0,{numbers}", f"10,{numbers}"])
    assert f"{refused!r} is no column that is known" in str(problem.value.faults[0].message)


def test_the_same_soak_under_other_headings_has_the_same_verdict() -> None:
    plan = Plan(3, hours=8, troubles=(Trouble(Kind.SLOWER, 2000, 400, 3.0),))
    header, *rows = csv_of(rows_of(plan))
    columns = header.split(",")
    other = [{"elapsed_seconds": "ts", "operations_per_second": "iops"}.get(column, column) for column in columns]
    place = columns.index("p99")
    other[place] = "p99_us"

    def in_microseconds(row: str) -> str:
        cells = row.split(",")
        cells[place] = repr(float(cells[place]) * 1e6) if cells[place] else ""
        return ",".join(cells)

    plain = verdict_on(read_table([header, *rows]), "offline")
    foreign = verdict_on(read_table([",".join(other), *map(in_microseconds, rows)]), "offline")
    assert (foreign.name, foreign.reasons) == (plain.name, plain.reasons)
    assert plain.name == "degraded"
