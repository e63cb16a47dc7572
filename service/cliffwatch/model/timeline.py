"""Timeline of a load: its start, its end, and the phase of a moment. Pure functions of times in seconds."""

import math
from dataclasses import dataclass

from cliffwatch.model.phase import LOAD_PHASES, Phase
from cliffwatch.model.workload import Phases

#: How long before its first window an engine is started, so that it is ready in time.
_START_LEAD_SECONDS = 0.5
#: How long it may take to check that a drive is not in use.
_LOOK_SECONDS = 1.0


def lead_seconds(is_device: bool) -> float:
    """Seconds from when an engine's start begins to its first window; more for a device, which is checked first."""
    return _START_LEAD_SECONDS + (_LOOK_SECONDS if is_device else 0.0)


def grid_line_at_or_after(moment: float, window_seconds: float) -> float:
    """The first multiple of the window at or after `moment`. Windows lie between such lines and so never drift."""
    return round(math.ceil(moment / window_seconds - 1e-6) * window_seconds, 6)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Planned start, end and phases of a run's load. The load lasts a whole number of windows.

    `steady_at` is when a warm-up that waits for the drive's steady state ended, None while it has not. The time by
    which that warm-up was shorter is added to the soak, since the engine's end is fixed.
    """

    load_start: float
    load_stop: float
    phases: Phases
    steady_at: float | None = None

    @classmethod
    def plan(cls, earliest: float, phases: Phases, window_seconds: float) -> "Timeline":
        """Plan a load that begins on the first grid line at or after `earliest`."""
        start = grid_line_at_or_after(earliest, window_seconds)
        windows = math.ceil(phases.load_seconds / window_seconds - 1e-6)
        return cls(start, round(start + windows * window_seconds, 6), phases)

    def moved_by(self, seconds: float) -> "Timeline":
        """The same timeline, later by `seconds`; only for a load that has not begun."""
        return Timeline(round(self.load_start + seconds, 6), round(self.load_stop + seconds, 6), self.phases)

    def bounds(self) -> list[tuple[Phase, float, float]]:
        """(phase, start, end) of each phase of the load that lasts any time, in order; the last ends at `load_stop`."""
        bounds, start = [], self.load_start
        for phase in LOAD_PHASES:
            end = self.load_stop if phase is Phase.SOAK else min(start + self._seconds(phase), self.load_stop)
            if end > start:
                bounds.append((phase, start, end))
            start = end
        return bounds

    def _seconds(self, phase: Phase) -> float:
        if phase is not Phase.WARM_UP:
            return self.phases.baseline
        return self.phases.longest_warm_up if self.steady_at is None else self.steady_at - self.load_start

    def phase_at(self, moment: float) -> Phase:
        """The phase that a window starting at `moment` belongs to."""
        if moment < self.load_start - 1e-6:
            return Phase.PREPARE
        for phase, _, end in self.bounds():
            if moment < end - 1e-6:
                return phase
        return Phase.COOL_DOWN
