"""How many connections there may be, and how long one may be open without a whole request on it.

A request that never comes to its end costs whoever sends it nothing, and the service a socket. So each part of one has
its time, and where there are too many connections, those that wait for a client make room for the next one: also for a
client that does not take its answer. A request that the service is at work on is never ended for want of room, and an
answer may take as long as it takes: a live stream too.
"""

import asyncio
import socket
from collections import Counter
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.problems import ProblemResponse

#: Connections that are accepted in one go, before any of them is read: fewer than make room for one another.
_BACKLOG = 128
#: So much of an answer is left to the kernel before the client's side has room for it. The kernel would take megabytes,
#: in steps of a third of that, and nobody could see how fast a client reads.
_KERNEL_BYTES = 16 * 1024
#: A client that is further behind the least rate of an answer than this has left it lying.
_LATE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a client may take of the service. docs/api.md says the same."""

    #: From a connection's start, or a request's first byte, to the end of its headers.
    headers_seconds: float = 10.0
    #: In each of these periods at least so many bytes of a body have to come, or its end.
    body_seconds: float = 15.0
    body_bytes: int = 16 * 1024
    #: In each of these periods a client has to take so many bytes of an answer that is ready for it, or all of it.
    answer_seconds: float = 60.0
    answer_bytes: int = 64 * 1024
    connections: int = 512
    connections_of_an_address: int = 256


def bounds_within(open_files: int) -> Bounds:
    """The bounds of a process that may open so many files: half of them are left to what answers need."""
    usual = Bounds()
    connections = min(usual.connections, max(2, open_files // 2))
    of_an_address = min(usual.connections_of_an_address, connections // 2)
    return replace(usual, connections=connections, connections_of_an_address=of_an_address)


class _Wait(IntEnum):
    """What a connection waits for; the first are the first to make room."""

    CLOSE = 0
    #: That a client takes an answer which it has left lying: before HEADERS, or those that come while all others wait
    #: for this would have to make room for one another.
    ANSWER_LEFT = 1
    HEADERS = 2
    NEXT_REQUEST = 3
    BODY = 4
    #: That a client takes the rest of an answer, which it does.
    ANSWER_TAKEN = 5


def http_options(bounds: Bounds | None = None) -> dict[str, Any]:
    """What uvicorn's configuration needs for connections to be bounded, for one server."""
    return {"http": partial(BoundedConnection, Connections(bounds or Bounds())), "ws": "none", "backlog": _BACKLOG}


class Connections:
    """All connections of a server, the oldest first. Used by its event loop alone."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._open: dict[BoundedConnection, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, new: "BoundedConnection") -> bool:
        """Make room for a connection; False when the service is at work for all others, and so this one cannot be."""
        addresses = Counter(other.address for other in self._open)
        room = True
        if addresses[new.address] >= self.bounds.connections_of_an_address:
            room = self._end_one_of(new.address)
        elif len(self._open) >= self.bounds.connections:
            room = self._end_one_of(addresses.most_common(1)[0][0])
        self._open[new] = None
        return room

    def discard(self, connection: "BoundedConnection") -> None:
        self._open.pop(connection, None)

    def _end_one_of(self, address: str) -> bool:
        waiting = [(other.wait, other) for other in self._open if other.address == address and other.wait is not None]
        if not waiting:
            return False
        # Of equals the first: the oldest. Of those that take an answer the slowest, and not a download that flows.
        min(waiting, key=lambda pair: (pair[0], -pair[1].late_seconds))[1].make_room()
        return True


class _CountedConnection(h11.Connection):
    """h11's connection, which counts what it made for the client."""

    made_bytes = 0

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        pieces = super().send_with_data_passthrough(event)
        self.made_bytes += sum(map(len, pieces or ()))
        return pieces


