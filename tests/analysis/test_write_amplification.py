"""A drive's write amplification as evidence: garbage collection is not one of the run's own compactions."""

from types import ModuleType

import pytest
from testkit.soaks import heavy, lognormal, queue
from testkit.soaks.amplified import COLUMN, amplified
from testkit.soaks.soak import Soak

from cliffwatch.analysis.csv_table import read_table
from cliffwatch.analysis.finding import FindingKind, Role, Series
from cliffwatch.analysis.online.replay import replay

MINUTE = 60.0


def compacting(generator: ModuleType, seed: int, event: str) -> Soak:
    """A soak with this degradation, whose compaction is about as high and as long as the rise that has to be seen."""
    soak: Soak = generator.make(seed, events=(event,), healthy=("compaction",))
    return soak


def minutes_to_raise(soak: Soak) -> float:
    found = replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)
    (truth,) = soak.truths
    raised = next(each for each in found if each.detected is not None and each.detected >= truth.onset)
    assert raised.kind is FindingKind.CLIFF
    assert raised.detected is not None
    return (raised.detected - truth.onset) / MINUTE


@pytest.mark.parametrize(
    ("generator", "seed", "event"), [(queue, 108, "late"), (queue, 100, "late"), (heavy, 104, "late")]
)
def test_a_cliff_like_a_compaction_is_raised_at_once(generator: ModuleType, seed: int, event: str) -> None:
    soak = compacting(generator, seed, event)
    assert minutes_to_raise(soak) > 8, "longer than the compactions last"
    assert minutes_to_raise(amplified(soak)) < 4


@pytest.mark.parametrize("generator", [lognormal, queue, heavy])
def test_write_amplification_alone_is_no_finding(generator: ModuleType) -> None:
    """A drive may amplify twice as much and still be fast enough."""
    soak = amplified(generator.make(102, events=(), healthy=("compaction",), hours=24))
    soak.columns[COLUMN][4000:] *= 2
    assert replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds) == []


@pytest.mark.parametrize("generator", [lognormal, queue, heavy])
def test_compaction_that_amplifies_stays_an_excursion(generator: ModuleType) -> None:
    """Where the run's own compaction raises write amplification, that is learned as its height and length are."""
    soak = generator.make(104, events=(), healthy=("compaction",), hours=24)
    plain = replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)
    reporting = amplified(soak)
    is_compacting = soak.columns["p99"] > 1.3 * sorted(soak.columns["p99"])[len(soak.times) // 2]
    reporting.columns[COLUMN][is_compacting] *= 1.5
    found = replay(reporting.series(), reporting.samples(), list(soak.notices), soak.window_seconds)
    assert [each.kind for each in found] == [each.kind for each in plain]


def test_a_table_may_hold_it_for_each_drive() -> None:
    table = read_table(["elapsed_seconds,p99,write_amplification.8:0", "0,0.001,1.2", "10,0.001,", "20,0.001,1.3"])
    name = "device.write_amplification.8:0"
    assert Series(name, Role.WRITE_AMPLIFICATION, device="8:0") in table.series
    assert [sample.values.get(name) for sample in table.samples] == [1.2, None, 1.3]
