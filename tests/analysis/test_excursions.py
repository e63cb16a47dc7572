"""When a rise counts as a change of level, and when as one of the run's own excursions."""

from dataclasses import replace

from cliffwatch.analysis.online.excursion import ExcursionEvidence, Excursions
from cliffwatch.analysis.span_lengths import FAST, HOUR
from cliffwatch.analysis.thresholds import UNLEARNED

#: Spread of a median of a few windows; a rise by a factor of four, as a logarithm; windows after which much is known.
SIGMA, HIGH, LATE = 0.02, 1.4, 8 * HOUR
#: A device that is as fast as before.
STEADY = ExcursionEvidence(device=0.0, device_sigma=0.02, rate=0.0, rate_sigma=0.02)
SLOWER = replace(STEADY, device=1.0)


def follow(excursions: Excursions, at: float, *spans: tuple[int, float]) -> float:
    """Add this many windows of each deviation, from the window `at` on; returns the window after them."""
    for windows, deviation in spans:
        for _ in range(windows):
            excursions.follow(at, deviation, SIGMA)
            at += 1
    return at


def changed(excursions: Excursions, height: float, evidence: ExcursionEvidence) -> bool:
    return excursions.is_change(height, SIGMA, evidence, LATE, is_learned=True)


def test_a_rise_that_falls_again_is_waited_for_unless_the_drive_amplifies_anew() -> None:
    """A compaction falls as it ends. A drive that collects garbage does not stop because one moment was better."""
    excursions = Excursions()
    follow(excursions, 0, (20, 0.0), (9, HIGH), (5, 0.4 * HIGH))
    assert excursions.is_open
    assert not changed(excursions, HIGH, SLOWER)
    assert changed(excursions, HIGH, replace(SLOWER, amplified=0.7))


def test_write_amplification_corroborates_what_the_device_does_not_show() -> None:
    excursions = Excursions()
    follow(excursions, 0, (20, 0.0), (12, HIGH))
    assert not changed(excursions, HIGH, STEADY)
    assert changed(excursions, HIGH, replace(STEADY, amplified=0.7))


def test_a_rise_is_anew_if_no_excursion_amplified_about_as_much() -> None:
    excursions = Excursions()
    excursions.learn(start=100, windows=30, client=HIGH, device=HIGH, amplified=0.5)
    excursions.learn(start=400, windows=30, client=HIGH, device=HIGH)
    assert not excursions.is_amplified_anew(SLOWER)
    assert not excursions.is_amplified_anew(replace(SLOWER, amplified=0.7))
    assert excursions.is_amplified_anew(replace(SLOWER, amplified=1.0))


def test_an_excursion_that_paused_amplified_as_much_as_before_the_pause() -> None:
    excursions = Excursions()
    amplified = replace(SLOWER, amplified=0.7)
    at = follow(excursions, 0, (20, 0.0), (12, HIGH))
    changed(excursions, HIGH, amplified)
    at = follow(excursions, at, (5, 0.0))
    assert excursions.is_settling
    at = follow(excursions, at, (6, HIGH))
    assert excursions.windows > 12, "the same excursion"
    follow(excursions, at, (30, 0.0))
    assert not excursions.is_settling
    assert not excursions.is_amplified_anew(amplified)


def test_a_rise_that_has_just_come_back_is_not_raised() -> None:
    excursions = Excursions()
    at = follow(excursions, 0, (20, 0.0), (30, HIGH))
    assert changed(excursions, HIGH, SLOWER)
    follow(excursions, at, (2, 0.0))
    assert excursions.is_open, "the median of five windows is still high"
    assert not changed(excursions, HIGH, SLOWER)


def test_a_burst_explains_a_rise_until_its_last_windows_are_over() -> None:
    """The rate is back at once, and the median of a quarter of an hour is not."""
    excursions = Excursions()
    at = follow(excursions, 0, (20, 0.0), (100, HIGH))
    assert not changed(excursions, HIGH, replace(SLOWER, rate=0.5))
    at = follow(excursions, at, (FAST - 1, HIGH))
    assert not changed(excursions, HIGH, SLOWER)
    follow(excursions, at, (2, HIGH))
    assert changed(excursions, HIGH, SLOWER)


def test_a_step_counts_where_the_run_is_too_young_for_the_search_for_steps() -> None:
    step, slower = 0.33, replace(STEADY, device=0.33)
    excursions = Excursions()
    at = follow(excursions, 0, (20, 0.0), (UNLEARNED - 1, step))
    assert not excursions.is_change(step, SIGMA, slower, HOUR, is_learned=True, may_be_step=True)
    follow(excursions, at, (2, step))
    assert not excursions.is_change(step, SIGMA, STEADY, HOUR, is_learned=True, may_be_step=True)
    assert not excursions.is_change(step, SIGMA, slower, HOUR, is_learned=True)
    assert excursions.is_change(step, SIGMA, slower, HOUR, is_learned=True, may_be_step=True)
