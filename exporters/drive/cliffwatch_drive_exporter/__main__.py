"""`python -m cliffwatch_drive_exporter`: serve the drives' metrics until SIGTERM or SIGINT."""

import argparse
import ipaddress
import logging
import signal
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from cliffwatch.base.clock import SystemClock
from cliffwatch_drive_exporter.commands import PROGRAM, TIMEOUT_SECONDS
from cliffwatch_drive_exporter.controllers import SYS
from cliffwatch_drive_exporter.metrics import DriveCollector
from cliffwatch_drive_exporter.poll import SHORTEST_INTERVAL_SECONDS, Drives

DEFAULT_ADDRESS = "127.0.0.1:9895"
_USAGE_STATUS = 2
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LONGEST_TIMEOUT_SECONDS = 60.0


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address on loopback; write {DEFAULT_ADDRESS}")
    return host.strip("[]"), int(port)


class _Seconds:
    """Argument parser for a number of seconds within bounds."""

    def __init__(self, lowest: float, highest: float | None = None) -> None:
        self._lowest, self._highest = lowest, highest

    def __call__(self, text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if seconds < self._lowest or (self._highest is not None and seconds > self._highest):
            bounds = f"{self._lowest:g} or more" if self._highest is None else f"{self._lowest:g} to {self._highest:g}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds; write {bounds}")
        return seconds


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m cliffwatch_drive_exporter",
        description="Exports NVMe drive health and NAND writes to Prometheus, read with nvme-cli.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--web.listen-address", dest="address", type=_address, default=DEFAULT_ADDRESS, help="default: %(default)s"
    )
    parser.add_argument(
        "--poll.interval-seconds",
        dest="interval",
        type=_Seconds(SHORTEST_INTERVAL_SECONDS),
        default=SHORTEST_INTERVAL_SECONDS,
        help="poll interval of each drive, independent of the scrape interval; default and minimum: %(default)g",
    )
    parser.add_argument(
        "--poll.timeout-seconds",
        dest="timeout",
        type=_Seconds(0.1, _LONGEST_TIMEOUT_SECONDS),
        default=TIMEOUT_SECONDS,
        help="timeout of one nvme-cli command; default: %(default)g",
    )
    parser.add_argument("--path.sysfs", dest="sys", type=Path, default=SYS, help="default: %(default)s")
    parser.add_argument("--nvme.program", dest="program", default=PROGRAM, help="nvme-cli; default: %(default)s")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    given = _arguments(words)
    # Before any thread starts, since threads inherit the mask: only the main thread receives and awaits these signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, _END_SIGNALS)
    drives = Drives(SystemClock(), given.interval, sys=given.sys, program=given.program, timeout_seconds=given.timeout)
    registry = CollectorRegistry()
    registry.register(DriveCollector(drives.statuses))
    ProcessCollector(registry=registry)
    host, port = given.address
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        print(f"--web.listen-address: {host}:{port} cannot be listened on: {error.strerror}", file=sys.stderr)
        return _USAGE_STATUS

    drives.look()
    while signal.sigtimedwait(_END_SIGNALS, given.interval) is None:
        drives.look()
    drives.end()
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
