"""`python -m cliffwatch.telemetry RUN_DIRECTORY --prometheus URL`: collect a run's telemetry, once.

Prints one JSON line: rows, parts, and in `missing` why the telemetry is incomplete. The worker starts it at intervals;
it can be started by hand for as long as Prometheus still has the missing samples.
"""

import argparse
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from cliffwatch.base.errors import Problem
from cliffwatch.model.settings import read_settings
from cliffwatch.telemetry.address import PrometheusAddress, address_of
from cliffwatch.telemetry.collector import collect_telemetry
from cliffwatch.telemetry.result import Result


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cliffwatch.telemetry", description="Collect telemetry.")
    parser.add_argument("directory", type=Path, help="the run's directory, which holds its journal")
    parser.add_argument("--prometheus", required=True, metavar="URL", help="such as http://127.0.0.1:9890")
    parser.add_argument("--until", type=float, metavar="MOMENT", help="seconds since the epoch; now unless given")
    parser.add_argument("--seconds", type=float, default=300.0, help="give up after so long (default: 300)")
    given = parser.parse_args(arguments)
    # The measured load has priority.
    os.nice(10)
    # End this process even if something hangs, such as a disk.
    signal.setitimer(signal.ITIMER_REAL, given.seconds + 5)
    try:
        until = time.time() if given.until is None else given.until
        server = PrometheusAddress(given.prometheus)
        named = partial(address_of, read_settings())
        result = collect_telemetry(given.directory, server, until, given.seconds, named)
    except (OSError, Problem) as error:
        result = Result(missing=f"the journal does not take it: {error}")
    print(result.to_line(), end="", flush=True)
    return 0 if not result.missing else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
