"""What real runs printed and logged, and logs that are made for a test."""

import gzip
from pathlib import Path

from cliffwatch.base.histogram import Histogram
from cliffwatch.labs.outputs.names import OutputFormat

FILES = Path(__file__).parent / "files"
#: A lock on the table that pgbench and sysbench write to, a frozen file system under fio, a paused broker.
STALLED = {
    "pgbench-progress.txt": OutputFormat.PGBENCH,
    "pgbench-log.txt.gz": OutputFormat.PGBENCH,
    "sysbench.txt": OutputFormat.SYSBENCH,
    "sysbench-rate.txt": OutputFormat.SYSBENCH,
    "fio_each_lat.txt.gz": OutputFormat.FIO_LOG,
}
#: Of these a window does not say that nothing was completed: they print nothing meanwhile.
SLOWEST = {
    "fio_averages_lat.txt": (OutputFormat.FIO_LOG, 15, 55),
    "fio-plus.json.gz": (OutputFormat.FIO_JSON, 15, 55),
    "fio-plain.json.gz": (OutputFormat.FIO_JSON, 15, 55),
    "omb.json.gz": (OutputFormat.OMB, 20, 230),
    "producer-perf.txt": (OutputFormat.PRODUCER_PERF, 20, 119),
}
#: Recordings of 58 s at a steady rate, of targets that held every request from 30 to 42 s: operations, completed.
HELD = {
    "k6.json.gz": (OutputFormat.K6, 289),
    "k6.csv.gz": (OutputFormat.K6, 289),
    "vegeta.json.gz": (OutputFormat.VEGETA, 696),
    "vegeta.csv.gz": (OutputFormat.VEGETA, 696),
    "ycsb.txt": (OutputFormat.YCSB, 22_804),
    "go-ycsb.txt.gz": (OutputFormat.GO_YCSB, 23_000),
    "go-ycsb.csv.gz": (OutputFormat.GO_YCSB, 690),
    "scylla-bench.txt": (OutputFormat.SCYLLA_BENCH, 11_396),
    "rados-bench.txt": (OutputFormat.RADOS_BENCH, 9862),
    "latte.txt": (OutputFormat.LATTE, 8917),
    "latte.json.gz": (OutputFormat.LATTE, 8917),
    "elbencho.csv": (OutputFormat.ELBENCHO, 9399),
    "ycsb-timeseries.txt": (OutputFormat.YCSB, 22_799),
}
#: Other recordings: one whose threads stood still, a target that held every request, idle devices.
OTHERS = {
    "db_bench.txt": OutputFormat.DB_BENCH,
    "iostat.txt.gz": OutputFormat.IOSTAT,
    "iostat.json.gz": OutputFormat.IOSTAT,
    "sar.csv.gz": OutputFormat.SAR,
    "sar-loop.csv.gz": OutputFormat.SAR,
    "sar-loop.json.gz": OutputFormat.SAR,
    "scylla-bench-errors.txt": OutputFormat.SCYLLA_BENCH,
    "elbencho-mix.csv": OutputFormat.ELBENCHO,
    "rados-bench-read.txt": OutputFormat.RADOS_BENCH,
    "prometheus-quantile.json": OutputFormat.PROMETHEUS,
    "prometheus-summary.json": OutputFormat.PROMETHEUS,
    "prometheus-sums.json": OutputFormat.PROMETHEUS,
}


def text_of(name: str) -> list[str]:
    path = FILES / name
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode().splitlines()


def hlog(values: list[int], ratio: float, tag: str = "") -> list[str]:
    lines = ["#[Histogram log format version 1.3]", "#[StartTime: 100.000 (seconds since epoch)]", '"StartTimestamp"']
    for index, value in enumerate(values):
        payload = Histogram.from_values([(value, 100)]).encode()
        lines.append(f"{tag}{100 + 10 * index}.000,10.000,{value / ratio:.3f},{payload}")
    return lines


def warp(operations: int) -> list[str]:
    """Lines of warp, 10 ms apart, of 5 ms each."""
    names = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\tduration_ns"
    lines = [names]
    for number in range(operations):
        second, milliseconds = divmod(10 * number, 1000)
        start, end = (f"2026-09-21T14:{second // 60:02d}:{second % 60:02d}.{milliseconds + at:03d}Z" for at in (0, 5))
        lines.append(f"{number}\t0\tGET\tab\t1\t9\thttp://a\tx/{number}.rnd\t\t{start}\t\t{end}\t5000000")
    return [*lines, "# warp get --full"]
