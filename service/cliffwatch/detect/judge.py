"""What is judged of one latency series, and what was found in it last."""

import math

from cliffwatch.detect.absolute import Absolute
from cliffwatch.detect.channel import Channel
from cliffwatch.detect.excursion import Excursions
from cliffwatch.detect.finding import Finding
from cliffwatch.detect.sizes import Sizing
from cliffwatch.detect.spikes import Spikes
from cliffwatch.detect.steps import SpanStatistics


class Judge:
    """The detectors' state for one series. `is_primary`: findings are about it; another one is told of only when it
    changes alone.

    Once something was found, what the healthy run taught is put aside, and comes back when the finding is over.
    """

    def __init__(self, channel: Channel, is_primary: bool) -> None:
        self.channel = channel
        self.is_primary = is_primary
        self.excursions = Excursions()
        self.spikes = Spikes()
        self.absolute = Absolute()
        self.statistics = SpanStatistics()
        self.active: Finding | None = None
        #: The sizes of what is active, and of the train of spikes.
        self.sizing: Sizing | None = None
        self.train_sizing: Sizing | None = None
        self.found_window = 0
        #: The window at which what is active began.
        self.began_window = 0
        #: Up to this window it settles after a change that is told of another series and was its own, too.
        self.quiet_until = 0
        #: The level (logarithm) that was usual before what is active began.
        self.healthy = 0.0
        #: The level (logarithm) that drift is told against after a finding.
        self.floor: float | None = None
        #: The end of the half hour up to which the course of the run was looked at.
        self.course_end = 0.0
        self.train: Finding | None = None
        self.train_gap = 0
        self.train_last = 0
        self._aside: tuple[Excursions, SpanStatistics] | None = None

    @property
    def name(self) -> str:
        return self.channel.series.name

    def base(self) -> float:
        """What ratios are told against, as a logarithm: the baseline, or what is usual while there is none."""
        if self.channel.baseline is not None:
            return math.log(self.channel.baseline.level)
        return self.channel.usual or 0.0

    def sized(self, finding: Finding) -> Finding:
        """A version of what is active, with the sizes that it has by now."""
        return finding if self.sizing is None else self.sizing.of(finding)

    def sized_train(self) -> Finding:
        """The train of spikes, as large as it is by now."""
        assert self.train is not None, "called for a train"
        assert self.train_sizing is not None, "every train has one"
        return self.train_sizing.of(self.train)

    def measure(self, finding: Finding, sizing: Sizing) -> None:
        """Take this judge's series into the sizes of a finding, with what it has been since the onset."""
        baseline = self.channel.baseline_before(finding.onset)
        if baseline is not None:
            sizing.follow(baseline, self.channel.levels_since(finding.onset))

    def put_aside(self) -> None:
        self.statistics.discard_recent()
        self.excursions.forget()
        self.spikes.forget()
        self.channel.is_held = False
        if self._aside is None:
            self._aside = (self.excursions, self.statistics)
            self.excursions, self.statistics = Excursions(), SpanStatistics()
            self.channel.put_spreads_aside()

    def bring_back(self) -> None:
        if self._aside is not None:
            self.excursions, self.statistics = self._aside
            self._aside = None
            self.statistics.values = {}
            self.channel.bring_spreads_back()
        self.floor = None
