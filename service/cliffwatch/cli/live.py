"""Follow a run until it is over, through lost connections and restarts of the service.

A run does not depend on the service, so neither does following it: while the service is unreachable, the client waits
for it, and then resumes the stream after the last event that it received.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.retries import growing_pause_seconds
from cliffwatch.base.units import format_length
from cliffwatch.cli.client import ApiClient, ServerEvent, json_of, path_of
from cliffwatch.model.run_state import RunState

#: The first and the longest pause between attempts to reach the service again.
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 5.0
#: After this many streams in a row that ended without an event, the run is polled instead.
_EMPTY_STREAMS = 2
_POLL_SECONDS = 2.0
_AWAY = frozenset({Code.SERVICE_UNREACHABLE, Code.NOT_READY})


@dataclass(frozen=True, slots=True)
class RunSeen:
    """Update: the run as the API shows it."""

    run: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WindowSeen:
    """Update: a committed window as the API shows it."""

    window: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventSeen:
    """Update: an event of the run, such as a finding or an alert."""

    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunNotice:
    """Message for the user about the connection to the service, such as that the service answers again."""

    text: str


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Update without content: the service is alive."""


Update = RunSeen | WindowSeen | EventSeen | RunNotice | KeepAlive


def is_over(run: dict[str, Any]) -> bool:
    return bool(run["state"] == RunState.FINISHED)


class Follower:
    """Follow one run. Raises Problem(service_unreachable) after `give_up_after` seconds without an answer."""

    def __init__(self, api: ApiClient, run_id: str, clock: Clock, give_up_after: float) -> None:
        self._api = api
        self._path = path_of("runs", run_id)
        self._run_id = run_id
        self._clock = clock
        self._give_up_after = give_up_after
        self._last_event_id: str | None = None
        self._last_window_seq = -1
        self._empty_streams = 0
        self._away_since: float | None = None
        self._attempts = 0

    def updates(self) -> Iterator[Update]:
        """Updates of the run until it is over. The first request is not retried: if it fails, its Problem is raised."""
        run = self._api.get(self._path)
        yield RunSeen(run)
        while not is_over(run):
            try:
                source = self._poll() if self._empty_streams >= _EMPTY_STREAMS else self._stream()
                for update in source:
                    if self._away_since is not None:
                        self._away_since, self._attempts = None, 0
                        yield RunNotice("the service answers again")
                    yield update
                    if isinstance(update, RunSeen):
                        run = update.run
            except Problem as problem:
                yield from self._wait_for_service(problem)

    def _stream(self) -> Iterator[Update]:
        """Updates from server-sent events, until the run is over or the stream ends."""
        with self._api.events(f"{self._path}/live", self._last_event_id) as events:
            empty = True
            try:
                for event in events:
                    self._last_event_id = event.id or self._last_event_id
                    update = self._update_of(event)
                    empty = empty and isinstance(update, KeepAlive)
                    yield update
                    if isinstance(update, RunSeen) and is_over(update.run):
                        return
            finally:
                self._empty_streams = self._empty_streams + 1 if empty else 0
        # A stream ends early when the service is stopping: fetch the present state of the run.
        run = self._api.get(self._path)
        yield RunSeen(run)
        if not is_over(run):
            self._clock.sleep(_FIRST_PAUSE_SECONDS)

    def _update_of(self, event: ServerEvent) -> Update:
        if event.name == "run":
            return RunSeen(json_of(event))
        if event.name == "event":
            return EventSeen(json_of(event))
        if event.name == "window":
            window = json_of(event)
            self._last_window_seq = max(self._last_window_seq, int(window["seq"]))
            return WindowSeen(window)
        return KeepAlive()

    def _poll(self) -> Iterator[Update]:
        """Updates from polling, for networks in which a proxy buffers event streams, or if the service refuses them."""
        while True:
            run = self._api.get(self._path)
            yield RunSeen(run)
            window = run.get("last_window")
            if window and window["seq"] > self._last_window_seq:
                self._last_window_seq = window["seq"]
                yield WindowSeen(window)
            if is_over(run):
                return
            self._clock.sleep(_POLL_SECONDS)

    def _wait_for_service(self, problem: Problem) -> Iterator[Update]:
        if problem.code not in _AWAY:
            # If the run itself can still be read, only the stream is refused: poll instead.
            self._empty_streams = _EMPTY_STREAMS
            yield RunSeen(self._api.get(self._path))
            return
        now = self._clock.monotonic()
        if self._away_since is None:
            self._away_since = now
            yield RunNotice("the service does not answer; the run continues, and this command reconnects")
        if now - self._away_since >= self._give_up_after:
            silence = format_length(round(now - self._away_since))
            detail = (
                f"the service has not answered for {silence}; the run continues. "
                f"Start the service again with `cliffwatch up`, then: cliffwatch run watch {self._run_id}"
            )
            raise Problem(Code.SERVICE_UNREACHABLE, detail) from problem
        self._attempts += 1
        self._clock.sleep(growing_pause_seconds(self._attempts, _FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS))
