"""Counters and gauges of an interval, which are added to the engine's own in a window."""

from dataclasses import dataclass, field

from cliffwatch.model.window import EngineWindow


@dataclass(frozen=True, slots=True)
class Interval:
    """`counters` are increments over the interval, `gauges` hold at its end or are means over it. Values that could not
    be measured are absent."""

    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)

    def add_to(self, window: EngineWindow) -> None:
        window.counters.update(self.counters)
        window.gauges.update(self.gauges)
