"""Names of output formats and latency units on the command line, in a module of their own so that it starts fast."""

from enum import StrEnum


class OutputFormat(StrEnum):
    """Format of a file: the program that wrote it."""

    PGBENCH = "pgbench"
    SYSBENCH = "sysbench"
    FIO_LOG = "fio-log"
    FIO_JSON = "fio-json"
    PRODUCER_PERF = "producer-perf"
    OMB = "omb"
    HLOG = "hlog"
    K6 = "k6"
    VEGETA = "vegeta"
    WARP = "warp"
    YCSB = "ycsb"
    GO_YCSB = "go-ycsb"
    CASSANDRA_STRESS = "cassandra-stress"
    SCYLLA_BENCH = "scylla-bench"
    LATTE = "latte"
    DB_BENCH = "db_bench"
    IOSTAT = "iostat"
    SAR = "sar"
    ELBENCHO = "elbencho"
    RADOS_BENCH = "rados-bench"
    PROMETHEUS = "prometheus"


class LatencyUnit(StrEnum):
    """Unit of latencies, for a format that does not state it."""

    NANOSECONDS = "ns"
    MICROSECONDS = "us"
    MILLISECONDS = "ms"
    SECONDS = "s"
