"""Export formats of a run's windows, and the writer of each."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cliffwatch.base.version import VERSION
from cliffwatch.report.export.analyzable import analyzable
from cliffwatch.report.export.window_table import TEXT_COLUMNS, WHOLE_COLUMNS, WindowTable

#: Rows of one piece of a Parquet file, which is held in memory until it is written.
_ROWS_AT_ONCE = 5_000
#: Characters that begin a formula in a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(table: WindowTable, output: BinaryIO) -> None:
    """Write CSV: a line that names the columns, then one line per row. An empty field was not measured."""
    rows = ([row.get(column) for column in table.columns] for row in table.rows())
    _write_lines(table.columns, rows, output)


def write_parquet(table: WindowTable, output: BinaryIO) -> None:
    """Write Parquet: the typed columns of the CSV; null was not measured. The file's metadata has the run's id."""
    whole = {*WHOLE_COLUMNS, *table.counters}
    types = [
        pa.string() if name in TEXT_COLUMNS else pa.int64() if name in whole else pa.float64() for name in table.columns
    ]
    about = {"run_id": table.run_id, "cliffwatch_version": VERSION}
    schema = pa.schema(
        list(zip(table.columns, types, strict=True)), metadata={"cliffwatch": json.dumps(about, sort_keys=True)}
    )
    rows = table.rows()
    with pq.ParquetWriter(output, schema, compression="zstd") as writer:
        while piece := list(islice(rows, _ROWS_AT_ONCE)):
            columns = [
                _array(type_, [row.get(name) for row in piece]) for name, type_ in zip(schema.names, types, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def write_analyzable(table: WindowTable, output: BinaryIO) -> None:
    """Write the CSV that `cliffwatch analyze` reads. Raises Problem(bad_request) for a run without any latency."""
    found = analyzable(table)
    _write_lines(found.header, found.rows, output)


def _write_lines(header: Iterable[str], rows: Iterable[list[Any]], output: BinaryIO) -> None:
    # Detached at the end, since closing the text wrapper would close the output.
    text = io.TextIOWrapper(output, encoding="utf-8", newline="", write_through=False)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_inert(name) for name in header])
        writer.writerows([_inert(value) for value in row] for row in rows)
        text.flush()
    finally:
        text.detach()


def _inert(value: Any) -> Any:
    """Escape text that a spreadsheet would evaluate as a formula: an imported journal may hold any name."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _array(type_: Any, values: list[Any]) -> Any:
    """Arrow array of values; null for a counter too large for the column, or of another type in a damaged journal."""
    try:
        return pa.array(values, type_)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([_fitting(type_, value) for value in values], type_)


def _fitting(type_: Any, value: Any) -> Any:
    try:
        return pa.scalar(value, type_).as_py()
    except (pa.ArrowException, TypeError, OverflowError):
        return None


#: Writer of each format, by its name for `--format`.
WRITERS: dict[str, Callable[[WindowTable, BinaryIO], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "analyze": write_analyzable,
}
