"""Periodic background task; a failed round is logged."""

import logging
import threading
import time
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class Rounds:
    """Thread that calls a function periodically. A round that fails is logged; the next one follows.

    Of rounds in a row that fail with the same kind of exception, the log has the first in full, and a line each for the
    2nd, 4th, 8th and so on.
    """

    def __init__(self, name: str, period_seconds: float, act: Callable[[], object], trouble: str) -> None:
        """`trouble` is the log's message on a round that failed, before the reason."""
        self._period_seconds = period_seconds
        self._act = act
        self._trouble = trouble
        self._end = threading.Event()
        self._began_at: float | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, patience_seconds: float | None = None) -> bool:
        """Stop the thread, and wait until the round in progress is over; returns whether it is, as it may not be with a
        patience. May be called without a start."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(patience_seconds)
        return not self._thread.is_alive()

    def busy_seconds(self) -> float:
        """Duration of the round in progress so far; 0 between rounds."""
        began_at = self._began_at
        return 0.0 if began_at is None else time.monotonic() - began_at

    def _run(self) -> None:
        failed: type[Exception] | None = None
        count = 0
        while not self._end.wait(self._period_seconds):
            self._began_at = time.monotonic()
            try:
                self._act()
                failed = None
            except Exception as error:
                # A database or a disk may be unavailable for a while: the next round tries again.
                count = count + 1 if type(error) is failed else 1
                failed = type(error)
                if count == 1:
                    _LOG.exception("%s", self._trouble)
                elif count.bit_count() == 1:
                    _LOG.error("%s, %d times in a row: %s", self._trouble, count, str(error).partition("\n")[0])
            finally:
                self._began_at = None
