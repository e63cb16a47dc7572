"""How formats and units are called on the command line; apart, so that the command is quick where it reads none."""

from enum import StrEnum


class OutputFormat(StrEnum):
    """Whose output a file is."""

    PGBENCH = "pgbench"
    SYSBENCH = "sysbench"
    FIO_LOG = "fio-log"
    FIO_JSON = "fio-json"
    PRODUCER_PERF = "producer-perf"
    OMB = "omb"
    HLOG = "hlog"


class LatencyUnit(StrEnum):
    """What latencies are in, of a format that does not say so."""

    NANOSECONDS = "ns"
    MICROSECONDS = "us"
    MILLISECONDS = "ms"
    SECONDS = "s"
