"""The evidence of a run with which nothing is wrong."""

from cliffwatch.analysis.coverage import Coverage, Gap
from cliffwatch.analysis.run_evidence import LoadEnd, RunEvidence

GIB = 2**30

#: A run against a drive with which nothing is wrong.
SOUND = RunEvidence(
    load_end=LoadEnd.COMPLETED,
    coverage=Coverage(asked_seconds=3600.0, measured_seconds=3600.0),
    windows=360,
    target_kind="directory",
    has_drive=True,
    operations=1_000_000,
    written_bytes=100 * GIB,
    read_bytes=10 * GIB,
    device_written_bytes=102 * GIB,
    device_read_bytes=10 * GIB,
    recorded_latencies=1_000_000,
)


def covered(measured_seconds: float) -> Coverage:
    return Coverage(10_000.0, measured_seconds, (Gap(measured_seconds, 10_000.0, "unexplained"),))
