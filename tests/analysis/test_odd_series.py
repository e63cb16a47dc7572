"""Degenerate series: detection says something finite of them, or nothing, and never breaks."""

import math

import numpy as np
import pytest

from cliffwatch.analysis.finding import Notice, Sample
from cliffwatch.analysis.offline.changes import analyse
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.table import COLUMNS

LENGTHS = (0, 1, 2, 23, 24, 25, 61, 299, 701, 1501)
SHAPES = ("constant", "noisy", "missing", "half", "zero", "jump", "huge", "tick")


def value(shape: str, index: int, count: int, random: np.random.Generator) -> float | None:
    match shape:
        case "constant":
            return 0.01
        case "noisy":
            return float(0.01 * np.exp(random.normal(0, 0.3)))
        case "half":
            return 0.01 if random.random() < 0.5 else None
        case "zero":
            return 0.0
        case "jump":
            return 0.1 if index > 0.6 * count else 0.01
        case "huge":
            return float(1e300 * random.random())
        case "tick":
            return float(random.integers(3, 6)) / 1000
    return None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", LENGTHS)
def test_odd_series_break_nothing(count: int, seed: int) -> None:
    random = np.random.default_rng((count, seed))
    shapes = {name: str(random.choice(SHAPES)) for name in COLUMNS if random.random() < 0.6} or {"p99": "tick"}
    samples, at = [], 0.0
    for index in range(count):
        values = {name: value(shape, index, count, random) for name, shape in shapes.items()}
        seconds = float(random.choice([10.0, 10.0, 10.5, 9.0, 30.0]))
        samples.append(Sample(at, at + seconds, {name: v for name, v in values.items() if v is not None}))
        at += seconds if random.random() > 0.01 else 4000.0
    notices = [Notice(float(random.random() * at), "restart") for _ in range(int(random.integers(0, 3)))]
    series = [COLUMNS[name] for name in shapes]
    for finding in [*replay(series, samples, notices, 10.0), *analyse(series, samples, notices, 10.0)]:
        assert all(map(math.isfinite, (finding.onset, finding.baseline, finding.level, finding.ratio)))
        assert 0 <= finding.confidence <= 1
