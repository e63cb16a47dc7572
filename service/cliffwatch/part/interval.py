"""Counters and gauges of an interval around a window, measured beside the engine's own."""

from dataclasses import dataclass, field

from cliffwatch.model.window import EngineWindow


@dataclass(frozen=True, slots=True)
class Interval:
    """`counters` are increments over the interval, `gauges` hold at its end or are means over it. What could not be
    measured is absent."""

    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)

    def add_to(self, window: EngineWindow) -> None:
        window.counters.update(self.counters)
        window.gauges.update(self.gauges)
