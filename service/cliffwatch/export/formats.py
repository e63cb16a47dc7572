"""The formats that windows can be had in, and how each is written."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cliffwatch import __version__
from cliffwatch.detect.coverage import Gap
from cliffwatch.detect.table import COLUMNS, PHASE_COLUMN, TIME_COLUMN
from cliffwatch.errors import Code, Problem
from cliffwatch.export.table import TEXT_COLUMNS, WHOLE_COLUMNS, WindowTable
from cliffwatch.journal import JournalWindow
from cliffwatch.journal.windows import QUANTILE_NAMES

#: Rows of one piece of a Parquet file: what is held in memory at a time.
_ROWS_AT_ONCE = 5_000


def write_csv(table: WindowTable, output: BinaryIO) -> None:
    """A line that names the columns, then a line a row. An empty field was not measured."""
    rows = ([row.get(column) for column in table.columns] for row in table.rows())
    _write_lines(table.columns, rows, output)


def write_parquet(table: WindowTable, output: BinaryIO) -> None:
    """The columns of the CSV with their types; null was not measured. The run's id stands in the file's metadata."""
    whole = {*WHOLE_COLUMNS, *table.counters}
    types = [
        pa.string() if name in TEXT_COLUMNS else pa.int64() if name in whole else pa.float64() for name in table.columns
    ]
    about = {"run_id": table.run_id, "cliffwatch_version": __version__}
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
    """The CSV that `cliffwatch analyze` reads: the run's main operation, and an empty line where nothing was measured.

    Raises Problem(bad_request) for a run without any latency.
    """
    if table.primary is None or table.load is None:
        raise Problem(Code.BAD_REQUEST, f"run {table.run_id} has no window with a latency, so nothing can be analysed")
    header = (TIME_COLUMN, PHASE_COLUMN, *COLUMNS)
    zero, primary = table.load.start, table.primary

    def row(piece: JournalWindow | Gap) -> list[Any]:
        known = _analyzable(piece, primary) if isinstance(piece, JournalWindow) else {}
        return [round(piece.start - zero, 6), *(known.get(column) for column in header[1:])]

    pieces = (piece for piece in table.pieces() if piece.start >= zero)
    _write_lines(header, map(row, pieces), output)


def _analyzable(window: JournalWindow, primary: str) -> dict[str, Any]:
    summary = window.latency.get(primary, {})
    writes = window.counters.get("device_write_operations", 0)
    known: dict[str, Any] = {name: summary.get(name) for name in QUANTILE_NAMES} | {PHASE_COLUMN: window.phase}
    if writes:
        known["device_write_latency"] = window.counters.get("device_write_milliseconds", 0) / 1000 / writes
    known["queue_depth"] = window.gauges.get("device_queue_depth")
    if "operations" in window.counters and window.seconds > 0:
        known["operations_per_second"] = window.counters["operations"] / window.seconds
    return known


def _write_lines(header: Iterable[str], rows: Iterable[list[Any]], output: BinaryIO) -> None:
    # Detached at the end, since closing the text would close the output.
    text = io.TextIOWrapper(output, encoding="utf-8", newline="", write_through=False)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        text.flush()
    finally:
        text.detach()


def _array(type_: Any, values: list[Any]) -> Any:
    """A counter beyond what the column can hold, or of another type in a damaged journal, was not measured."""
    try:
        return pa.array(values, type_)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([_fitting(type_, value) for value in values], type_)


def _fitting(type_: Any, value: Any) -> Any:
    try:
        return pa.scalar(value, type_).as_py()
    except (pa.ArrowException, TypeError, OverflowError):
        return None


#: By the name that `--format` takes.
WRITERS: dict[str, Callable[[WindowTable, BinaryIO], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "analyze": write_analyzable,
}
