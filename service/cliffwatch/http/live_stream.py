"""A run as server-sent events, until it is over.

Events are `run` (the run as GET shows it, whenever its row changed), `window` and `event`, each with an id that encodes
the position of the stream in the journal's events and windows; a client that sends this id back as Last-Event-ID
resumes there. The journal is read by threads, never by the event loop.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from cliffwatch.app.standing import standing_of
from cliffwatch.app.tokens import Caller
from cliffwatch.base.errors import Problem
from cliffwatch.http.context import Services, find_run
from cliffwatch.http.journal_resource import event_body
from cliffwatch.http.run_resource import Run, run_resource, window_resource
from cliffwatch.journal import JournalReader
from cliffwatch.model.run_state import RunState
from cliffwatch.store.database import DATABASE_ERRORS
from cliffwatch.store.models import RunRow

POLL_SECONDS = 0.5


HEARTBEAT_SECONDS = 15


#: How long a stream may take to end when the service ends.
SHUTDOWN_SECONDS = 2.0


#: Maximum length of a number in a Last-Event-ID.
_DIGITS = 12


#: Maximum number of messages read in one go, so that the past of a long run does not fill the memory.
_BATCH = 200


@dataclass(slots=True)
class _Position:
    """Position of a stream: the last event's id, the byte offset after it, and the last window's seq."""

    event_id: int = 0
    offset_bytes: int = 0
    window_seq: int = -1

    @property
    def token(self) -> str:
        return f"{self.event_id}.{self.window_seq}"

    @classmethod
    def of(cls, token: str | None) -> "_Position":
        """Position from a Last-Event-ID; the start of the stream if it is malformed."""
        event_id, _, window_seq = (token or "").partition(".")
        if _is_whole(event_id) and _is_whole(window_seq.removeprefix("-")):
            return cls(event_id=int(event_id), window_seq=int(window_seq))
        return cls()


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


async def _stream(
    services: Services, caller: Caller, run_id: str, position: _Position, stopping: anyio.Event
) -> AsyncIterator[ServerSentEvent]:
    shown: dict[str, object] | None = None
    while not stopping.is_set():
        # Read the row first: when it says that the run is over, the journal is complete.
        try:
            row = await run_in_threadpool(_find, services, caller, run_id)
        except DATABASE_ERRORS:
            # The token cannot be checked either, so nothing is sent until the database answers.
            await _pause(stopping)
            continue
        if row is None:
            return
        batch = await run_in_threadpool(_read, Path(row.directory), position)
        present = {column.key: getattr(row, column.key) for column in RunRow.__table__.columns}
        is_over = row.state == RunState.FINISHED.value and not batch
        changed = present != shown and row.state != RunState.FINISHED.value
        for message in batch:
            yield message
        if changed or is_over:
            run = await run_in_threadpool(_shown, services, row)
            yield _message("run", run, position)
            shown = present
        if is_over:
            return
        if not batch:
            await _pause(stopping)


def _shown(services: Services, row: RunRow) -> Run:
    return run_resource(row, services.clock.wall(), standing=standing_of(services.database, row))


async def _pause(stopping: anyio.Event) -> None:
    with anyio.move_on_after(POLL_SECONDS):
        await stopping.wait()


def _find(services: Services, caller: Caller, run_id: str) -> RunRow | None:
    """Row of the run; None if the stream must end: run deleted or token revoked. Raises DATABASE_ERRORS."""
    try:
        return find_run(services, run_id) if services.tokens.holds(caller) else None
    except Problem:
        return None


def _read(directory: Path, position: _Position) -> list[ServerSentEvent]:
    """Read the events and windows after the position, at most a batch, and advance the position."""
    reader = JournalReader(directory)
    messages = []
    # A resumed stream has only the id, no offset: earlier events are read and skipped once.
    resumed = position.offset_bytes == 0
    first_id = 1 if resumed else position.event_id + 1
    for stored in reader.events(position.offset_bytes, first_id):
        position.offset_bytes = stored.offset_bytes
        if stored.id > position.event_id:
            position.event_id = stored.id
            messages.append(_message("event", event_body(stored), position))
        if len(messages) >= _BATCH:
            return messages
    for window in reader.windows(position.window_seq + 1):
        position.window_seq = window.seq
        messages.append(_message("window", window_resource(window), position))
        if len(messages) >= _BATCH:
            break
    return messages


def _message(name: str, body: BaseModel, position: _Position) -> ServerSentEvent:
    return ServerSentEvent(event=name, id=position.token, data=body.model_dump_json())


class _PlacedResponse(EventSourceResponse):
    """Stream that counts against the stream limits while it is sent. Raises Problem(too_many_streams) at its start."""

    def __init__(self, services: Services, caller: Caller, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._place = services.streams.place(caller.token_id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)


async def live_stream(
    services: Services, caller: Caller, run_id: str, last_event_id: str | None
) -> EventSourceResponse:
    """Response that streams a run after the position `last_event_id`. Raises Problem(not_found), and when it is sent,
    Problem(too_many_streams).
    """
    await run_in_threadpool(find_run, services, run_id)
    stopping = anyio.Event()
    return _PlacedResponse(
        services,
        caller,
        _stream(services, caller, run_id, _Position.of(last_event_id), stopping),
        ping=HEARTBEAT_SECONDS,
        headers={"Cache-Control": "no-store"},
        shutdown_event=stopping,
        shutdown_grace_period=SHUTDOWN_SECONDS,
    )
