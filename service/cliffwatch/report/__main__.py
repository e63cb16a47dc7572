"""`python -m cliffwatch.report RUN_DIRECTORY`: print the conclusion as one JSON line, write the report's two files."""

import argparse
import json
import sys
from pathlib import Path

from cliffwatch.base.durable import is_full, takes_nothing
from cliffwatch.base.memory_limit import limit_memory, memory_errors
from cliffwatch.report.build import build, write
from cliffwatch.report.process import DISK_FULL, MEMORY_LIMIT_BYTES, UNWRITABLE, out_of_memory


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cliffwatch.report", description="Make a run's report.")
    parser.add_argument("directory", type=Path, help="the run's directory, which holds its journal")
    parser.add_argument("--to", type=Path, metavar="DIRECTORY", help="where to put the files; beside the journal else")
    given = parser.parse_args(arguments)
    directory: Path = given.directory
    limit_memory(MEMORY_LIMIT_BYTES)
    try:
        with memory_errors():
            report = build(directory)
            # The verdict must not be lost to a disk that has no room for the files.
            print(json.dumps(report.conclusion.detail()), flush=True)
            write(given.to or directory, report)
    except MemoryError:
        print(f"the report of {directory} could not be made: {out_of_memory()}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"the report of {directory} could not be made: {error}", file=sys.stderr)
        return DISK_FULL if is_full(error) else UNWRITABLE if takes_nothing(error) else 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
