"""Partition of a signal into segments of constant level: least squared error, with a penalty for each segment."""

import numpy as np

from cliffwatch.analysis.run_arrays import Array

#: Rows up to which every one may be an edge: a week in blocks of a minute. Time grows with the square of the rows.
_PLACES_LIMIT = 10_080


def segment_edges(signal: Array, shortest: int, penalty: float) -> list[int]:
    """Rows at which the segments of the best partition begin, but for the first. `signal` has a row for each time and a
    column for each series; a segment has at least `shortest` rows, of which the signal has to have as many. Edges of a
    signal of more than `_PLACES_LIMIT` rows are multiples of a stride.

    Optimal partitioning (Jackson et al. 2005) with the pruning of PELT (Killick et al. 2012): a start that is worse
    than an edge at `end` is worse than that edge for every later end which leaves room for a segment after the edge.
    """
    stride = -(-len(signal) // _PLACES_LIMIT)
    places = np.append(np.arange(0, len(signal) - stride + 1, stride), len(signal))
    signal = signal - signal.mean(axis=0)
    least, count = -(-shortest // stride), len(places) - 1
    # Sums up to each place: a row of them for each series.
    sums = np.concatenate((np.zeros((signal.shape[1], 1)), np.cumsum(signal.T, axis=1)), axis=1)[:, places]
    # Of the best partition up to each place: its error with penalties, but for the sum of squares, which all partitions
    # have in common; and at which place its last segment begins.
    error, last = np.full(count + 1, np.inf), np.zeros(count + 1, dtype=np.int64)
    error[0] = -penalty
    starts, dropped_at = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for end in range(least, count + 1):
        starts, dropped_at = np.append(starts, end - least), np.append(dropped_at, count + 1)
        steps = sums[:, end, None] - sums[:, starts]
        errors = error[starts] - np.einsum("ij,ij->j", steps, steps) / (places[end] - places[starts])
        best = int(np.argmin(errors))
        error[end], last[end] = errors[best] + penalty, starts[best]
        dropped_at = np.where(errors > error[end], np.minimum(dropped_at, end + least), dropped_at)
        starts, dropped_at = starts[dropped_at > end], dropped_at[dropped_at > end]
    edges = [int(last[count])]
    while edges[-1] > 0:
        edges.append(int(last[edges[-1]]))
    return [int(places[edge]) for edge in edges[-2::-1]]
