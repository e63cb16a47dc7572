"""Quality of detection on soaks with known degradations: how many are missed, false alarms, and delays.

The soaks come from three different generators; a fourth adds to such soaks what percentiles hide: stalls, loads that
fade, rare spikes; a fifth what comes by chance on a shared machine. No detector was tuned on these seeds.
`python -m bench.detection` prints results by generator and kind, with counts and confidence intervals; `--peers` adds
the results of other methods on the same series, and `--otava` those of Apache Otava, in a temporary environment of its
own.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median

from bench.figures import Figure
from testkit.soaks import heavy, hidden, lognormal, queue, shared
from testkit.soaks.amplified import amplified
from testkit.soaks.scoring import UNDER_COMPACTION, Score, score
from testkit.soaks.soak import Soak

from cliffwatch.analysis.finding import Finding
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.thresholds import PATIENCE

#: Lowest seed that may be used here: those below it were used to develop the detectors.
FIRST_SEED = 5000
SEEDS = 20
#: Seeds by which the false alarms of each generator are counted: 0.03 a day is one in 800 healthy hours.
RARE_SEEDS = 100
MINUTE = 60.0
GENERATORS, POOLED = ("lognormal", "queue", "heavy", "hidden", "shared"), "pooled"
#: Minutes within which a cliff as high as the run's own compactions has outlasted them: `PATIENCE`, and those that any
#: cliff takes.
OUTLASTED = PATIENCE * lognormal.WINDOW_SECONDS / MINUTE + 2
Method = Callable[[Soak], list[Finding]]


@dataclass(slots=True)
class Pooled:
    """Scores of all soaks together; `cost_seconds` is the processor time of each soak, `series_seconds` that of each of
    its series."""

    truths: int = 0
    missed: list[str] = field(default_factory=list)
    false_alarms: int = 0
    extra: int = 0
    misnamed: int = 0
    hours: float = 0.0
    healthy_hours: float = 0.0
    delays: dict[str, list[float]] = field(default_factory=dict)
    onset_errors: dict[str, list[float]] = field(default_factory=dict)
    drift_marks: dict[float, list[bool]] = field(default_factory=dict)
    cost_seconds: list[float] = field(default_factory=list)
    series_seconds: list[float] = field(default_factory=list)
    values: int = 0

    def add(self, one: Score, seconds: float, values: int, columns: int) -> None:
        self.cost_seconds.append(seconds)
        self.series_seconds.append(seconds / columns)
        self.values += values
        self.truths += one.truths
        self.missed += [truth.name for truth in one.missed]
        self.false_alarms += len(one.false_alarms)
        self.extra += len(one.extra)
        self.misnamed += len(one.misnamed)
        self.hours += one.hours
        self.healthy_hours += one.healthy_hours
        for name, delays in one.delays.items():
            self.delays.setdefault(name, []).extend(delays)
        for name, errors in one.onset_errors.items():
            self.onset_errors.setdefault(name, []).extend(map(abs, errors))
        for mark, passed in one.drift_marks.items():
            self.drift_marks.setdefault(mark, []).extend(passed)
        for truth in one.missed:
            for mark in truth.marks:
                self.drift_marks.setdefault(mark, []).append(False)

    @property
    def false_alarms_a_day(self) -> float:
        return self.false_alarms / self.healthy_hours * 24 if self.healthy_hours else 0.0

    @property
    def wrong_a_day(self) -> float:
        """False alarms before the first degradation, findings besides it since, and findings of another kind."""
        return (self.false_alarms + self.extra + self.misnamed) / self.hours * 24 if self.hours else 0.0

    @property
    def interval_a_day(self) -> tuple[float, float]:
        low, high = poisson_interval(self.false_alarms)
        return low / self.healthy_hours * 24, high / self.healthy_hours * 24


def figures() -> list[Figure]:
    """The figures of online and offline detection that docs/figures.md states."""
    corpus = list(soaks(range(FIRST_SEED, FIRST_SEED + SEEDS)))
    rare = range(FIRST_SEED, FIRST_SEED + RARE_SEEDS)
    return [
        *_online_figures(measure(corpus, online, True)[POOLED]),
        *_by_generator("online", measure(soaks(rare), online, True), 0.03),
        *_amplified_figures(measure(with_amplification(corpus), online, True)[POOLED]),
        *_offline_figures(measure(corpus, offline, False)[POOLED]),
        *_by_generator("offline", measure(soaks(rare), offline, False), 0.01),
    ]


def soaks(seeds: Iterable[int]) -> Iterator[Soak]:
    """One soak per generator and seed; its degradations and look-alikes, if any, are drawn at random."""
    for seed in seeds:
        yield lognormal.make(seed)
        yield queue.make(seed)
        yield heavy.make(seed)
        yield hidden.make(seed)
        yield shared.make(seed)


def with_amplification(corpus: Iterable[Soak]) -> list[Soak]:
    """The soaks of the three generators, each with a drive that reports write amplification."""
    return [amplified(soak) for soak in corpus if soak.generator not in ("hidden", "shared")]


def online(soak: Soak) -> list[Finding]:
    return replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


def offline(soak: Soak) -> list[Finding]:
    return analysis(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


def measure(corpus: Iterable[Soak], method: Method, is_online: bool) -> dict[str, Pooled]:
    """Scores of a method on a corpus, by generator and pooled; findings match by time of detection if `is_online`, else
    by their onset."""
    pools = {generator: Pooled() for generator in (*GENERATORS, POOLED)}
    for soak in corpus:
        one = _measured(soak, method, is_online)
        for generator in (soak.generator, POOLED):
            pools[generator].add(*one)
    return pools


def _measured(soak: Soak, method: Method, is_online: bool) -> tuple[Score, float, int, int]:
    """A soak's score, the processor time that it took, and how many values and how many series it has."""
    began = time.process_time()
    findings = method(soak)
    seconds = time.process_time() - began
    columns = len(soak.columns)
    return score(soak, findings, is_online), seconds, len(soak.times) * columns, columns


