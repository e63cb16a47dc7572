"""A CSV that others made: what is read, and what is refused by line and column."""

import pytest

from cliffwatch.analysis.asked_rate import AskedRate
from cliffwatch.analysis.csv_table import read_notices, read_table
from cliffwatch.analysis.finding import Notice, Role
from cliffwatch.analysis.table import COLUMNS
from cliffwatch.base.errors import Code, Problem

HEADER = "elapsed_seconds,p99,device_write_latency,operations_per_second"


def refusal(*lines: str) -> Problem:
    with pytest.raises(Problem) as caught:
        read_table(lines, "soak.csv")
    assert caught.value.code is Code.BAD_REQUEST
    return caught.value


def test_rows_become_samples_and_empty_fields_are_not_measured() -> None:
    table = read_table([HEADER, "0,0.011,0.0001,1000", "10,,0.0001,", "", "20,0.012,nan,900"])
    assert [series.name for series in table.series] == ["p99", "device_write_latency", "operations_per_second"]
    assert [series.role for series in table.series] == [Role.LATENCY, Role.DEVICE_LATENCY, Role.RATE]
    assert table.window_seconds == 10
    assert [dict(sample.values) for sample in table.samples] == [
        {"p99": 0.011, "device_write_latency": 0.0001, "operations_per_second": 1000.0},
        {"device_write_latency": 0.0001},
        {"p99": 0.012, "operations_per_second": 900.0},
    ]
    assert [(sample.start, sample.end) for sample in table.samples] == [(0, 10), (10, 20), (20, 30)]


def test_negative_values_after_a_counter_reset_are_not_measured_and_counted_by_column() -> None:
    table = read_table([HEADER, "0,0.011,-3,1000", "10,0.012,-0.5,-7", "20,0.013,0,900"])
    assert [dict(sample.values) for sample in table.samples] == [
        {"p99": 0.011, "operations_per_second": 1000.0},
        {"p99": 0.012},
        {"p99": 0.013, "device_write_latency": 0.0, "operations_per_second": 900.0},
    ]
    assert table.below_zero == {"device_write_latency": 2, "operations_per_second": 1}


def test_every_column_has_its_series_and_any_subset_will_do() -> None:
    for column, series in COLUMNS.items():
        if series.role in (Role.LATENCY, Role.DEVICE_LATENCY):
            table = read_table([f"elapsed_seconds,{column}", "0,1", "1,1"])
            assert table.series == (series,)


def test_a_row_ends_where_the_next_begins_but_not_across_a_gap() -> None:
    table = read_table(["elapsed_seconds,p99", "0,1", "10,1", "22,1", "31,1", "600,1"])
    assert [(sample.start, sample.end) for sample in table.samples] == [
        (0, 10),
        (10, 22),
        (22, 31),
        (31, 42),
        (600, 611),
    ]


def test_the_target_rate_of_a_table_is_reported_beside_the_achieved_rate() -> None:
    header = "elapsed_seconds,p99,operations_per_second,due_per_second,phase"
    rows = ["0,1,10,10,warm_up", "10,1,30,100,soak", "20,1,,100,soak", "30,1,50,,soak", "40,1,40,100,soak"]
    table = read_table([header, *rows])
    assert table.rate == AskedRate(100.0, 35.0)
    assert read_table(["elapsed_seconds,p99", "0,1", "10,1"]).rate is None


def test_a_phase_column_declares_phases() -> None:
    table = read_table(["elapsed_seconds,p99,phase", "0,1,baseline", "1,1,", "2,1,soak"])
    assert [sample.phase for sample in table.samples] == ["baseline", None, "soak"]


