import json
import socket
import subprocess
import sys
from pathlib import Path

from testkit.checkout import ROOT
from testkit.ports import HOST, free_port, free_ports

ASK = "import json; from testkit.ports import free_ports; print(json.dumps(free_ports(200)), flush=True); input()"


def test_processes_that_ask_at_once_are_given_different_ports() -> None:
    command = [sys.executable, "-c", ASK]
    pipe = subprocess.PIPE
    askers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) for _ in range(4)]
    given = []
    try:
        for asker in askers:
            assert asker.stdout is not None
            given += json.loads(asker.stdout.readline())
        given += free_ports(200)
    finally:
        for asker in askers:
            asker.communicate("\n")
    assert len(set(given)) == 5 * 200


def test_a_port_with_a_listener_is_not_given() -> None:
    with socket.socket() as listener:
        # The next one in turn: it would be given without the check.
        port = free_port() + 1
        while listener.connect_ex((HOST, port)) == 0:
            port += 1
    with socket.socket() as listener:
        listener.bind((HOST, port))
        listener.listen()
        assert port not in free_ports(50)


def test_no_connection_is_given_one_as_its_source() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(free_ports(20)) < lowest
