"""The partition of a signal is the best of all that are possible; and up to where the change at an edge lasts."""

from itertools import pairwise

import numpy as np
import pytest

from cliffwatch.analysis.offline import partition
from cliffwatch.analysis.offline.partition import segment_edges
from cliffwatch.analysis.offline.segments import ends_of_rises
from cliffwatch.analysis.run_arrays import Array


def cost(signal: Array, edges: list[int], penalty: float) -> float:
    bounds = [0, *edges, len(signal)]
    parts = [signal[begin:end] for begin, end in pairwise(bounds)]
    return sum(float(((part - part.mean(axis=0)) ** 2).sum()) + penalty for part in parts)


def least_cost(signal: Array, shortest: int, penalty: float) -> float:
    """Of the best partition, found by trying every begin of the last segment: nothing is pruned."""
    least = [0.0, *[np.inf] * len(signal)]
    for end in range(shortest, len(signal) + 1):
        least[end] = min(least[begin] + cost(signal[begin:end], [], penalty) for begin in range(end - shortest + 1))
    return least[-1]


@pytest.mark.parametrize("shortest", [1, 2, 5, 8])
def test_no_other_partition_is_better(shortest: int) -> None:
    random = np.random.default_rng(shortest)
    for _ in range(60):
        rows = int(random.integers(shortest, 40))
        signal = np.column_stack([random.integers(-9, 10, rows), random.integers(-2, 3, rows)]).astype(np.float64)
        penalty = random.uniform(0.5, 50)
        found = segment_edges(signal, shortest, penalty)
        assert min(np.diff([0, *found, rows])) >= shortest
        assert cost(signal, found, penalty) <= least_cost(signal, shortest, penalty) + 1e-6


def test_changes_of_either_series_are_edges() -> None:
    noise = np.random.default_rng(3).standard_normal((300, 2))
    noise[100:, 0] += 5
    noise[200:, 1] -= 5
    assert segment_edges(noise, 5, 30.0) == [100, 200]


def test_edges_of_a_long_signal_are_at_a_stride(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_PLACES_LIMIT", 100)
    noise = np.random.default_rng(4).standard_normal((1003, 1))
    noise[444:] += 5
    edges = segment_edges(noise, 5, 60.0)
    assert set(edges) <= {440, 451}
    assert edges


@pytest.mark.parametrize(
    ("levels", "ends"),
    [
        # A small edge within a rise does not end it, and is itself as long as before.
        ([0.0, 1.5, 1.52, 0.0], [60, 60, 80]),
        ([0.0, 1.5, 1.3, 0.0], [60, 60, 80]),
        # Half of the rise is gone, or what follows is a change itself.
        ([0.0, 1.0, 0.8, 0.6, 0.4], [80, 60, 80, 100]),
        ([0.0, 1.0, 2.0, 2.0], [40, 80, 80]),
        ([0.0, 0.1, 0.12, 0.0], [40, 60, 80]),
        ([1.0, 0.0, 0.1, 0.0], [40, 60, 80]),
    ],
)
def test_a_rise_lasts_until_it_has_come_back_or_changed_again(levels: list[float], ends: list[int]) -> None:
    column = np.repeat(np.array(levels), 20)
    assert ends_of_rises(column, list(range(20, 20 * len(levels), 20))) == ends
