"""Clients that never come to the end of a request, that take no answer, or that are too many: real sockets."""

import json
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from testkit.service import Service
from testkit.waiting import wait_until
from tests.api.harness import ORDER, Api, serving

from cliffwatch.http.connections import Bounds
from cliffwatch.http.figures import DISCARDED_BYTES
from cliffwatch.journal import Event, EventLog, EventType
from cliffwatch.model.settings import Settings, read_settings

#: What a busy machine may add; far below what an open connection is kept for without bounds.
SLACK_SECONDS = 30.0
BOUNDS = Bounds(headers_seconds=1.0, body_seconds=1.5, answer_seconds=1.0)
#: 105 kB are the answer.
ASK_MUCH = b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n"
ASK_AND_CLOSE = ASK_MUCH.replace(b"here", b"here\r\nConnection: close")
#: Far less than an answer, so that a client which reads slowly is seen to.
SMALL_BYTES = 2304
POST = b"POST /api/v1/runs HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n"


@contextmanager
def clients(
    api: Api, count: int, say: tuple[bytes, ...] = (b"",), receive_bytes: int | None = None
) -> Iterator[list[socket.socket]]:
    """Connections of one address; of what there is to say, each says one thing, in turn."""
    url = urlsplit(str(api.client.base_url))
    with ExitStack() as held:
        opened = []
        for number in range(count):
            client = held.enter_context(socket.socket())
            if receive_bytes is not None:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            client.connect((url.hostname, url.port))
            client.sendall(say[number % len(say)])
            opened.append(client)
        yield opened


def ended(opened: list[socket.socket], seconds: float, meanwhile: Callable[[], object] = lambda: None) -> list[bytes]:
    """What each of the connections received before the service ended it, all of them within the time."""
    reported = {client.fileno(): b"" for client in opened}
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as waiting:
        for client in opened:
            waiting.register(client, selectors.EVENT_READ, client)
        while waiting.get_map():
            assert time.monotonic() < deadline, f"{len(waiting.get_map())} connections are still open"
            meanwhile()
            for key, _ in waiting.select(0.05):
                try:
                    chunk = key.data.recv(65_536)
                except ConnectionResetError:
                    chunk = b""
                reported[key.fd] += chunk
                if not chunk:
                    waiting.unregister(key.fd)
    return list(reported.values())


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(read_settings(state_directory=tmp_path_factory.mktemp("state")), bounds=BOUNDS) as api:
        yield api


def test_300_half_open_requests_end_and_others_are_served_meanwhile(bounded: Api) -> None:
    answers: list[int] = []

    def ask() -> None:
        # Each over a connection of its own: one that is open already would prove nothing.
        answer = httpx.get(f"{bounded.client.base_url}/readyz", trust_env=False, timeout=SLACK_SECONDS)
        answers.append(answer.status_code)

    with clients(bounded, 300, (b"", b"GET /readyz HTTP/1.1\r\nHo", POST + b"\r\n{")) as opened:
        reported = ended(opened, BOUNDS.body_seconds + SLACK_SECONDS, ask)
    assert set(answers) == {200}
    # Who asked for nothing receives nothing, and 256 may be open for one address.
    said = {(text[9:12], json.loads(text.partition(b"\r\n\r\n")[2])["code"]) for text in reported if text}
    assert (b"408", "request_timeout") in said
    assert said <= {(b"408", "request_timeout"), (b"503", "too_many_connections")}


@pytest.mark.parametrize(
    ("start", "drop"),
    [(b"GET /readyz HTTP/1.1\r\n", b"A: b\r\n"), (POST + b"\r\n", b" "), (b"GET /readyz HTTP/1.1\r\n", b"")],
    ids=["headers", "body", "silence"],
)
def test_a_request_that_comes_in_drops_does_not_last_longer(bounded: Api, start: bytes, drop: bytes) -> None:
    with clients(bounded, 1, (start,)) as [client]:

        def send() -> None:
            try:
                client.sendall(drop)
            except OSError:
                return  # it was ended; what it received is read next

        [reported] = ended([client], BOUNDS.body_seconds + SLACK_SECONDS, send)
    assert reported.startswith(b"HTTP/1.1 408 ") or reported == b""  # reset by the drops that came after the answer


