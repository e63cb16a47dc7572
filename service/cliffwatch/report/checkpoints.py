"""When a database wrote checkpoints, from the events of its load."""

from collections.abc import Iterable, Sequence

import numpy as np

from cliffwatch.journal import Event, EventType, JournalWindow
from cliffwatch.model.database import CHECKPOINT_BEGUN, CHECKPOINT_COMPLETED
from cliffwatch.model.window import is_level
from cliffwatch.telemetry.reader import Floats


class Checkpoints:
    """Spans of time in which the server wrote a checkpoint; the last may not have ended."""

    def __init__(self, events: Iterable[Event]) -> None:
        spans: list[tuple[float, float]] = []
        begun: float | None = None
        for event in events:
            if event.type is EventType.ENGINE and event.name == CHECKPOINT_BEGUN:
                begun = event.at
            elif event.type is EventType.ENGINE and event.name == CHECKPOINT_COMPLETED:
                seconds = event.detail.get("seconds")
                spans.append((event.at - (seconds if seconds is not None and is_level("", seconds) else 0.0), event.at))
                begun = None
        if begun is not None:
            spans.append((begun, float(np.finfo(np.float64).max)))
        # Moments at which a checkpoint begins or ends, and the seconds in checkpoints until then.
        self._moments, self._covered = [0.0], [0.0]
        for begin, end in spans:
            begin = max(begin, self._moments[-1])
            end = max(begin, end)
            self._moments += [begin, end]
            self._covered += [self._covered[-1], self._covered[-1] + end - begin]

    def __bool__(self) -> bool:
        return len(self._moments) > 1

    def ratio(self, windows: Sequence[JournalWindow]) -> float:
        """Share of the windows' time in which the server wrote a checkpoint."""
        seconds = sum(window.end - window.start for window in windows)
        return float(self._within(windows).sum() / seconds) if seconds > 0 else 0.0

    def shares(self, windows: Sequence[JournalWindow]) -> Floats:
        """Share of each window's time in which the server wrote a checkpoint."""
        shares: Floats = self._within(windows) / np.array([window.end - window.start for window in windows])
        return shares

    def _within(self, windows: Sequence[JournalWindow]) -> Floats:
        """Seconds of each window in checkpoints."""
        bounds = np.array([[window.start, window.end] for window in windows]).reshape(-1, 2)
        covered: Floats = np.interp(bounds, self._moments, self._covered)
        seconds: Floats = covered[:, 1] - covered[:, 0]
        return seconds
