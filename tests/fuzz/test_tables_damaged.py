"""The CSV that is analysed, and what a run is exported as: refused by line, or read as it was written."""

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from tests.fuzz.damage import spoiled
from tests.fuzz.explore import bounded, explore, holds
from tests.fuzz.journals import journal
from tests.fuzz.tables import require_sound

from cliffwatch.analysis.csv_table import read_notices, read_table
from cliffwatch.analysis.finding import Role
from cliffwatch.analysis.table import COLUMNS, Table
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.analyze import Mode, _of_table
from cliffwatch.report.export.formats import write_analyzable, write_csv, write_parquet
from cliffwatch.report.export.window_table import table_of

HEADER = (
    "elapsed_seconds,end_elapsed_seconds,measured_seconds,phase,p50,p99,publish.p99,device_write_latency.8:0,"
    "operations_per_second,errors,gap,notice,notice_elapsed_seconds"
)
TABLE = "\n".join(
    [HEADER, *(f"{at * 10},{at * 10 + 10},10,soak,0.001,0.0{at + 1},0.02,0.0002,100,1,,," for at in range(9)),
     "90,100,,,,,,,,,engine_died,restart,91.5", "100,110,10,soak,0.001,0.02,,,100,,,,", ""]
).encode()  # fmt: skip
ODD_CELLS = [
    "",
    "nan",
    "inf",
    "-1",
    "1e308",
    "-1e308",
    "1e999",
    "1_0",
    "\u0662",
    '"',
    "\0",
    "x" * 200_000,
    "0x1",
    ";",
    "a,b",
]


@st.composite
def cells_changed(draw: Any) -> bytes:
    rows = [line.split(",") for line in TABLE.decode().splitlines()]
    for _ in range(draw(st.integers(1, 4))):
        row = rows[draw(st.integers(0, len(rows) - 1))]
        row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(ODD_CELLS))
    return "\n".join(",".join(row) for row in rows).encode()


def lines_of(content: bytes) -> list[str]:
    """As the command reads them."""
    return io.StringIO(content.decode("utf-8", "replace"), newline="").readlines()


CONTENTS = spoiled(st.just(TABLE)) | cells_changed()


@holds(examples=150, content=CONTENTS)
def test_a_table_is_sound_or_refused_by_line(content: bytes) -> None:
    with bounded():
        for read in (read_table, read_notices):
            try:
                found = read(lines_of(content), "t.csv")
            except Problem as problem:
                assert problem.code is Code.BAD_REQUEST
                assert problem.faults
                continue
            if isinstance(found, Table):
                require_sound(found)


@holds(examples=12, content=cells_changed())
def test_a_table_with_changed_cells_is_analysed_or_refused(content: bytes) -> None:
    with journal(table_csv=content) as directory, bounded():
        for mode in Mode:
            try:
                assert _of_table(directory / "table.csv", None, mode).verdict
            except Problem as problem:
                assert problem.faults


LATENCIES = {name for name, series in COLUMNS.items() if series.role is Role.LATENCY}
SERIES = st.dictionaries(
    st.sampled_from(list(COLUMNS)), st.lists(st.none() | st.floats(0, 1e6), min_size=3, max_size=3), min_size=1
).filter(lambda columns: any(name in LATENCIES or name.startswith("device") for name in columns))


@holds(examples=60, columns=SERIES, start=st.floats(0, 1e6))
def test_a_table_is_read_as_it_was_written(columns: dict[str, list[float | None]], start: float) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["elapsed_seconds", *columns])
    for row in range(3):
        writer.writerow([start + 10 * row, *("" if found[row] is None else found[row] for found in columns.values())])
    table = read_table(text.getvalue().splitlines(), "t.csv")
    assert [sample.start for sample in table.samples] == [start + 10 * row for row in range(3)]
    for row, sample in enumerate(table.samples):
        known = {name: found[row] for name, found in columns.items() if found[row] is not None}
        if known.get("operations_per_second") == 0:
            # No operation was completed, so that a latency of 0 belongs to none.
            known = {name: value for name, value in known.items() if value != 0 or name not in LATENCIES}
        assert {series.name for series in table.series} == set(columns)
        assert sample.values == known


def test_an_export_holds_the_same_in_each_format(tmp_path: Path) -> None:
    with journal() as directory:
        table = table_of(directory)
        text, parquet, analyzable = io.BytesIO(), io.BytesIO(), io.BytesIO()
        write_csv(table, text)
        write_parquet(table, parquet)
        write_analyzable(table, analyzable)
        rows = list(csv.DictReader(io.StringIO(text.getvalue().decode())))
        columns = pq.read_table(io.BytesIO(parquet.getvalue())).to_pylist()
        windows = read_table(analyzable.getvalue().decode().splitlines(), "t.csv")
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in columns] == [
        {name: value if name in {"row", "phase", "gap_reason", "operation"} or not value
         else str(type(columns[place][name])(float(value))) for name, value in row.items()}
        for place, row in enumerate(rows)
    ]  # fmt: skip
    assert len(windows.samples) == 7
    assert len(windows.gaps) == 1


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ("elapsed_seconds,p99," + "x" * 200_000 + "\n0,1,1\n", "t.csv line 1"),
        ("elapsed_seconds,p99,errors\n0,1,1e308\n1,1,1e308\n", "t.csv line 2, errors"),
        ("elapsed_seconds,p99\n1e308,1\n1.7e308,1\n", "t.csv line 2, elapsed_seconds"),
        ("elapsed_seconds,p99,end_elapsed_seconds\n0,1,10\n10,1,5\n", "t.csv line 3, end_elapsed_seconds"),
        (
            "elapsed_seconds,p99,measured_seconds,end_elapsed_seconds\n0,1,10,10\n10,1,50,20\n",
            "t.csv line 3, measured_seconds",
        ),
        ("elapsed_seconds,p99\n0,1\n1_0,1\n", "t.csv line 3, elapsed_seconds"),
    ],
)
def test_an_impossible_table_value_is_refused_by_line_and_column(table: str, field: str) -> None:
    with pytest.raises(Problem) as caught:
        read_table(table.splitlines(), "t.csv")
    assert field in [fault.field for fault in caught.value.faults]


@pytest.mark.real(why="damage at random")
def test_tables_at_random() -> None:
    explore(
        test_a_table_is_sound_or_refused_by_line,
        test_a_table_with_changed_cells_is_analysed_or_refused,
        test_a_table_is_read_as_it_was_written,
    )