def test_a_service_of_few_files_is_there_beside_a_hundred_slow_clients(tmp_path: Path) -> None:
    with Service(tmp_path / "state", ("prlimit", "--nofile=64:64")) as service, ExitStack() as held:
        for _ in range(100):
            slow = held.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            slow.sendall(b"GET /healthz HTTP/1.1\r\n")
        for _ in range(10):
            # A new connection each, with less patience than what the slow ones are left.
            answer = httpx.get(service.client.base_url.join("/api/v1/runs"), headers=service.client.headers, timeout=5)
            assert answer.status_code == 200


def test_an_upload_that_stops_is_ended_and_leaves_nothing(bounded: Api) -> None:
    head = (
        f"POST /api/v1/runs/import HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {bounded.tokens['operate']}\r\n"
        "Content-Type: application/zstd\r\nContent-Length: 100000000\r\n\r\n"
    )
    with clients(bounded, 1, (head.encode() + b"x" * 3_000_000,)) as [client]:
        [reported] = ended([client], 2 * BOUNDS.body_seconds + SLACK_SECONDS)
    assert b'"code":"request_timeout"' in reported
    wait_until(
        lambda: not [*bounded.settings.runs_directory.glob("*.tar.zst")], "a directory without it", SLACK_SECONDS
    )


