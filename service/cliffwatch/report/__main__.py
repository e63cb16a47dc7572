"""`python -m cliffwatch.report RUN_DIRECTORY` prints the verdict as one JSON line and makes both files of a report."""

import argparse
import json
import sys
from pathlib import Path

from cliffwatch.report.build import build, write


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cliffwatch.report", description="Make a run's report.")
    parser.add_argument("directory", type=Path, help="the run's directory, which holds its journal")
    directory: Path = parser.parse_args(arguments).directory
    try:
        report = build(directory)
        # The verdict must not be lost to a disk that has no room for the files.
        verdict = {"verdict": report.verdict.name.value, "reasons": list(report.verdict.reasons)}
        print(json.dumps(verdict), flush=True)
        write(directory, report)
    except OSError as error:
        print(f"the report of {directory} could not be made: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
