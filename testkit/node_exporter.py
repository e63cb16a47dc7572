"""The real node_exporter, with the counters of every block device, loop devices too."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def node_exporter(port: int) -> Iterator[None]:
    options = ["--collector.disable-defaults", "--collector.diskstats", "--collector.diskstats.device-exclude=^$"]
    address = f"--web.listen-address=127.0.0.1:{port}"
    process = subprocess.Popen(["prometheus-node-exporter", *options, address, "--log.level=error"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
