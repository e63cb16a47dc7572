"""`python -m cliffwatch.observer LOAD START STOP WINDOW`: print the windows of a load that others make.

LOAD is the workload's `load` as JSON, START and STOP are in seconds since the epoch, WINDOW in seconds. Prometheus
holds the samples: while it cannot be reached no window is printed, and once it can be, those that were missed are
printed first. With `--check`, print as JSON whether the load can be observed, and end.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.engines.observe import ObserveLoad
from cliffwatch.engines.run_time import run_time
from cliffwatch.model.settings import read_settings
from cliffwatch.model.window import EngineEnd, EngineEvent, EngineRecord, format_engine_line
from cliffwatch.observer.system import Check, ObservedSystem
from cliffwatch.telemetry.address import PrometheusAddress, address_of
from cliffwatch.telemetry.prometheus import QueryFailed

MISSING, RESUMED = "metrics_missing", "metrics_resumed"
#: A window is read so long after its end at most: exporters answer within that, as a rule. Later samples count in the
#: next one.
_SCRAPE_SECONDS = 2.0
_POLL_SECONDS, _RETRY_SECONDS = 0.2, 1.0
#: As many failed queries in a row are an outage; fewer are a restart.
_FAILURES = 3
#: How long after the end of the load an outage is waited for.
_AFTER_STOP_SECONDS = 10.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cliffwatch.observer", description="Observe a load.")
    parser.add_argument("load")
    for name in ("start", "stop", "window"):
        parser.add_argument(name, type=float)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    load = ObserveLoad.model_validate_json(given.load)
    try:
        server = _server_of(load)
    except Problem as problem:
        return _refuse(str(problem), given.check)
    system = ObservedSystem(load, server)
    if given.check:
        print(json.dumps(asdict(system.check(given.window, SystemClock()))))
        return 0
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    observe(system, given.start, given.stop, given.window, lambda: bool(stopping))
    return 0


def observe(
    system: ObservedSystem, start: float, stop: float, window_seconds: float, is_stopping: Callable[[], bool]
) -> None:
    """Print every window of the load, and its end. Times in seconds since the epoch."""
    outage, until = _Outage(), max(stop, run_time()) + _AFTER_STOP_SECONDS
    for number in range(round((stop - start) / window_seconds)):
        begin, end = start + number * window_seconds, start + (number + 1) * window_seconds
        if not _sleep_until(end + min(_SCRAPE_SECONDS, window_seconds / 2), is_stopping):
            break
        while not _print_window(system, begin, end, number, outage):
            if run_time() > until or not _sleep_until(run_time() + _RETRY_SECONDS, is_stopping):
                _print(EngineEnd("completed"))
                return
    _print(EngineEnd("completed"))


def _print_window(system: ObservedSystem, begin: float, end: float, number: int, outage: "_Outage") -> bool:
    """Print a window, if Prometheus has samples of it; False where the query failed."""
    try:
        window = system.window(begin, end)
    except QueryFailed as error:
        _print(outage.failed(str(error)))
        return False
    _print(outage.succeeded())
    if window is not None:
        print(format_engine_line(window, number), flush=True)
    return True


class _Outage:
    """Consecutive failed queries, as events of their start and end."""

    def __init__(self) -> None:
        self._failures = 0

    def failed(self, reason: str) -> EngineEvent | None:
        self._failures += 1
        return EngineEvent(run_time(), MISSING, {"reason": reason}) if self._failures == _FAILURES else None

    def succeeded(self) -> EngineEvent | None:
        failures, self._failures = self._failures, 0
        return EngineEvent(run_time(), RESUMED) if failures >= _FAILURES else None


def _print(record: EngineRecord | None) -> None:
    if record is not None:
        print(format_engine_line(record), flush=True)


def _sleep_until(moment: float, is_stopping: Callable[[], bool]) -> bool:
    """Sleep until a moment of the run's time; False where the process is to stop."""
    while not is_stopping():
        left = moment - run_time()
        if left <= 0:
            return True
        time.sleep(min(left, _POLL_SECONDS))
    return False


def _server_of(load: ObserveLoad) -> PrometheusAddress:
    """The Prometheus that the load names. Raises Problem where it is not known, or none is configured."""
    server = address_of(read_settings(), load.prometheus)
    if server is None:
        hint = "telemetry is turned off: set CLIFFWATCH_PROMETHEUS_URL, or name a server in load.prometheus"
        raise Problem(Code.BAD_REQUEST, hint)
    return server


def _refuse(reason: str, is_check: bool) -> int:
    """Report that no Prometheus is known, as the answer of a check or the end of the load."""
    if is_check:
        print(json.dumps(asdict(Check(refused=[reason]))))
        return 0
    _print(EngineEnd("failed", reason, restart=False))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
