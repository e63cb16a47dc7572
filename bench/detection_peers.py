"""Other change-detection methods on the same soaks, each as it is commonly used; they see only p99."""

import json
import math
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from testkit.soaks.soak import Soak

from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.offline.partition import segment_edges

#: A change by a smaller ratio is not counted as a finding, whatever the method.
_RATIO = 1.2
_OTAVA = """
import json, sys
from otava.series import Series, AnalysisOptions
options = AnalysisOptions()
options.min_magnitude = 0.2
for line in sys.stdin:
    body = json.loads(line)
    series = Series("soak", None, body["times"], {}, {"p99": body["values"]}, {})
    found = series.analyze(options).change_points["p99"]
    print(json.dumps([[point.time, point.forward_change_percent()] for point in found]), flush=True)
"""


def medians(soak: Soak, windows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times and natural logarithms of p99, as medians of `windows` windows each."""
    values = soak.columns["p99"]
    known = np.isfinite(values) & (values > 0)
    times, levels = soak.times[known], np.log(values[known])
    count = len(levels) // windows
    return times[: count * windows : windows], np.median(levels[: count * windows].reshape(count, windows), axis=1)


def kernel_bic(soak: Soak) -> list[Finding]:
    """PELT on 1-min log medians with a plain BIC penalty."""
    times, levels = medians(soak, 6)
    sigma = 1.4826 * float(np.median(np.abs(np.diff(levels)))) / 2**0.5
    penalty = 2 * math.log(len(levels)) * sigma**2
    bounds = [0, *segment_edges(levels[:, None], 5, penalty), len(levels)]
    means = [float(np.mean(levels[a:b])) for a, b in pairwise(bounds)]
    return [
        _finding(float(times[bounds[index]]), means[index - 1], means[index])
        for index in range(1, len(means))
        if means[index] - means[index - 1] >= math.log(_RATIO)
    ]


def page_hinkley(soak: Soak) -> list[Finding]:
    """Page-Hinkley test for a rise of log p99, by windows, after one warm-up hour; restarted after each alarm."""
    findings = []
    mean, gathered, lowest, count = 0.0, 0.0, 0.0, 0
    values = soak.columns["p99"]
    known = np.isfinite(values) & (values > 0) & (soak.times >= 3600)
    for at, level in zip(soak.times[known].tolist(), np.log(values[known]).tolist(), strict=True):
        count += 1
        mean += (level - mean) / count
        gathered += level - mean - 0.08
        lowest = min(lowest, gathered)
        if count > 360 and gathered - lowest > 15:
            findings.append(_finding(at, mean, level, detected=at + soak.window_seconds))
            mean, gathered, lowest, count = 0.0, 0.0, 0.0, 0
    return findings


def _finding(at: float, before: float, after: float, detected: float | None = None) -> Finding:
    return Finding(
        FindingKind.STEP, at, "p99", math.exp(before), math.exp(after), math.exp(after - before), 0.5, detected=detected
    )


class _Otava:
    """A process of Apache Otava in a virtual environment of its own, which is removed with it."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="otava-")
        path = Path(self._directory.name)
        subprocess.run([sys.executable, "-m", "venv", path], check=True)
        subprocess.run([path / "bin/pip", "install", "--quiet", "apache-otava"], check=True)
        self._process = subprocess.Popen(
            [path / "bin/python", "-c", _OTAVA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, soak: Soak) -> list[Finding]:
        times, levels = medians(soak, 30)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        body = {"times": [int(at) for at in times], "values": np.exp(levels).tolist()}
        self._process.stdin.write(json.dumps(body) + "\n")
        self._process.stdin.flush()
        points = json.loads(self._process.stdout.readline())
        return [
            _finding(float(at), 0.0, math.log1p(percent / 100))
            for at, percent in points
            if percent >= (_RATIO - 1) * 100
        ]

    def __del__(self) -> None:
        self._process.kill()
        self._process.wait()


def otava() -> _Otava:
    """Apache Otava with a minimum magnitude of 20 %."""
    return _Otava()


METHODS = [
    ("PELT, BIC penalty", kernel_bic, False),
    ("Page-Hinkley", page_hinkley, True),
]