def test_a_body_that_goes_on_may_take_its_time(bounded: Api) -> None:
    began = time.monotonic()

    def pieces() -> Iterator[bytes]:
        while time.monotonic() < began + 2 * BOUNDS.body_seconds:
            yield b" " * 4096
            time.sleep(0.05)
        yield b"{}"

    answer = bounded.post("/runs", content=pieces(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")


def test_who_sends_all_of_a_body_that_is_too_large_reads_the_answer(bounded: Api) -> None:
    whole_bytes = 20_000_000
    request = POST.replace(b"Length: 900000", b"Length: %d" % whole_bytes) + b"\r\n"
    with clients(bounded, 1, (request,)) as [client]:
        client.sendall(b" " * whole_bytes)
        [answer] = ended([client], SLACK_SECONDS)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert b'"code":"body_too_large"' in answer


def test_who_never_ends_a_body_that_is_too_large_is_let_go(bounded: Api) -> None:
    request = POST.replace(b"Content-Length: 900000", b"Transfer-Encoding: chunked") + b"\r\n"
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with clients(bounded, 1, (request,)) as [client]:
        client.settimeout(SLACK_SECONDS)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.sendall(piece * (4 * DISCARDED_BYTES // len(piece)))


def test_who_takes_no_answer_is_let_go(bounded: Api) -> None:
    def send_until_reset(client: socket.socket) -> None:
        deadline = time.monotonic() + 2 * SLACK_SECONDS
        while time.monotonic() < deadline:
            client.sendall(ASK_MUCH)
            time.sleep(0.02)

    # More answers than the kernel takes for a client that reads none.
    with clients(bounded, 1, (ASK_MUCH * 200,), receive_bytes=4096) as [client]:
        client.settimeout(2 * SLACK_SECONDS)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_until_reset(client)


def test_who_takes_an_answer_too_slowly_is_let_go(bounded: Api) -> None:
    with clients(bounded, 1, (ASK_MUCH * 40,), receive_bytes=SMALL_BYTES) as [client]:
        client.settimeout(SLACK_SECONDS)
        # A tenth of what is asked for, and never nothing for as long as a period.
        began, taken_bytes = time.monotonic(), 0
        while chunk := client.recv(BOUNDS.answer_bytes // 50):
            taken_bytes += len(chunk)
            assert time.monotonic() < began + BOUNDS.answer_seconds + 2 * SLACK_SECONDS, "it may go on for ever"
            time.sleep(BOUNDS.answer_seconds / 5)
    assert taken_bytes < BOUNDS.answer_bytes


def test_who_takes_an_answer_at_the_least_rate_has_all_of_it(bounded: Api) -> None:
    with clients(bounded, 1, (ASK_MUCH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),), SMALL_BYTES) as [
        client
    ]:
        client.settimeout(SLACK_SECONDS)
        began, answer = time.monotonic(), b""
        while chunk := client.recv(BOUNDS.answer_bytes // 20):
            answer += chunk
            # Once and a half of what is asked for.
            ahead_seconds = len(answer) / (1.5 * BOUNDS.answer_bytes / BOUNDS.answer_seconds)
            time.sleep(max(0.0, began + ahead_seconds - time.monotonic()))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["openapi"]


def test_a_request_that_came_along_with_another_has_its_time(bounded: Api) -> None:
    request = b"GET /readyz HTTP/1.1\r\nHost: here\r\n\r\n" + POST + b"\r\n{"
    with clients(bounded, 1, (request,)) as opened:
        [reported] = ended(opened, BOUNDS.body_seconds + SLACK_SECONDS)
    assert reported.count(b"HTTP/1.1 ") == 2
    assert b'"code":"request_timeout"' in reported


def test_all_that_came_along_with_a_request_is_answered_to_who_reads(bounded: Api) -> None:
    last = b"GET /readyz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    with clients(bounded, 1, (ASK_MUCH * 40 + last,)) as opened:
        [reported] = ended(opened, 2 * SLACK_SECONDS)
    assert reported.count(b"HTTP/1.1 200 ") == 41


def test_who_leaves_an_answer_makes_room_and_a_download_that_goes_on_does_not(settings: Settings) -> None:
    with serving(settings, bounds=Bounds(connections_of_an_address=6)) as api, ExitStack() as held:
        slow: list[socket.socket] = []
        while len(slow) < 6:
            # One after the other, so that the place that is given up is the harness's own.
            slow += held.enter_context(clients(api, 1, (ASK_MUCH * 40,), SMALL_BYTES))
            assert slow[-1].recv(1)

        def is_answered(client: httpx.Client) -> bool:
            for other in slow:
                # Whatever it takes, it is too little.
                with suppress(BlockingIOError, ConnectionResetError):
                    other.recv(16, socket.MSG_DONTWAIT)
            with suppress(httpx.TransportError):
                return client.get("/healthz").status_code == 200
            return False

        def another_is_answered() -> None:
            client = httpx.Client(base_url=api.client.base_url, trust_env=False, timeout=SLACK_SECONDS)
            held.enter_context(client)
            wait_until(partial(is_answered, client), "an answer to another client", 2 * SLACK_SECONDS)

        another_is_answered()
        [download] = held.enter_context(clients(api, 1, (ASK_AND_CLOSE,), SMALL_BYTES))
        download.settimeout(SLACK_SECONDS)
        answer = bytearray()
        for _ in range(8):
            answer += download.recv(2048)
            another_is_answered()
        while chunk := download.recv(65_536):
            answer += chunk
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["openapi"]


def test_only_those_that_wait_make_room(settings: Settings) -> None:
    with serving(settings, bounds=Bounds(connections_of_an_address=3)) as api:
        api.put("/runs/one", ORDER, headers={"Connection": "close"}).raise_for_status()
        url, headers = str(api.client.base_url), {"Authorization": f"Bearer {api.tokens['read']}"}
        with clients(api, 3) as waiting, ExitStack() as held:
            streams = []
            # There is no place left but that of the oldest that waits.
            for oldest in waiting:
                client = held.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=30))
                stream = held.enter_context(client.stream("GET", "/api/v1/runs/one/live", headers=headers))
                # Kept: a response whose lines nobody holds any more is closed.
                streams.append(stream.iter_lines())
                assert next(streams[-1]).startswith("id:")
                [reported] = ended([oldest], SLACK_SECONDS)
                assert b'"code":"too_many_connections"' in reported
            with clients(api, 1) as fourth:
                [reported] = ended(fourth, SLACK_SECONDS)
            assert reported.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 5" in reported.lower()


def test_a_live_stream_outlasts_every_bound(bounded: Api) -> None:
    bounded.put("/runs/one", ORDER).raise_for_status()
    headers = {"Authorization": f"Bearer {bounded.tokens['read']}"}
    with bounded.client.stream("GET", "/api/v1/runs/one/live", headers=headers) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("id:")
        # What begins to wait now waits no longer than a part of a request may take.
        with clients(bounded, 1, (POST + b"\r\n{",)) as opened:
            ended(opened, BOUNDS.body_seconds + SLACK_SECONDS)
        log = EventLog(bounded.settings.runs_directory / "one")
        log.append(Event(time.time(), EventType.NOTE, "still_there", {}))
        assert any("still_there" in line for line in lines)
