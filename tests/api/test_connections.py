"""More connections than the service takes, and bodies that are larger than it reads: real sockets."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
from testkit.waiting import wait_until
from tests.api.harness import Api, serving

from cliffwatch.http.figures import DISCARDED_BYTES
from cliffwatch.model.settings import Settings

#: For a busy machine.
PATIENCE_SECONDS = 30.0
POST = b"POST /api/v1/runs HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"


@contextmanager
def clients(api: Api, count: int) -> Iterator[list[socket.socket]]:
    url = urlsplit(str(api.client.base_url))
    with ExitStack() as held:
        yield [
            held.enter_context(socket.create_connection((url.hostname, url.port), PATIENCE_SECONDS))
            for _ in range(count)
        ]


def test_one_connection_too_many_is_answered_503_and_is_served_when_others_have_ended(settings: Settings) -> None:
    with serving(settings, open_files=16) as api:
        # The client of the harness has one of the eight.
        with clients(api, 7):
            wait_until(lambda: api.client.get("/healthz").status_code == 503, "the limit", PATIENCE_SECONDS)
        wait_until(lambda: api.client.get("/healthz").status_code == 200, "room", PATIENCE_SECONDS)


def test_a_body_that_is_too_large_is_answered_when_all_of_it_is_sent(api: Api) -> None:
    whole_bytes = 20_000_000
    with clients(api, 1) as [client]:
        client.sendall(POST + b"Content-Length: %d\r\n\r\n" % whole_bytes + b" " * whole_bytes)
        answer = client.makefile("rb").read(64 * 1024)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert b'"code":"body_too_large"' in answer


def test_a_connection_is_ended_whose_body_is_too_large_and_never_ends(api: Api) -> None:
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with clients(api, 1) as [client]:
        client.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.sendall(piece * (4 * DISCARDED_BYTES // len(piece)))