@pytest.mark.parametrize(
    ("lines", "field", "message"),
    [
        ((), "soak.csv line 1", "elapsed_seconds"),
        (("p99", "1"), "soak.csv line 1", "elapsed_seconds"),
        (
            ("elapsed_seconds,p9", "0,1"),
            "soak.csv line 1",
            "'p9' is no column that is known; rename it or leave it out",
        ),
        (("row,window,p99_seconds", "window,0,1"), "soak.csv line 1", "export the run again with `--format analyze`"),
        (("0,0.01", "10,0.01"), "soak.csv line 1", "names of columns; write one first, such as elapsed_seconds,p50"),
        ((HEADER, "-1,0.01,0.1,1"), "soak.csv line 2, elapsed_seconds", "write the seconds since the run began"),
        ((HEADER, '0,"0.01', *["10,0.01,0.1,1"] * 12_000), "soak.csv line 2", "a quotation mark that is not closed"),
        (("elapsed_seconds,p99,p99", "0,1,1"), "soak.csv line 1", "twice"),
        (("elapsed_seconds,queue_depth", "0,1", "1,1"), "soak.csv line 1", "no latency column"),
        ((HEADER, "0,0.01,0.1,1", "x,0.01,0.1,1"), "soak.csv line 3, elapsed_seconds", "not a number"),
        ((HEADER, "0,0.01,0.1,1", "10,fast,0.1,1"), "soak.csv line 3, p99", "not a number"),
        ((HEADER, "0,0.01,0.1,1", "10,inf,0.1,1"), "soak.csv line 3, p99", "cannot be"),
        ((HEADER, "0,0.01,0.1,1", ",0.01,0.1,1"), "soak.csv line 3, elapsed_seconds", "is empty"),
        ((HEADER, "10,0.01,0.1,1", "10,0.01,0.1,1"), "soak.csv line 3, elapsed_seconds", "order of time"),
        ((HEADER, "0,0.01,0.1,1", "10,0.01"), "soak.csv line 3", "2 fields"),
        ((HEADER, "0,0.01,0.1,1"), "soak.csv", "fewer than two rows"),
    ],
)
def test_an_invalid_table_is_refused_by_line_and_column(lines: tuple[str, ...], field: str, message: str) -> None:
    problem = refusal(*lines)
    fault = next(fault for fault in problem.faults if fault.field == field)
    assert message in fault.message


def test_of_20_000_columns_that_are_not_known_some_are_named_and_all_are_counted() -> None:
    problem = refusal(",".join(["elapsed_seconds", *(f"column_{number}" for number in range(20_000))]))
    assert "'column_0' is no column that is known" in problem.faults[0].message
    assert (
        "19990 more columns that are not known; it may have these columns: elapsed_seconds"
        in problem.faults[-1].message
    )


def test_only_so_many_faults_are_listed() -> None:
    problem = refusal(HEADER, *(f"{at},fast,0.1,1" for at in range(50)))
    assert len(problem.faults) == 20
    assert "30 more" in problem.detail


def test_events_are_read_in_order_of_time() -> None:
    lines = ["elapsed_seconds,name", "90,broker restart", "20,leader change"]
    assert read_notices(lines) == [Notice(20, "leader change"), Notice(90, "broker restart")]


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        (("elapsed_seconds", "1"), "events line 1"),
        (("elapsed_seconds,name", "1,"), "events line 2, name"),
        (("elapsed_seconds,name", "soon,restart"), "events line 2, elapsed_seconds"),
    ],
)
def test_events_that_are_wrong_are_refused(lines: tuple[str, ...], field: str) -> None:
    with pytest.raises(Problem) as caught:
        read_notices(lines)
    assert [fault.field for fault in caught.value.faults] == [field]


@pytest.mark.parametrize(
    "lines",
    [
        ("elapsed_seconds;p99;operations_per_second", "0;0,0123;1000,5", "10;0,0125;1.000,5"),
        ("elapsed_seconds\tp99\toperations_per_second", "0\t0,0123\t1000,5", "10\t0,0125\t1000,5"),
        ("elapsed_seconds\tp99\toperations_per_second", "0\t0.0123\t1000.5", "10\t0.0125\t1000.5"),
    ],
)
def test_semicolons_and_tabs_separate_columns_and_a_comma_then_is_decimal(lines: tuple[str, ...]) -> None:
    table = read_table(lines, "soak.csv")
    assert [dict(sample.values) for sample in table.samples] == [
        {"p99": 0.0123, "operations_per_second": 1000.5},
        {"p99": 0.0125, "operations_per_second": 1000.5},
    ]