def poisson_interval(count: int) -> tuple[float, float]:
    """Exact 95 % confidence interval of the mean of a Poisson distribution of which `count` is one draw."""

    def at_most(mean: float, most: int) -> float:
        return sum(math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(most + 1))

    def solve(most: int, probability: float) -> float:
        low, high = 1e-9, 10.0 * count + 50
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if at_most(middle, most) > probability else (low, middle)
        return low

    return (solve(count - 1, 0.975) if count else 0.0), solve(count, 0.025)


def _online_figures(pooled: Pooled) -> Iterator[Figure]:
    yield Figure("detection online: missed", len(pooled.missed), "", 0)
    yield Figure("detection online: false alarms per 24 healthy hours", pooled.false_alarms_a_day, "", 0.03)
    yield Figure(
        "detection online: false alarms, further and misnamed findings per 24 hours", pooled.wrong_a_day, "", 0.03
    )
    for name, usual, worst in (
        ("cliff", 2, 3),
        ("late", 2, 4),
        ("cliff" + UNDER_COMPACTION, OUTLASTED, OUTLASTED),
        ("late" + UNDER_COMPACTION, OUTLASTED, OUTLASTED),
        ("step", 10, 30),
        ("spikes", 6, 20),
    ):
        delays = pooled.delays.get(name, [])
        if delays:
            yield Figure(f"detection online: {name}, median delay", median(delays) / MINUTE, "min", usual)
            yield Figure(f"detection online: {name}, worst delay", max(delays) / MINUTE, "min", worst)
    for mark, share in ((1.3, 0.8), (1.4, 1.0)):
        passed = pooled.drift_marks.get(mark, [])
        if passed:
            reported = sum(passed) / len(passed)
            yield Figure(f"detection online: drift raised before ×{mark}", reported, "", share, at_least=True)
    cost = sum(pooled.cost_seconds) / pooled.values * 1e6
    yield Figure("detection online: processor time per window and series", cost, "µs", 50)


def _by_generator(when: str, pools: dict[str, Pooled], most: float) -> Iterator[Figure]:
    """False alarms of all soaks, and of the generator that has most of them."""
    worst = max(GENERATORS, key=lambda name: pools[name].false_alarms_a_day)
    of, what = f"of {RARE_SEEDS} soaks of each generator", "false alarms per 24 healthy hours"
    yield Figure(f"detection {when}: {what}, {of}", pools[POOLED].false_alarms_a_day, "", most)
    yield Figure(f"detection {when}: {what}, {of}, worst ({worst})", pools[worst].false_alarms_a_day, "", most)


