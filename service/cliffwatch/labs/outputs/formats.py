"""The formats that `cliffwatch analyze --from` reads, and the table of windows that each becomes."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cliffwatch.analysis.finding import Role, Series
from cliffwatch.analysis.table import END_COLUMN, TIME_COLUMN, Row, Table, series_of_column, table_of
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.labs.outputs import (
    cassandra_stress,
    db_bench,
    elbencho,
    fio_json,
    fio_log,
    go_ycsb,
    hlog,
    iostat,
    k6,
    latte,
    omb,
    pgbench,
    producer_perf,
    prometheus,
    rados_bench,
    sar,
    scylla_bench,
    sysbench,
    vegeta,
    warp,
    whole_runs,
    ycsb,
)
from cliffwatch.labs.outputs.names import LatencyUnit, OutputFormat
from cliffwatch.labs.outputs.rows import BadLineError, Reading

_SECONDS = {
    LatencyUnit.NANOSECONDS: 1e-9,
    LatencyUnit.MICROSECONDS: 1e-6,
    LatencyUnit.MILLISECONDS: 1e-3,
    LatencyUnit.SECONDS: 1.0,
}
#: Readers of the formats that state the unit of their latencies.
_READERS: Mapping[OutputFormat, Callable[[Iterable[str]], Reading]] = {
    OutputFormat.PGBENCH: pgbench.read,
    OutputFormat.SYSBENCH: sysbench.read,
    OutputFormat.FIO_JSON: fio_json.read,
    OutputFormat.PRODUCER_PERF: producer_perf.read,
    OutputFormat.OMB: omb.read,
    OutputFormat.K6: k6.read,
    OutputFormat.VEGETA: vegeta.read,
    OutputFormat.WARP: warp.read,
    OutputFormat.YCSB: ycsb.read,
    OutputFormat.GO_YCSB: go_ycsb.read,
    OutputFormat.CASSANDRA_STRESS: cassandra_stress.read,
    OutputFormat.SCYLLA_BENCH: scylla_bench.read,
    OutputFormat.LATTE: latte.read,
    OutputFormat.DB_BENCH: db_bench.read,
    OutputFormat.IOSTAT: iostat.read,
    OutputFormat.SAR: sar.read,
    OutputFormat.ELBENCHO: elbencho.read,
    OutputFormat.RADOS_BENCH: rados_bench.read,
}
#: Predicates on the first lines of a file. A log of fio is not known by its lines: those of latencies and of bandwidth
#: look alike.
_RECOGNISERS: Mapping[OutputFormat, Callable[[Sequence[str]], bool]] = {
    OutputFormat.PGBENCH: pgbench.recognises,
    OutputFormat.SYSBENCH: sysbench.recognises,
    OutputFormat.FIO_JSON: fio_json.recognises,
    OutputFormat.PRODUCER_PERF: producer_perf.recognises,
    OutputFormat.OMB: omb.recognises,
    OutputFormat.HLOG: hlog.recognises,
    OutputFormat.K6: k6.recognises,
    OutputFormat.VEGETA: vegeta.recognises,
    OutputFormat.WARP: warp.recognises,
    OutputFormat.YCSB: ycsb.recognises,
    OutputFormat.GO_YCSB: go_ycsb.recognises,
    OutputFormat.CASSANDRA_STRESS: cassandra_stress.recognises,
    OutputFormat.SCYLLA_BENCH: scylla_bench.recognises,
    OutputFormat.LATTE: latte.recognises,
    OutputFormat.DB_BENCH: db_bench.recognises,
    OutputFormat.IOSTAT: iostat.recognises,
    OutputFormat.SAR: sar.recognises,
    OutputFormat.ELBENCHO: elbencho.recognises,
    OutputFormat.RADOS_BENCH: rados_bench.recognises,
    OutputFormat.PROMETHEUS: prometheus.recognises,
}
#: Lines of a file that are looked at to recognise it, and characters of each.
HEAD_LINES, HEAD_CHARACTERS = 400, 4000
#: How to get the lines that each format needs, for error messages.
_REMEDIES = {
    OutputFormat.PGBENCH: "`pgbench -P 1` writes progress lines to standard error, `--log` a line for each transaction",
    OutputFormat.SYSBENCH: "`sysbench --report-interval=1` writes them to standard output",
    OutputFormat.FIO_LOG: "`fio --write_lat_log=NAME` writes them to NAME_lat.1.log, `--log_avg_msec=1000` their means",
    OutputFormat.FIO_JSON: "`fio --output-format=json+ --status-interval=1` writes an object for each second",
    OutputFormat.PRODUCER_PERF: "kafka-producer-perf-test prints one line every five seconds",
    OutputFormat.OMB: "the benchmark writes one value for each ten seconds when it ends",
    OutputFormat.HLOG: "a line is `start,length,longest,HISTFAAA…`",
    OutputFormat.K6: "`k6 run --out json=FILE` writes a line for each value of each metric",
    OutputFormat.VEGETA: "`vegeta encode --to json results.bin` writes a line for each request",
    OutputFormat.WARP: "`warp … --full` writes a line for each operation into a .csv.zst, which `zstd -d` unpacks",
    OutputFormat.YCSB: "`ycsb run … -s -p status.interval=1` prints status lines to standard error",
    OutputFormat.GO_YCSB: "`go-ycsb run … -p measurement.interval=1` prints lines, `-p measurementtype=csv` operations",
    OutputFormat.CASSANDRA_STRESS: "`cassandra-stress … -log interval=1` prints a line for each second",
    OutputFormat.SCYLLA_BENCH: "`scylla-bench` prints a line for each second to standard output",
    OutputFormat.LATTE: "`latte run` prints a line for each second, and writes them to its JSON report",
    OutputFormat.DB_BENCH: "`db_bench --stats_interval_seconds=1` prints lines of each thread to standard error",
    OutputFormat.IOSTAT: "`S_TIME_FORMAT=ISO iostat -x -t 1` prints a report for each second",
    OutputFormat.SAR: "`sar -d -o FILE 1` records them, and `sadf -d FILE -- -d` or `sadf -j` prints them",
    OutputFormat.ELBENCHO: "`elbencho --livecsv FILE --liveint 1000` writes a line for each second",
    OutputFormat.RADOS_BENCH: "`rados bench` prints a line for each second",
    OutputFormat.PROMETHEUS: "`/api/v1/query_range?query=…&start=…&end=…&step=10` has a value for each step",
}
_WITHOUT_UNIT = (OutputFormat.FIO_LOG, OutputFormat.HLOG, OutputFormat.PROMETHEUS)
_WINDOWS_LEAST = 2


@dataclass(frozen=True, slots=True)
class Output:
    """Table of a file, with remarks on how it was read."""

    table: Table
    operations: int | None
    remark: str


def recognised(head: Sequence[str], name: str) -> OutputFormat | None:
    """Format of the file `name` by its first lines; None where they are of no known one, or of a CSV of windows. Raises
    Problem(bad_request) where they are of several, or of a program that states no windows."""
    if TIME_COLUMN in next((line for line in head if line.strip()), ""):
        return None
    found = [format_ for format_, recognises in _RECOGNISERS.items() if recognises(head)]
    if len(found) > 1:
        fault = FieldFault(name, f"has lines of {' and '.join(found)}; say which it is with --from")
        raise Problem(Code.BAD_REQUEST, f"{name} cannot be analysed", [fault])
    if not found and fio_log.looks_like(head):
        if fio_log.is_named(name):
            return OutputFormat.FIO_LOG
        fault = FieldFault(
            name, "looks like a log of fio, and its name does not say of what; if of latencies, --from fio-log"
        )
        raise Problem(Code.BAD_REQUEST, f"{name} cannot be analysed", [fault])
    if not found and (why := whole_runs.why_without_windows(head)) is not None:
        raise Problem(Code.BAD_REQUEST, f"{name} cannot be analysed", [FieldFault(name, why)])
    return found[0] if found else None


def read_output(lines: Iterable[str], name: str, format_: OutputFormat, unit: LatencyUnit | None = None) -> Output:
    """Read the lines of the file `name` into a table. Raises Problem(bad_request) that names the line and a remedy."""
    if unit is not None and format_ not in _WITHOUT_UNIT:
        formats = ", ".join(_WITHOUT_UNIT)
        detail = f"--latency-unit is for {formats} only; the other formats say in which unit their latencies are"
        raise Problem(Code.BAD_REQUEST, detail, [FieldFault("--latency-unit", "leave it out")])
    try:
        reading = _read(lines, name, format_, None if unit is None else _SECONDS[unit])
        windows = reading.windows
        if len(windows) < _WINDOWS_LEAST:
            raise BadLineError(0, f"has {len(windows) or 'no'} window of {format_}; {_REMEDIES[format_]}")
        if (without := next((row for row in windows if not _has_length(row)), None)) is not None:
            end = without.numbers.get(END_COLUMN, without.at)
            raise BadLineError(0, f"has an interval from {without.at:.10g} s to {end:.10g} s: its times are damaged")
        columns = _columns(windows)
        if not any(series.role is Role.LATENCY for series in columns.values()):
            raise BadLineError(0, "has no latency in any of its windows, so nothing can be found in it")
    except BadLineError as error:
        place = f"{name} line {error.line}" if error.line else name
        raise Problem(Code.BAD_REQUEST, f"{name} cannot be analysed", [FieldFault(place, str(error))]) from error
    table = replace(table_of(columns, windows), slowest=reading.slowest)
    return Output(table, reading.operations, reading.remark)


def _has_length(row: Row) -> bool:
    """Whether a window begins in the file's time and ends later; one without an end lasts as long as the others."""
    return 0 <= row.at < row.numbers.get(END_COLUMN, math.inf) and math.isfinite(row.at)


def _columns(windows: list[Row]) -> dict[str, Series]:
    """Series by column: latencies first, ordered by quantile, with means before percentiles and maxima last."""
    names = dict.fromkeys(column for row in windows for column in row.numbers)
    found = {name: series for name in names if (series := series_of_column(name)) is not None}
    return dict(sorted(found.items(), key=lambda each: (each[1].role is not Role.LATENCY, each[1].quantile or 0.0)))


def _read(lines: Iterable[str], name: str, format_: OutputFormat, unit_seconds: float | None) -> Reading:
    if format_ is OutputFormat.FIO_LOG:
        return fio_log.read(lines, name, unit_seconds or _SECONDS[LatencyUnit.NANOSECONDS])
    if format_ is OutputFormat.HLOG:
        return hlog.read(lines, unit_seconds)
    if format_ is OutputFormat.PROMETHEUS:
        return prometheus.read(lines, unit_seconds)
    return _READERS[format_](lines)
