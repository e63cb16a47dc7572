"""What was asked for and what was reached, over the windows in which a rate was asked for."""

from dataclasses import replace
from pathlib import Path

import pytest
from testkit.recorded_runs import JournalPlan, make_journal
from tests.analysis.sound_run import SOUND

from cliffwatch.analysis.asked_rate import AskedRate, asked_rate, not_reached
from cliffwatch.analysis.verdict import judge
from cliffwatch.engines.fio.job import parse_job
from cliffwatch.journal import JournalReader
from cliffwatch.model.run_state import VerdictName


def test_a_rate_that_was_not_reached_is_said_and_one_that_was_is_not() -> None:
    words = not_reached(AskedRate(800.0, 500.0))
    assert words == "The rate that was asked for was not reached: 500 of 800 operations a second (62.5 %)."
    assert not_reached(AskedRate(800.0, 790.0)) is None
    assert not_reached(None) is None
    verdict = judge(replace(SOUND, rate=AskedRate(800.0, 500.0)))
    assert (verdict.name, words in verdict.reasons) == (VerdictName.PASS, True)


def test_a_target_that_never_kept_up_is_degraded_though_no_window_is_slower_than_others() -> None:
    verdict = judge(replace(SOUND, rate=AskedRate(800.0, 399.0)))
    assert verdict.name is VerdictName.DEGRADED
    assert verdict.reasons == ("The rate that was asked for was not reached: 399 of 800 operations a second (49.9 %).",)


@pytest.mark.parametrize("gauge", ["requested_operations_per_second", "target_rate"])
def test_it_is_taken_over_the_windows_that_ask_for_one(tmp_path: Path, gauge: str) -> None:
    plan = JournalPlan(
        windows=10,
        gauges=lambda index: {gauge: 100.0} if index < 5 else {},
        counters=lambda index: {"operations": 60 if index < 5 else 9_000},
    )
    windows = list(JournalReader(make_journal(tmp_path, plan)).windows())
    seconds = windows[0].seconds
    found = asked_rate(windows)
    assert found is not None
    assert found.asked == pytest.approx(100.0)
    assert found.reached == pytest.approx(60 / seconds)
    assert asked_rate(windows[5:]) is None


@pytest.mark.parametrize(
    ("options", "rate"),
    [
        ("rw=write\nrate_iops=200\nnumjobs=4", 800.0),
        ("rw=write\nrate=1m\nbs=16k", 64.0),
        ("rw=randread\nrate_iops=10,20", 10.0),
        ("rw=write\nrate_iops=10,20", 20.0),
        ("rw=write\nrate_iops=200\nrate=1m\nbs=16k", 64.0),
        ("rw=write", None),
        ("rw=randrw\nrate_iops=200", None),
        ("rw=write\nrate=1m\nbssplit=4k/50:64k/50", None),
    ],
)
def test_the_target_rate_of_a_fio_job_is_read_from_its_rate_options(options: str, rate: float | None) -> None:
    (section,) = parse_job(f"[w]\nsize=64m\ndirect=1\n{options}\n")
    assert section.operations_per_second() == rate
