"""What the service does again and again beside its requests."""

import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class Rounds:
    """A thread that carries something out every so many seconds. A round that fails is logged; the next one follows."""

    def __init__(self, name: str, period_seconds: float, act: Callable[[], None], trouble: str) -> None:
        """`trouble` is what the log says of a round that failed, before why it did."""
        self._period_seconds = period_seconds
        self._act = act
        self._trouble = trouble
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the round in progress is over. May be called without a start."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self._period_seconds):
            try:
                self._act()
            except Exception:
                # A database or a disk may be away for a while: the next round does what this one could not.
                _LOG.exception("%s", self._trouble)
