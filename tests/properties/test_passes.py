"""Properties of a pass that hold for all soaks: more trouble is never better, and what was not seen does not pass.

Each is searched with a few examples before every merge, with more in the set `real`, and with as many as asked for by
`CLIFFWATCH_EXAMPLES=10000 make test-python PYTEST=tests/properties`.
"""

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from testkit.soaks.trouble import (
    HOUR,
    LEARNED_HOURS,
    MODES,
    Kind,
    Plan,
    Rows,
    Trouble,
    csv_of,
    merged,
    rows_of,
    table_of,
    verdict_on,
    verdicts_on,
)

from cliffwatch.analysis.csv_table import read_table
from cliffwatch.base.errors import Problem
from cliffwatch.model.run_state import VerdictName

HOURS = 10
#: A wide search takes minutes of a processor, and as long again where another test has it too.
_WIDE = (pytest.mark.real(why="a wider search"), pytest.mark.timeout(1200))
EXAMPLES = pytest.mark.parametrize("examples", [3, pytest.param(50, marks=_WIDE)])
Property = Callable[..., None]


def searched(**strategies: st.SearchStrategy[Any]) -> Callable[[Property], Callable[[int], None]]:
    """Test that searches for a counterexample of a property, among so many examples."""

    def of(holds: Property) -> Callable[[int], None]:
        @EXAMPLES
        def search(examples: int) -> None:
            asked = int(os.environ.get("CLIFFWATCH_EXAMPLES", examples))
            chosen = settings(
                max_examples=asked,
                deadline=None,
                derandomize="CLIFFWATCH_EXAMPLES" not in os.environ,
                database=None,
                # A smaller counterexample is no simpler to read: all of it is in the plan that is printed.
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            chosen(given(**strategies)(holds))()

        search.__doc__ = holds.__doc__
        return search

    return of


seeds = st.integers(1, 10_000)
healthy = st.builds(
    Plan,
    seed=seeds,
    hours=st.just(HOURS),
    noise=st.sampled_from([0.03, 0.08, 0.15]),
    compaction=st.sampled_from([0, 0, 12, 24]),
    swing=st.sampled_from([0.0, 0.08]),
    rate=st.sampled_from([50.0, 800.0, 40_000.0]),
    device=st.booleans(),
    declared=st.sampled_from([0, 540]),
)
starts = st.integers(LEARNED_HOURS * HOUR + 10, (HOURS - 1) * HOUR)


@st.composite
def troubles(draw: st.DrawFn, slower_from: float = 1.3) -> Trouble:
    """Trouble of any kind; a rise of latency is by at least `slower_from`."""
    kind = draw(st.sampled_from(list(Kind)))
    windows = draw(st.sampled_from([1, 2, 6, 18, 60, 200, 700]))
    times = draw(st.integers(1, 8))
    size = {
        Kind.ERRORS: st.sampled_from([0.001, 0.1]),
        Kind.SKIPPED: st.sampled_from([0.001, 0.3]),
        Kind.SHORTFALL: st.sampled_from([0.1, 0.3]),
    }.get(kind, st.sampled_from([size for size in (1.3, 2.0, 5.0, 40.0) if size >= slower_from]))
    apart = windows + draw(st.sampled_from([13, 60, 200, 500]))
    return Trouble(kind, draw(starts), windows, draw(size), times, apart)


def passes(plan: Plan) -> dict[str, bool]:
    """Whether a soak passes, by mode."""
    return {mode: verdict.name is VerdictName.PASS for mode, verdict in verdicts_on(table_of(plan)).items()}


def windows_of(plan: Plan, laid: list[Trouble], kinds: Collection[Kind]) -> set[int]:
    """Numbers of the windows with trouble of some kinds."""
    count = plan.hours * HOUR
    spans = [span for each in laid if each.kind in kinds for span in each.spans(count)]
    return {window for span in spans for window in range(count)[span]}


#: Soaks that passed once.
_RISE = Trouble(Kind.SLOWER, 2450, 60, 1.3, 8, 73)
_NOISY, _QUIET = Plan(9999, hours=HOURS, noise=0.15, rate=40_000.0), Plan(293, hours=HOURS, noise=0.03, rate=50.0)
_SPIKES = Trouble(Kind.SLOWER, 1561, 6, 5.0, 7, 66), Trouble(Kind.CLIENT, 1702, 6, 5.0, 7, 506)
_COMPACTING = Plan(823, hours=HOURS, noise=0.15, compaction=24, swing=0.08)
ONCE_PASSED = {
    "a rise that came eight times": _NOISY.more(_RISE),
    "a rise that was higher at first by another": _NOISY.more(_RISE, replace(_RISE, times=1)),
    "a small edge within a rise of the client": _QUIET.more(Trouble(Kind.CLIENT, 2222, 700, 5.0)),
    "a high rise that began with a low one": replace(_QUIET, seed=2684, noise=0.08, rate=40_000.0).more(
        Trouble(Kind.SLOWER, 1450, 200, 2.0), Trouble(Kind.SLOWER, 1497, 200, 5.0)
    ),
    "a rise of the client among compactions": _COMPACTING.more(Trouble(Kind.CLIENT, 2264, 500, 2.0)),
    "a rise of an hour among compactions": replace(_COMPACTING, seed=2560, swing=0.0, rate=50.0).more(
        Trouble(Kind.CLIENT, 2560, 400, 2.0)
    ),
    "rises among compactions as high": Plan(
        2751, hours=HOURS, noise=0.03, compaction=12, swing=0.08, device=False
    ).more(Trouble(Kind.CLIENT, 1608, 200, 2.0, 6, 700)),
    "spikes below higher ones": Plan(3, hours=HOURS, noise=0.03, swing=0.08, rate=40_000.0, device=False).more(
        Trouble(Kind.CLIENT, 1919, 1, 150.0, 3, 61), Trouble(Kind.SLOWER, 3195, 6, 10.0, 8, 66)
    ),
    "a rise to just less than twice, from a declared baseline to the end": Plan(
        1219, hours=HOURS, noise=0.03, compaction=24, swing=0.08, rate=40_000.0, device=False, declared=180
    ).more(Trouble(Kind.SLOWER, 190, HOURS * HOUR, 2.0)),
    "a rise from soon after a short baseline to the end": Plan(
        1023, hours=HOURS, noise=0.15, compaction=24, rate=50.0, device=False, declared=36
    ).more(Trouble(Kind.SLOWER, 82, HOURS * HOUR, 2.0)),
    "a rise within the last minute of a baseline": Plan(
        1284, hours=HOURS, compaction=12, swing=0.08, rate=50.0, device=False, declared=90
    ).more(Trouble(Kind.SLOWER, 85, HOURS * HOUR, 5.0)),
    "a rise of hours that was higher for ten minutes": Plan(9360, hours=HOURS, noise=0.03, swing=0.08).more(
        Trouble(Kind.CLIENT, 2900, 60, 5.0), Trouble(Kind.CLIENT, 2900, 700, 5.0)
    ),
    "a rise right after a restart and a short baseline, among compactions": Plan(
        364, hours=HOURS, noise=0.15, compaction=24, device=False, declared=180, restart=189
    ).more(Trouble(Kind.SLOWER, 190, HOURS * HOUR, 2.0)),
    "spikes beside spikes": Plan(1125, hours=HOURS, noise=0.03, swing=0.08, rate=40_000.0).more(*_SPIKES),
}


@pytest.mark.parametrize("plan", ONCE_PASSED.values(), ids=ONCE_PASSED)
def test_a_soak_that_once_passed_is_found(plan: Plan) -> None:
    assert not any(passes(plan).values())


@searched(plan=healthy)
def test_a_healthy_soak_passes_in_both_modes(plan: Plan) -> None:
    for mode, verdict in verdicts_on(table_of(plan)).items():
        assert verdict.name is VerdictName.PASS, (mode, verdict.reasons)


@searched(
    plan=healthy,
    first=st.lists(troubles(slower_from=2.0), min_size=1, max_size=2),
    more=st.lists(troubles(), min_size=1, max_size=2),
)
def test_more_trouble_never_gives_a_better_verdict(plan: Plan, first: list[Trouble], more: list[Trouble]) -> None:
    """Gaps that hide trouble are left out: what is not in the file is found by none, and a short gap passes. So is
    trouble of less than ×2: what was just large enough to be found depends on all that is beside it."""
    assume(windows_of(plan, first, set(Kind)).isdisjoint(windows_of(plan, more, {Kind.GAP})))
    some = passes(plan.more(*first))
    if not all(some.values()):
        all_of_it = passes(plan.more(*first, *more))
        assert not [mode for mode in MODES if all_of_it[mode] and not some[mode]]


@searched(
    plan=healthy,
    kind=st.sampled_from([Kind.SLOWER, Kind.CLIENT]),
    size=st.sampled_from([2.0, 5.0, 40.0]),
    start=st.integers(LEARNED_HOURS * HOUR + 10, 8 * HOUR),
    windows=st.sampled_from([400, 500, 700]),
)
def test_a_rise_of_more_than_an_hour_does_not_pass(
    plan: Plan, kind: Kind, size: float, start: int, windows: int
) -> None:
    assert not any(passes(plan.more(Trouble(kind, start, windows, size))).values())


@searched(plan=healthy, laid=st.lists(troubles(), min_size=1, max_size=3))
def test_both_modes_agree_but_for_what_came_back_soon(plan: Plan, laid: list[Trouble]) -> None:
    """During the run it is not known yet what comes back: offline drops brief excursions that are rare."""
    assume(any(trouble.start < plan.hours * HOUR for trouble in laid))
    with_trouble = plan.more(*laid)
    offline, online = passes(with_trouble).values()
    if not offline and online:
        # Five spikes of the client alone are a train afterwards; during the run they may still be chance. Without a
        # device, rises of less than ×2 that come and go are found afterwards alone.
        slight = {Kind.SLOWER, Kind.CLIENT} if not plan.device else set()
        counted = [each for each in laid if each.kind not in slight or each.size >= 2.0]
        assert sum(each.share(plan.hours * HOUR) for each in counted) < 0.025
    elif offline and not online:
        slow = [trouble for trouble in laid if trouble.kind in (Kind.SLOWER, Kind.CLIENT)]
        assert slow
        assert sum(each.share(plan.hours * HOUR) for each in slow if each.size >= 2.0) < 0.05 or all(
            each.windows < 45 * 6 for each in slow
        )


@searched(
    plan=healthy,
    laid=st.lists(troubles(), max_size=2),
    shift=st.sampled_from([0.0, 86_400.0, 1e8]),
    by=st.sampled_from([1, 2, 5]),
)
def test_the_same_soak_said_differently_has_the_same_verdict(
    plan: Plan, laid: list[Trouble], shift: float, by: int
) -> None:
    """As a CSV, shifted in time, always; in longer windows where there is no trouble, or much of it."""
    with_trouble = plan.more(*laid)
    rows = rows_of(with_trouble)
    expected = verdict_on(table_of(with_trouble), "offline").name is VerdictName.PASS
    written = read_table(csv_of(rows, shift_seconds=shift))
    assert (verdict_on(written, "offline").name is VerdictName.PASS) == expected
    large = any(each.size >= 5.0 and each.share(plan.hours * HOUR) > 0.2 for each in laid)
    if by > 1 and (not laid or large):
        longer = read_table(csv_of(merged(rows, by)))
        assert (verdict_on(longer, "offline").name is VerdictName.PASS) == expected


@searched(
    plan=healthy,
    declared=st.sampled_from([0, 36, 180, 1440]),
    restart=st.floats(0.0, 1.0),
    rise=st.floats(0.02, 0.6),
    size=st.sampled_from([2.0, 5.0, 40.0]),
)
def test_a_restart_does_not_hide_a_rise_that_lasts(
    plan: Plan, declared: int, restart: float, rise: float, size: float
) -> None:
    """A restart before the rise, or in it, in a run whose healthy level was declared or learned for hours. Of a
    declared baseline that a compaction made as slow as the rise, it is said."""
    first = max(declared or LEARNED_HOURS * HOUR, int(rise * HOURS * HOUR)) + 10
    plan = replace(plan, declared=declared, restart=int(restart * first))
    slower = plan.more(Trouble(Kind.SLOWER, first, HOURS * HOUR, size))
    for mode, verdict in verdicts_on(table_of(slower)).items():
        may_pass = (
            size <= 2.0 and declared and any(each.startswith("The baseline was slow") for each in verdict.reasons)
        )
        assert verdict.name is not VerdictName.PASS or may_pass, mode


@searched(
    plan=healthy,
    declared=st.sampled_from([90, 180, 540, 1440]),
    place=st.floats(0.0, 1.0),
    kind=st.sampled_from([Kind.SLOWER, Kind.CLIENT]),
    size=st.sampled_from([2.0, 5.0, 40.0]),
)
def test_a_rise_within_the_declared_baseline_does_not_pass(
    plan: Plan, declared: int, place: float, kind: Kind, size: float
) -> None:
    """From five minutes after the baseline phase begins: what rises sooner may be a warm-up. A rise that is no higher
    than the run's compactions may be taken for one."""
    first = 30 + int(place * (declared - 30))
    assume(first > 3 * plan.compaction and (size > 2.0 or not plan.compaction))
    slower = replace(plan, declared=declared).more(Trouble(kind, first, HOURS * HOUR, size))
    for mode, verdict in verdicts_on(table_of(slower)).items():
        assert verdict.name is not VerdictName.PASS, mode


def _blank(rows: Rows, column: str, how: str, span: slice) -> None:
    values = rows.columns[column]
    if how == "missing":
        values[span] = np.nan
    elif how == "zero":
        values[span] = 0.0
    elif how == "negative":
        values[span] = -1.0
    else:
        values[span] = values[span.start]


@searched(
    plan=healthy,
    how=st.sampled_from(["missing", "zero", "negative", "frozen"]),
    share=st.sampled_from([0.02, 0.3, 1.0]),
    start=st.floats(0.0, 0.9),
    mode=st.sampled_from(MODES),
)
def test_latencies_that_were_not_seen_do_not_pass(plan: Plan, how: str, share: float, start: float, mode: str) -> None:
    """Latencies that are missing, zero, negative or frozen beside no operation, for a fiftieth of the time and more."""
    rows = rows_of(plan)
    count = len(rows.times)
    first = int(start * count * (1 - share))
    span = slice(first, first + max(2, int(share * count)))
    _blank(rows, "p99", how, span)
    if how in ("zero", "frozen"):
        rows.columns["operations_per_second"][span] = 0.0
    try:
        table = read_table(csv_of(rows))
    except Problem:
        return
    assert verdict_on(table, mode).name is not VerdictName.PASS


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [2.0, 5.0])
@pytest.mark.parametrize("windows", [1, 3, 9, 18, 60, 180])
@pytest.mark.parametrize("kind", [Kind.SLOWER, Kind.CLIENT])
@pytest.mark.parametrize("share", [0.055, 0.25])
def test_a_twentieth_of_the_time_at_twice_the_latency_does_not_pass(
    share: float, kind: Kind, windows: int, size: float, mode: str
) -> None:
    """As docs/detection.md promises, whatever the length of each rise."""
    hours = 20
    times = max(1, round(share * (hours - LEARNED_HOURS) * HOUR / windows))
    apart = (hours - LEARNED_HOURS - 1) * HOUR // times
    plan = Plan(7, hours=hours, troubles=(Trouble(kind, LEARNED_HOURS * HOUR + 40, windows, size, times, apart),))
    assert plan.troubles[0].share(hours * HOUR) >= 0.05
    assert verdict_on(table_of(plan), mode).name is not VerdictName.PASS
