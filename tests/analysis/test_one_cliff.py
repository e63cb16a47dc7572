"""One cliff is one finding: also when the latency falls twice, and when the two operations do not fall at once."""

import math
import random
from pathlib import Path

import numpy as np
from testkit.recorded_runs import JournalPlan, make_journal

from cliffwatch.analysis.finding import FindingKind
from cliffwatch.analysis.journal_series import samples_from_windows
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import JournalReader

WINDOWS, FIRST_FALL, SECOND_FALL = 170, 72, 128
OPERATIONS = 200


def p99_seconds(operation: str, index: int) -> float:
    """A noisy healthy level, twelve or twenty times that from the first fall on, and a thousand times in the end."""
    level = {"append": 0.008, "sync": 0.006, "write": 0.0035}[operation]
    if index >= FIRST_FALL:
        level *= 20 if operation == "write" else 12
    if index >= SECOND_FALL:
        level *= math.exp(min(4.5, 0.2 * (index - SECOND_FALL)))
    return level * random.Random(f"{operation} {index}").lognormvariate(0, 0.6)


def latency(index: int) -> dict[str, Histogram]:
    histograms = {}
    for place, operation in enumerate(("append", "sync", "write")):
        histogram = histograms[operation] = Histogram()
        spread = np.random.default_rng(3 * index + place).lognormal(0, 0.3, OPERATIONS)
        histogram.record_many(np.rint(spread * p99_seconds(operation, index) / 2 * 1e9).astype(np.int64))
    return histograms


def counters(index: int) -> dict[str, int]:
    slow = 20.0 if index >= SECOND_FALL else 2.0 if index >= FIRST_FALL else 0.3
    moved = {"written_bytes": OPERATIONS * 16_384, "device_written_bytes": OPERATIONS * 16_384}
    return moved | {"device_write_operations": 400, "device_write_milliseconds": round(400 * slow)}


PLAN = JournalPlan(
    windows=WINDOWS,
    window_seconds=1.0,
    warm_up_windows=10,
    baseline_windows=40,
    target="directory:/data",
    facts={
        "target": {"kind": "directory"},
        "drives": [{"name": "nvme0n1", "major_minor": "259:0", "serial": "S1"}],
    },
    latency=latency,
    counters=counters,
)


def test_a_fall_in_two_stages_is_one_cliff_with_its_worst(tmp_path: Path) -> None:
    windows = list(JournalReader(make_journal(tmp_path, PLAN)).windows())
    found = analysis(*samples_from_windows(windows), [], PLAN.window_seconds)
    cliffs = [finding for finding in found if finding.kind is FindingKind.CLIFF]
    assert [cliff.series for cliff in cliffs] == ["append.p99"]
    size = cliffs[0].size
    assert size is not None
    assert size.worst > 20 * size.level > 100 * size.baseline.level
    assert {"sync.p99", "write.p99"} <= {affected.series for affected in cliffs[0].affected}
