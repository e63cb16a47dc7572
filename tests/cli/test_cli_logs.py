"""The logs of a service that is up: no client can fill the journals' disk with them."""

import socket

from testkit.waiting import wait_until
from tests.cli.machine import Machine

from cliffwatch.base.logs import LIMIT_BYTES


def test_neither_hostile_requests_nor_a_worker_fill_the_disk_with_logs(idle: Machine) -> None:
    idle.run("up")
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", idle.port)) as client:
            client.sendall(b"\x16\x03\x01 no request\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    service_log = idle.state / "service.log"
    assert service_log.read_text().count("Invalid HTTP request") == 1
    order = ("run", "start", idle.workload("long", window="1s", load="time: real"), "--target", "synthetic:long")
    idle.run(*order, "--id", "long")
    run = idle.state / "runs" / "long"
    for log in (service_log, run / "worker.log"):
        wait_until(log.exists, f"there is {log}")
        with log.open("ab") as file:
            file.write(b"x" * (LIMIT_BYTES + 1))
        wait_until(lambda log=log: log.stat().st_size <= LIMIT_BYTES, f"{log} is bounded")  # type: ignore[misc]
        old = log.with_suffix(".old")
        assert (old.stat().st_size, old.stat().st_mode & 0o777) == (LIMIT_BYTES, 0o600)
