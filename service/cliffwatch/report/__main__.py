"""`python -m cliffwatch.report RUN_DIRECTORY` prints the verdict as one JSON line and makes both files of a report."""

import argparse
import json
import sys
from pathlib import Path

from cliffwatch.journal.files import is_full
from cliffwatch.report.build import build, write
from cliffwatch.report.errand import DISK_FULL


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cliffwatch.report", description="Make a run's report.")
    parser.add_argument("directory", type=Path, help="the run's directory, which holds its journal")
    parser.add_argument("--to", type=Path, metavar="DIRECTORY", help="where to put the files; beside the journal else")
    given = parser.parse_args(arguments)
    directory: Path = given.directory
    try:
        report = build(directory)
        # The verdict must not be lost to a disk that has no room for the files.
        verdict = {"verdict": report.verdict.name.value, "reasons": list(report.verdict.reasons)}
        print(json.dumps(verdict), flush=True)
        write(given.to or directory, report)
    except OSError as error:
        print(f"the report of {directory} could not be made: {error}", file=sys.stderr)
        return DISK_FULL if is_full(error) else 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
