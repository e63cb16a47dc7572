"""Detector state of one latency series, with its active finding and its train of spikes."""

import math
from dataclasses import dataclass, replace

from cliffwatch.analysis.cliff import is_within_baseline
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.online.absolute import Absolute
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.excursion import Excursions
from cliffwatch.analysis.online.spikes import Spikes
from cliffwatch.analysis.online.steps import SpanStatistics
from cliffwatch.analysis.sizes import Sizing
from cliffwatch.analysis.span_lengths import BLOCK
from cliffwatch.analysis.spread import middle
from cliffwatch.analysis.thresholds import SETTLING, SPIKE_ALIKE, SPIKE_WINDOWS, TAUGHT_WINDOWS


@dataclass(frozen=True, slots=True)
class _Outer:
    """An active finding during which a further change began, and the state of the judge at that time."""

    active: Finding
    sizing: Sizing | None
    found_window: int
    began_window: int
    healthy: float
    floor: float | None


class Judge:
    """Detector state of one series. `is_primary`: findings are about it; any other series is reported only when it
    changes alone.

    During a finding, the statistics learned from the healthy run are set aside; they are restored when the finding is
    over.
    """

    def __init__(self, channel: Channel, is_primary: bool) -> None:
        self.channel = channel
        self.is_primary = is_primary
        self.excursions = Excursions()
        self.spikes = Spikes()
        self.absolute = Absolute()
        self.statistics = SpanStatistics()
        self.active: Finding | None = None
        #: Sizes of the active finding, and of the train of spikes.
        self.sizing: Sizing | None = None
        self.train_sizing: Sizing | None = None
        self.found_window = 0
        #: The window at which the active change began.
        self.began_window = 0
        #: Not judged up to this window: the series settles after a change that is part of another finding.
        self.quiet_until = 0
        #: By how much write amplification had risen when the active change was raised (a logarithm).
        self.amplified = 0.0
        #: The level (logarithm) before the active change began.
        self.healthy = 0.0
        #: The level (logarithm) that drift is measured against after a finding.
        self.floor: float | None = None
        #: The end of the last half hour in which joint drift was searched.
        self.course_end = 0.0
        self.train: Finding | None = None
        self.train_height = 0.0
        self.train_gap = 0
        self.train_last = 0
        #: Active findings that began before the present one and go on, the oldest first.
        self._outer: list[_Outer] = []
        self._aside: tuple[Excursions, SpanStatistics] | None = None

    @property
    def name(self) -> str:
        return self.channel.series.name

    def base(self) -> float:
        """Level that ratios are relative to (a logarithm): the baseline, or the recent level while there is none."""
        if self.channel.baseline is not None:
            return math.log(self.channel.baseline.level)
        return self.channel.recent_level or 0.0

    def is_within_baseline(self, height: float) -> bool:
        """Whether the present excursion, of this height (a logarithm), is within the baseline's own variation."""
        baseline, recent = self.channel.baseline, self.channel.recent_level
        if baseline is None or recent is None:
            return False
        level = math.exp(recent + height)
        return is_within_baseline(level, level / baseline.level, baseline, self.excursions.windows)

    def spike_height(self) -> float:
        """Rise (a logarithm) from which a window is one of the active train's spikes; infinite without a train, and
        during a rise that has lasted longer than a spike."""
        is_spiky = self.train is not None and self.active is None and self.excursions.windows <= SPIKE_WINDOWS
        return SPIKE_ALIKE * self.train_height if is_spiky else math.inf

    def is_without_spikes(self, deviation: float) -> bool:
        """Whether the last window, of this deviation from the recent level, is no spike, and no earlier one matters."""
        return self.train is None and self.spikes.is_without_any(deviation)

    def begin_within(self) -> None:
        """Set the active finding aside for a further change; `end_within` makes it the active one again."""
        assert self.active is not None, "only called with an active finding"
        outer = _Outer(self.active, self.sizing, self.found_window, self.began_window, self.healthy, self.floor)
        self._outer.append(outer)

    def end_within(self) -> bool:
        """Return from a further change, which is over, to the finding during which it began; False if there is none."""
        if not self._outer:
            self.active = self.sizing = None
            return False
        outer = self._outer.pop()
        self.active, self.sizing = outer.active, outer.sizing
        self.found_window, self.began_window = outer.found_window, outer.began_window
        self.healthy, self.floor = outer.healthy, outer.floor
        return True

    @property
    def findings(self) -> list[Finding]:
        """Active findings with their current sizes, the oldest first."""
        outer = [each.active if each.sizing is None else each.sizing.of(each.active) for each in self._outer]
        return outer if self.active is None else [*outer, self.sized(self.active)]

    @property
    def sizings(self) -> list[Sizing]:
        """Sizes of the active findings."""
        every = [*(each.sizing for each in self._outer), self.sizing]
        return [each for each in every if each is not None]

    def sized(self, finding: Finding) -> Finding:
        """Version of the active finding with its current sizes."""
        return finding if self.sizing is None else self.sizing.of(finding)

    def sized_train(self) -> Finding:
        """Finding of the spike train, with its current size."""
        assert self.train is not None, "only called with a spike train"
        assert self.train_sizing is not None, "every train has one"
        return self.train_sizing.of(self.train)

    def measure(self, finding: Finding, sizing: Sizing) -> None:
        """Add this judge's series, with its levels since the onset, to the sizes of a finding."""
        baseline = self.channel.baseline_before(finding.onset)
        if baseline is not None:
            sizing.follow(baseline, self.channel.levels_since(finding.onset))

    def learn(self, start: float, windows: int, jump: float) -> None:
        """Learn from a change that came back after so many `windows`: how long the next one may last."""
        if windows < TAUGHT_WINDOWS:
            self.excursions.learn(start, windows, jump, jump, self.amplified)
            self.statistics.learn(jump, windows // BLOCK)

    def settled(self) -> Finding | None:
        """Version of the active finding, a sudden change, whose level has settled; None where too little is known."""
        blocks = self.channel.last_blocks(SETTLING // BLOCK)
        if self.active is None or self.active.kind is FindingKind.DRIFT or len(blocks) < SETTLING // BLOCK:
            return None
        level = middle(blocks)
        ratio = math.exp(level - math.log(self.active.baseline))
        self.active = replace(self.active, level=math.exp(level), ratio=ratio)
        return self.sized(self.active)

    def save_state(self) -> None:
        self.statistics.discard_recent()
        self.excursions.forget()
        self.spikes.forget()
        self.channel.is_held = False
        if self._aside is None:
            self._aside = (self.excursions, self.statistics)
            self.excursions, self.statistics = self.excursions.of_new_level(), SpanStatistics()
            self.channel.save_spreads()

    def restore_state(self) -> None:
        if self._aside is not None:
            self.excursions, self.statistics = self._aside
            self._aside = None
            self.statistics.values = {}
            self.channel.restore_spreads()
        self.floor = None


def recovery_of(ended: Finding, at: float, detected: float, level: float) -> Finding:
    """Recovery from a finding that ended, to a `level` (a logarithm)."""
    return replace(
        ended,
        kind=FindingKind.RECOVERY,
        onset=at,
        until=None,
        detected=detected,
        level=math.exp(level),
        ratio=math.exp(level) / ended.baseline,
        size=None,
        affected=(),
    )
