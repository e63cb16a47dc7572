"""Whether exact quantiles of merged histograms would show smaller changes than the detectors' levels of a block.

A level is the trimmed mean of a block's window quantiles. Its standard deviation is compared with that of the exact
quantile of all operations of the block, for log-normal latencies whose level also moves from window to window.
`python -m bench.merged_quantiles` prints the ratios; below 1, merging would gain something.
"""

import numpy as np

from cliffwatch.analysis.preprocessing import block_level
from cliffwatch.analysis.span_lengths import BLOCK

QUANTILE, WIDTH, BLOCKS = 0.99, 1.0, 400
OPERATIONS = (100, 400, 2_000, 20_000)
#: Standard deviations of the level from window to window.
MOVES = (0.0, 0.05, 0.1)


def ratio(operations: int, moves: float, seed: int = 1) -> float:
    """Standard deviation of the exact quantile of blocks / that of their levels; `operations` in a window."""
    random = np.random.default_rng(seed)
    levels, exact = [], []
    for _ in range(BLOCKS):
        values = WIDTH * random.standard_normal((BLOCK, operations)) + moves * random.standard_normal((BLOCK, 1))
        levels.append(block_level(np.quantile(values, QUANTILE, axis=1, method="inverted_cdf").tolist()))
        exact.append(float(np.quantile(values, QUANTILE, method="inverted_cdf")))
    return float(np.std(exact) / np.std(levels))


def main() -> None:
    print("operations in a window: " + "  ".join(f"{operations:>6,}" for operations in OPERATIONS))
    for moves in MOVES:
        ratios = "  ".join(f"{ratio(operations, moves):>6.2f}" for operations in OPERATIONS)
        print(f"level moves by {moves:4.0%}:     {ratios}")


if __name__ == "__main__":
    main()
