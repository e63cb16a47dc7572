"""The partition of a signal is the best of all that are possible."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.analysis.offline import partition
from cliffwatch.analysis.offline.partition import segment_edges
from cliffwatch.analysis.run_arrays import Array


def cost(signal: Array, edges: tuple[int, ...] | list[int], penalty: float) -> float:
    bounds = [0, *edges, len(signal)]
    parts = [signal[begin:end] for begin, end in pairwise(bounds)]
    return sum(float(((part - part.mean(axis=0)) ** 2).sum()) + penalty for part in parts)


@given(
    rows=st.lists(st.tuples(st.integers(-9, 9), st.integers(-2, 2)), min_size=3, max_size=11),
    shortest=st.integers(1, 3),
    penalty=st.floats(0.5, 50),
)
def test_no_other_partition_is_better(rows: list[tuple[int, int]], shortest: int, penalty: float) -> None:
    signal = np.array(rows, dtype=np.float64)
    found = segment_edges(signal, shortest, penalty)
    possible = [
        edges
        for count in range(len(rows))
        for edges in combinations(range(1, len(rows)), count)
        if min(np.diff([0, *edges, len(rows)])) >= shortest
    ]
    assert tuple(found) in possible
    assert cost(signal, found, penalty) <= min(cost(signal, edges, penalty) for edges in possible) + 1e-9


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