def _amplified_figures(pooled: Pooled) -> Iterator[Figure]:
    what = "detection online, write amplification reported"
    yield Figure(f"{what}: missed", len(pooled.missed), "", 0)
    yield Figure(f"{what}: false alarms per 24 healthy hours", pooled.false_alarms_a_day, "", 0.03)
    for name, worst in (("cliff", 3), ("late", 4)):
        if delays := [*pooled.delays.get(name, ()), *pooled.delays.get(name + UNDER_COMPACTION, ())]:
            yield Figure(f"{what}: {name}, worst delay", max(delays) / MINUTE, "min", worst)


def _offline_figures(pooled: Pooled) -> Iterator[Figure]:
    yield Figure("detection offline: missed", len(pooled.missed), "", 0)
    yield Figure("detection offline: false alarms per 24 healthy hours", pooled.false_alarms_a_day, "", 0.01)
    yield Figure(
        "detection offline: false alarms, further and misnamed findings per 24 hours", pooled.wrong_a_day, "", 0.01
    )
    for name, usual, worst in (
        ("cliff", 0.2, 1.0),
        ("late", 0.2, 1.0),
        ("cliff" + UNDER_COMPACTION, 0.2, 1.0),
        ("late" + UNDER_COMPACTION, 0.2, 1.0),
        ("step", 0.2, 1.0),
        ("spikes", 5.0, 5.0),
        ("drift", 240.0, 240.0),
    ):
        errors = pooled.onset_errors.get(name, [])
        if errors:
            yield Figure(f"detection offline: {name}, median onset error", median(errors) / MINUTE, "min", usual)
            yield Figure(f"detection offline: {name}, worst onset error", max(errors) / MINUTE, "min", worst)
    yield Figure("detection offline: processor time for a series, worst", max(pooled.series_seconds), "s", 0.5)


def describe(name: str, pooled: Pooled) -> Iterator[str]:
    """Lines of text with everything that was measured of a method."""
    low, high = pooled.interval_a_day
    missed = ", ".join(sorted(pooled.missed))
    yield f"{name}: missed {len(pooled.missed)} of {pooled.truths}" + (f" ({missed})" if missed else "")
    yield (
        f"  false alarms {pooled.false_alarms} in {pooled.healthy_hours:.0f} healthy hours: "
        f"{pooled.false_alarms_a_day:.3f} ({low:.3f}–{high:.3f}) per 24 h"
    )
    yield (
        f"  of another kind than what was made {pooled.misnamed}, raised besides since {pooled.extra}: "
        f"with false alarms {pooled.wrong_a_day:.3f} per 24 h of {pooled.hours:.0f} hours"
    )
    for kind in sorted({*pooled.delays, *pooled.onset_errors}):
        parts = [f"  {kind:24s}"]
        for what, values in (("delay", pooled.delays.get(kind)), ("onset error", pooled.onset_errors.get(kind))):
            if values:
                usual, worst = median(values) / MINUTE, max(values) / MINUTE
                parts.append(f"{what} median {usual:.1f} worst {worst:.1f} min (n={len(values)})")
        yield " ".join(parts)
    for mark, passed in sorted(pooled.drift_marks.items()):
        yield f"  drift raised before ×{mark}: {sum(passed)} of {len(passed)}"
    yield (
        f"  cost {sum(pooled.cost_seconds) / pooled.values * 1e6:.1f} µs per window and series, "
        f"{max(pooled.cost_seconds):.2f} s for a soak and {max(pooled.series_seconds):.2f} s for a series at worst"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.detection", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many soaks of each generator")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--peers", action="store_true", help="other methods on the same series")
    parser.add_argument("--otava", action="store_true", help="Apache Otava, installed for this and thrown away")
    arguments = parser.parse_args()
    corpus = list(soaks(range(arguments.first, arguments.first + arguments.seeds)))
    methods: list[tuple[str, Method, bool]] = [("online", online, True), ("offline", offline, False)]
    if arguments.peers or arguments.otava:
        from bench import detection_peers as peers

        methods += peers.METHODS if arguments.peers else []
        methods += [("Apache Otava, 5-min medians", peers.otava(), False)] if arguments.otava else []
    for name, method, is_online in methods:
        for generator, pooled in measure(corpus, method, is_online).items():
            for line in describe(f"{name}, {generator}", pooled):
                print(line, flush=True)
    reported = measure(with_amplification(corpus), online, True)[POOLED]
    print("\n".join(describe("online, write amplification reported", reported)))


if __name__ == "__main__":
    main()
