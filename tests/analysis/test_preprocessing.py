"""One preprocessing feeds detection while a run goes on and over the whole of it."""

import math

import numpy as np
import pytest

from cliffwatch.analysis.finding import Notice, Role, Sample, Series
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.preprocessing import (
    CLOCK_TICKS,
    Mask,
    all_spread_over_tick,
    are_on_tick,
    block_level,
    judged,
    spread_over_tick,
    tick_below,
)
from cliffwatch.analysis.run_arrays import whole_run
from cliffwatch.analysis.span_lengths import BLOCK
from cliffwatch.analysis.thresholds import NOTICE_MASK

P99 = Series("append.p99", Role.LATENCY, "append", 0.99)
WINDOWS = 2000


def samples(values: list[float], prepare: int = 0) -> list[Sample]:
    return [
        Sample(10.0 * index, 10.0 * index + 10, {P99.name: value}, "prepare" if index < prepare else None)
        for index, value in enumerate(values)
    ]


def noisy(count: int) -> list[float]:
    return [float(value) for value in np.random.default_rng(7).lognormal(math.log(0.0123456), 0.2, count)]


@pytest.mark.parametrize("at", [5000.0, 5004.0, 5010.0])
def test_windows_after_a_notice_are_masked_online_and_offline(at: float) -> None:
    taken, notices = samples(noisy(WINDOWS)), [Notice(at, "restart")]
    online = {sample.start for sample in judged(taken, notices)}
    whole = whole_run([P99], taken, notices, 10.0)
    assert whole is not None
    offline = set(whole.starts[~whole.masked].tolist())
    hidden = {sample.start for sample in taken} - online
    assert len(hidden) == NOTICE_MASK
    # With the whole run at hand, the window before is left out too.
    assert online - offline == {min(hidden) - 10}


def test_notices_may_come_in_any_order_before_their_windows() -> None:
    earlier, later = Notice(500.0, "restart"), Notice(3000.0, "gap")
    mask, known = Mask([later]), Mask([later, earlier])
    mask.notice(earlier)
    taken = samples(noisy(WINDOWS))
    assert [mask.is_masked(sample) for sample in taken] == [known.is_masked(sample) for sample in taken]
    assert mask.window == WINDOWS


@pytest.mark.parametrize("tick", CLOCK_TICKS)
def test_a_coarse_clock_is_known_and_spread_alike(tick: float) -> None:
    values = np.array([0.0, tick, 7 * tick, 7.3 * tick, 199 * tick, 200 * tick])
    expected = [tick_below(value, [tick]) > 0 for value in values.tolist()]
    assert expected == [True, True, True, False, True, False]
    assert are_on_tick(values, tick).tolist() == expected
    spread = [spread_over_tick(value, index, tick) for index, value in enumerate(values.tolist())]
    assert all_spread_over_tick(values, tick).tolist() == pytest.approx(spread)


def test_levels_and_blocks_of_the_whole_run_are_those_that_were_seen_while_it_went_on() -> None:
    values = noisy(WINDOWS)
    channel, whole = Channel(P99), whole_run([P99], samples(values), [], 10.0)
    assert whole is not None
    added = [channel.add(value, 10.0 * index, 10.0 * index + 10, None) for index, value in enumerate(values)]
    levels = [level for level in added if level is not None]
    assert whole.levels[P99.name].tolist() == pytest.approx(levels)
    first = int(whole.block_first[0])
    online = [block_level(levels[at : at + BLOCK]) for at in range(first, WINDOWS - BLOCK + 1, BLOCK)]
    assert whole.blocks[P99.name].tolist() == pytest.approx(online)
