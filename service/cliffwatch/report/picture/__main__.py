"""`python -m cliffwatch.report.picture RUN_DIRECTORY` prints a run's picture, as PNG."""

import argparse
import sys
from pathlib import Path

import numpy as np

from cliffwatch.base.memory_limit import limit_memory, memory_errors
from cliffwatch.report.build import build
from cliffwatch.report.picture.drawing import draw
from cliffwatch.report.process import MEMORY_LIMIT_BYTES, out_of_memory


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cliffwatch.report.picture", description="Print a run's picture, as PNG."
    )
    parser.add_argument("directory", type=Path, help="the run's directory, which holds its journal")
    directory: Path = parser.parse_args(arguments).directory
    # OpenBLAS allocates its memory with its first calculation, and ends the process where it gets none.
    np.linalg.inv(np.eye(3))
    limit_memory(MEMORY_LIMIT_BYTES)
    try:
        with memory_errors():
            picture = draw(build(directory))
        sys.stdout.buffer.write(picture)
        sys.stdout.buffer.flush()
    except MemoryError:
        print(f"the picture of {directory} could not be made: {out_of_memory()}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"the picture of {directory} could not be made: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
