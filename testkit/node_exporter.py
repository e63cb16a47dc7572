"""The real node_exporter, with the counters of every block device, loop devices too."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def node_exporter(port: int, prefix: tuple[str, ...] = ()) -> Iterator[None]:
    """Run it on a port of 127.0.0.1; `prefix` begins its command."""
    options = ["--collector.disable-defaults", "--collector.diskstats", "--collector.diskstats.device-exclude=^$"]
    address = f"--web.listen-address=127.0.0.1:{port}"
    process = subprocess.Popen([*prefix, "prometheus-node-exporter", *options, address, "--log.level=error"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
