"""Rises beyond any noise, in a healthy run and in one that has degraded already."""

import math

import pytest

from cliffwatch.analysis.finding import Role, Series
from cliffwatch.analysis.online.absolute import Absolute, AbsoluteRise
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.correlated import CorrelatedSeries
from cliffwatch.analysis.span_lengths import HOUR
from cliffwatch.model.phase import Phase

WINDOW_SECONDS = 10.0


class Watched:
    """A series whose baseline is one hour at 1 s, and its absolute detector."""

    def __init__(self) -> None:
        self.channel = Channel(Series("p99", Role.LATENCY))
        self.absolute, self.correlated = Absolute(), CorrelatedSeries([self.channel])
        self.windows = 0
        self.stay(HOUR, 1.0, phase=Phase.BASELINE)

    def stay(
        self, windows: int, seconds: float, degraded: float | None = None, phase: Phase = Phase.SOAK
    ) -> AbsoluteRise | None:
        """Add windows of this latency; returns the last one's rise. `degraded`: latency of a degradation before."""
        rise = None
        for _ in range(windows):
            start = self.windows * WINDOW_SECONDS
            level = self.channel.add(seconds, start, start + WINDOW_SECONDS, phase)
            assert level is not None
            before = None if degraded is None else math.log(degraded)
            rise = self.absolute.follow(self.channel, level, self.correlated, False, lambda: True, before)
            self.windows += 1
        return rise


def test_a_rise_beyond_any_noise_is_one_without_a_device() -> None:
    watched = Watched()
    assert watched.stay(70, 30.0) is None
    rise = watched.stay(50, 30.0)
    assert rise is not None
    assert rise.level == pytest.approx(math.log(30))
    assert rise.windows == 120


def test_a_run_that_degraded_has_to_rise_far_beyond_that() -> None:
    """Its level wavers, and more the closer it is to saturation: twice as much is no further rise."""
    watched = Watched()
    watched.stay(120, 25.0)
    assert watched.stay(200, 50.0, degraded=25.0) is None
    assert watched.stay(200, 100.0, degraded=25.0) is not None


def test_a_further_rise_begins_after_the_first() -> None:
    watched = Watched()
    watched.stay(150, 25.0)
    rise = watched.stay(130, 200.0, degraded=25.0)
    assert rise is not None
    assert rise.windows == 130
