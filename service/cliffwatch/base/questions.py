"""Calls with a timeout to something that may never answer, such as a drive that hangs.

A thread that waits for the kernel cannot be ended: it goes on until the answer is there, after its caller timed out. So
a target with a call that timed out is not asked again meanwhile, only a few calls to one target run at once, and the
number of all such threads is limited.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cliffwatch.base.clock import Clock

PATIENCE_SECONDS = 5.0
#: Maximum number of calls in progress: to the same target, and in all.
LIMIT_EACH, LIMIT = 4, 64

T = TypeVar("T")


class Unanswered(Exception):
    """No answer in time. The message names the target, and for how many seconds it has not answered."""


@dataclass(slots=True, eq=False)
class _Question(Generic[T]):
    about: str
    asked_at: float
    is_over: threading.Event = field(default_factory=threading.Event)
    answer: list[T] = field(default_factory=list)
    error: BaseException | None = None


class Questions:
    """Pending calls with a timeout. `patience_seconds` is the timeout of a caller."""

    def __init__(self, clock: Clock, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._changed = threading.Condition()
        self._open: list[_Question[object]] = []

    def ask(self, about: str, act: Callable[[], T]) -> T:
        """Run `act` in a thread; return its result, or raise its exception.

        Raises Unanswered after the timeout, or at once where an earlier call to `about` has taken that long already.
        """
        asked_at = self._clock.monotonic()
        question = self._turn(about, asked_at)
        threading.Thread(target=self._put, args=(question, act), name=f"question to {about}", daemon=True).start()
        if not question.is_over.wait(self._left(asked_at)):
            raise self._unanswered(question)
        if question.error is not None:
            raise question.error
        answer: list[T] = question.answer  # type: ignore[assignment]  # what `act` returned
        return answer[0]

    def _turn(self, about: str, asked_at: float) -> _Question[object]:
        """Wait for a free slot. Raises Unanswered."""
        with self._changed:
            while True:
                mine = [each for each in self._open if each.about == about]
                if any(self._age(each) >= self._patience_seconds for each in mine):
                    raise self._unanswered(mine[0])
                if len(mine) < LIMIT_EACH and len(self._open) < LIMIT:
                    question: _Question[object] = _Question(about, self._clock.monotonic())
                    self._open.append(question)
                    return question
                if (left := self._left(asked_at)) <= 0:
                    raise Unanswered(f"{about} was not asked: {LIMIT} questions to others have no answer yet")
                self._changed.wait(left)

    def _put(self, question: _Question[object], act: Callable[[], object]) -> None:
        try:
            question.answer.append(act())
        except BaseException as error:  # raised again in the caller's thread
            question.error = error
        finally:
            with self._changed:
                self._open.remove(question)
                self._changed.notify_all()
            question.is_over.set()

    def _left(self, asked_at: float) -> float:
        return asked_at + self._patience_seconds - self._clock.monotonic()

    def _unanswered(self, question: _Question[object]) -> Unanswered:
        return Unanswered(f"{question.about} has not answered for {self._age(question):.0f} s")

    def _age(self, question: _Question[object]) -> float:
        return self._clock.monotonic() - question.asked_at


class SharedAnswer(Generic[T]):
    """Result of a slow function, computed once for all callers that ask for it at the same time."""

    def __init__(self, find_out: Callable[[], T]) -> None:
        self._find_out = find_out
        self._lock = threading.Lock()
        self._under_way: Future[T] | None = None

    def ask(self) -> T:
        """Result or exception of this call, or of one that was in progress already."""
        with self._lock:
            shared, mine = self._under_way, Future[T]()
            if shared is None:
                self._under_way = mine
        if shared is not None:
            return shared.result()
        try:
            mine.set_result(self._find_out())
        except BaseException as error:
            mine.set_exception(error)
        finally:
            with self._lock:
                self._under_way = None
        return mine.result()