class BoundedConnection(H11Protocol):
    """uvicorn's connection, which ends when its client keeps it waiting."""

    def __init__(self, others: Connections, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn: _CountedConnection = _CountedConnection(h11.SERVER)
        self.address = ""
        self._others = others
        self._bounds = others.bounds
        self._waits_for: _Wait | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._body_bytes = 0
        #: Whether the service itself did not read in this period.
        self._was_held = False
        self._answer_timer: asyncio.TimerHandle | None = None
        self._answer_period_start = 0.0
        self._taken_before_bytes = 0
        #: Whether requests that came along with an earlier one are left until that one's answer is taken.
        self._holds_requests = False

    @property
    def wait(self) -> _Wait | None:
        """What it waits for, if it does not owe an answer."""
        if self.late_seconds > _LATE_SECONDS:
            return _Wait.ANSWER_LEFT
        has_unsent = self.transport.get_write_buffer_size() > 0
        if self.transport.is_closing() and not has_unsent:
            return _Wait.CLOSE
        if self._waits_for is not None:
            return self._waits_for
        if has_unsent:
            return _Wait.ANSWER_TAKEN
        answered = self.cycle is not None and self.cycle.response_complete
        return _Wait.NEXT_REQUEST if answered and self.conn.their_state is h11.IDLE else None

    @property
    def late_seconds(self) -> float:
        """How far its client is behind the least rate of an answer in this period; negative where it is ahead."""
        if self._answer_timer is None or not self.transport.get_write_buffer_size():
            return 0.0
        taken_ratio = (self._taken_bytes - self._taken_before_bytes) / self._bounds.answer_bytes
        return self.loop.time() - self._answer_period_start - taken_ratio * self._bounds.answer_seconds

    @property
    def _taken_bytes(self) -> int:
        return self.conn.made_bytes - self.transport.get_write_buffer_size()

    @property
    def _waiting_to_go_on(self) -> bool:
        return self.cycle is not None and self.cycle.waiting_for_100_continue

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the one above it
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KERNEL_BYTES)
        if self._others.add(self):
            self._look()
        else:
            detail = "the connection limit is reached; try again"
            self._refuse(Problem(Code.TOO_MANY_CONNECTIONS, detail))

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return  # what was under way when the connection was ended
        if not self.transport.get_write_buffer_size():
            # All of the last answer was taken; the next one counts anew.
            self._stop_answer_timer()
        self._body_bytes += len(data)
        super().data_received(data)
        self._look()

    def handle_events(self) -> None:
        is_between = self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE
        self._holds_requests = is_between and self.flow.write_paused
        if self._holds_requests:
            # Or each answer would be made ready while the one before it still waits for its client.
            self.flow.pause_reading()
            return
        super().handle_events()
        if self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0]:
            # What came along with an earlier request has its time from now on.
            self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        self._wait_for(None)
        self._stop_answer_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_answer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_answer()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._holds_requests and not self.transport.is_closing():
            self.flow.resume_reading()
            self.handle_events()

    def make_room(self) -> None:
        """End: another connection needs the place."""
        if self.transport.get_write_buffer_size():
            # Whoever does not take an answer would not take a refusal.
            self.transport.abort()
        else:
            detail = "the connection limit is reached, and this connection had no complete request; try again"
            self._refuse(Problem(Code.TOO_MANY_CONNECTIONS, detail))
        self._others.discard(self)

    def _look(self) -> None:
        """After anything was read: what is waited for now."""
        state = self.conn.their_state
        if self.transport.is_closing() or self._holds_requests or state not in (h11.IDLE, h11.SEND_BODY):
            self._wait_for(None)
        else:
            self._wait_for(_Wait.HEADERS if state is h11.IDLE else _Wait.BODY)
        self._was_held |= self.flow.read_paused

    def _wait_for(self, what: _Wait | None) -> None:
        """A wait that goes on keeps its time."""
        if what is self._waits_for:
            return
        self._waits_for = what
        self._start_period()

    def _start_period(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._body_bytes = 0
        self._was_held = self.flow.read_paused
        if self._waits_for is not None:
            is_body = self._waits_for is _Wait.BODY
            seconds = self._bounds.body_seconds if is_body else self._bounds.headers_seconds
            self._timer = self.loop.call_later(seconds, self._is_over)

    def _is_over(self) -> None:
        is_body = self._waits_for is _Wait.BODY
        # A client that waits for `100 Continue`, or whose bytes the service leaves in the socket, is not the slow one.
        is_held = self._was_held or self.flow.read_paused or self._waiting_to_go_on
        if is_body and (is_held or self._body_bytes >= self._bounds.body_bytes):
            self._start_period()
            return
        if is_body:
            least = f"at least {self._bounds.body_bytes} bytes every {self._bounds.body_seconds:g} s"
            detail = f"the request's body came too slowly; send {least}"
        else:
            detail = f"the request's headers did not come within {self._bounds.headers_seconds:g} s"
        self._refuse(Problem(Code.REQUEST_TIMEOUT, detail))

    def _refuse(self, problem: Problem) -> None:
        """Answer what can still be answered, and end."""
        self._wait_for(None)
        if self.transport.is_closing():
            self.transport.abort()
            return
        owes = self.conn.our_state is h11.SEND_RESPONSE
        if owes:
            # For the application it is gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # Where nothing was asked there is nothing to answer: a client would take it for that to its next request.
        is_turned_away = self.cycle is None and problem.code is Code.TOO_MANY_CONNECTIONS
        if owes or is_turned_away or self.conn.trailing_data[0]:
            self._answer(problem, self.scope["path"] if owes else "/")
        self.transport.close()
        self._watch_answer()

    def _answer(self, problem: Problem, instance: str) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return  # an answer has begun
        response = ProblemResponse(problem, instance, {"Connection": "close"})
        status = h11.Response(status_code=response.status_code, headers=response.raw_headers)
        for event in (status, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")

    def _watch_answer(self) -> None:
        """See to it that what is ready for the client is taken. A period that has begun goes on."""
        if self._answer_timer is None and self.transport.get_write_buffer_size():
            self._answer_period_start = self.loop.time()
            self._taken_before_bytes = self._taken_bytes
            self._answer_timer = self.loop.call_later(self._bounds.answer_seconds, self._answer_is_over)

    def _answer_is_over(self) -> None:
        self._answer_timer = None
        is_too_slow = self._taken_bytes - self._taken_before_bytes < self._bounds.answer_bytes
        if is_too_slow and self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self._watch_answer()

    def _stop_answer_timer(self) -> None:
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None
