"""What the evidence allows to be said."""

from dataclasses import replace

import pytest
from tests.analysis.sound_run import GIB, SOUND, covered

from cliffwatch.analysis.coverage import Coverage
from cliffwatch.analysis.reached_drive import Share
from cliffwatch.analysis.run_evidence import FindingSummary, LimitOutcome, LoadEnd, RunEvidence
from cliffwatch.analysis.verdict import judge, percent
from cliffwatch.model.run_state import VerdictName


def test_a_sound_run_passes_with_its_figures() -> None:
    verdict = judge(SOUND)
    assert verdict.name is VerdictName.PASS
    assert verdict.reasons == (
        "1,000,000 operations without an error in 1h of measurement, 100.00 % of the requested time, and the device "
        "took 102.0 GiB for the 100.0 GiB that the engine wrote.",
    )


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (
            {"load_end": LoadEnd.FAILED, "message": "status 1."},
            VerdictName.FAILED,
            "The load failed permanently: status 1.",
        ),
        ({"windows": 0, "coverage": Coverage(60.0, 0.0)}, VerdictName.FAILED, "No window was measured in the 1m"),
        ({"operations": 0, "errors": 7}, VerdictName.FAILED, "No operation was completed in 360 windows; 7 failed."),
        ({"operations": 0, "errors": 0, "windows": 1}, VerdictName.FAILED, "No operation was completed in 1 window."),
        ({"load_end": LoadEnd.STOPPED}, VerdictName.STOPPED, "stopped the run after 1h of load"),
        ({"load_end": None}, VerdictName.INVALID, "does not say how the load ended"),
        ({"coverage": covered(9899.0)}, VerdictName.INVALID, "Only 98.99 % of the requested time"),
        (
            {"coverage": Coverage(60.0, 57.0, partial_windows=31, partial_seconds=3.0)},
            VerdictName.INVALID,
            "(57 s of 1m, 31 windows in part)",
        ),
        (
            {"device_written_bytes": 89 * GIB},
            VerdictName.INVALID,
            "served by the page cache: the engine wrote 100.0 GiB",
        ),
        ({"device_read_bytes": 0}, VerdictName.INVALID, "the engine read 10.0 GiB, but only 0 B (0.00 %) came from"),
        ({"has_drive": False}, VerdictName.INVALID, "No drive is below the target"),
        (
            {"device_written_bytes": None},
            VerdictName.INVALID,
            "There is no evidence that the I/O reached the device (100.0 GiB wr",
        ),
        ({"lost_latencies": 10_001}, VerdictName.INVALID, "1.00 % of the recorded latencies can no longer be read"),
        ({"errors": 13}, VerdictName.DEGRADED, "13 of 1,000,013 operations failed (0.0013 %)"),
        (
            {"skipped": 300, "due": 2000},
            VerdictName.DEGRADED,
            "300 of 2,000 operations that were due were skipped (15 %).",
        ),
        ({"skipped": 7}, VerdictName.DEGRADED, "7 operations that were due were skipped."),
        ({"errors": 1, "operations": 10**9}, VerdictName.DEGRADED, "failed (less than 0.0001 %)"),
        (
            {"findings": (FindingSummary("cliff", "p99 rose 40-fold at 12:00."),)},
            VerdictName.DEGRADED,
            "p99 rose 40-fold at 12:00.",
        ),
    ],
)
def test_each_fault_has_its_verdict_and_a_sentence(change: dict[str, object], name: VerdictName, words: str) -> None:
    verdict = judge(replace(SOUND, **change))  # type: ignore[arg-type]  # fields by name
    assert verdict.name is name
    assert words in verdict.reasons[0]


def test_a_load_that_the_kernel_charges_to_the_engine_needs_no_counter_of_the_drive() -> None:
    uncounted = replace(SOUND, device_written_bytes=None, device_read_bytes=None, read_bytes=0)
    charged = replace(uncounted, written_share=Share(10 * GIB, 9 * GIB, 0))
    verdict = judge(charged)
    assert verdict.name is VerdictName.PASS
    assert any("its counters were not recorded, or never moved" in reason for reason in verdict.reasons)
    assert judge(replace(uncounted, written_share=Share(10 * GIB, 8 * GIB, 0))).name is VerdictName.INVALID


def test_an_engine_that_died_is_named_where_too_little_was_measured() -> None:
    died = replace(SOUND, deaths=4, death="the command ended with status 7")
    assert judge(died).name is VerdictName.PASS
    verdict = judge(replace(died, coverage=covered(9000.0)))
    assert verdict.name is VerdictName.INVALID
    assert verdict.reasons[0].startswith("Only 90.00 %")
    assert verdict.reasons[1] == "The engine died and was started again 4 times: the command ended with status 7."


def test_coverage_passes_from_99_percent_on_and_not_below() -> None:
    assert judge(replace(SOUND, coverage=covered(9900.0))).name is VerdictName.PASS
    assert judge(replace(SOUND, coverage=covered(9890.0))).name is VerdictName.INVALID


def test_the_device_must_have_done_nine_tenths_of_the_engines_work() -> None:
    assert judge(replace(SOUND, device_written_bytes=90 * GIB)).name is VerdictName.PASS
    assert judge(replace(SOUND, device_written_bytes=90 * GIB - 1)).name is VerdictName.INVALID


def test_writes_of_other_processes_do_not_prove_that_the_load_reached_the_drive() -> None:
    """The device took plenty, but the kernel charges the engine's process with a twentieth of what it wrote."""
    cached = Share(engine_bytes=99 * GIB, charged_bytes=5 * GIB, device_bytes=800 * GIB)
    verdict = judge(replace(SOUND, device_written_bytes=800 * GIB, written_share=cached))
    assert verdict.name is VerdictName.INVALID
    assert "page cache: the engine wrote 99.0 GiB, but only 5.0 GiB (5.05 %) of its own reached" in verdict.reasons[0]
    read = Share(engine_bytes=10 * GIB, charged_bytes=0, device_bytes=10 * GIB)
    assert judge(replace(SOUND, read_share=read)).name is VerdictName.INVALID
    enough = replace(cached, charged_bytes=int(99 * 0.9 * GIB) + 1)
    assert judge(replace(SOUND, device_written_bytes=800 * GIB, written_share=enough)).name is VerdictName.PASS


def test_a_drive_that_others_used_more_than_the_engine_passes_with_a_word_of_it() -> None:
    own = Share(engine_bytes=304 * GIB, charged_bytes=304 * GIB, device_bytes=2300 * GIB)
    passed = replace(SOUND, written_bytes=304 * GIB, device_written_bytes=2300 * GIB, written_share=own)
    verdict = judge(passed)
    assert verdict.name is VerdictName.PASS
    assert "Most of the drive's traffic was not the engine's: of 2.2 TiB" in verdict.reasons[1]
    assert "304.0 GiB (13.21 %)" in verdict.reasons[1]
    degraded = judge(replace(passed, errors=1))
    assert degraded.name is VerdictName.DEGRADED
    assert degraded.reasons[1] == verdict.reasons[1]


def test_half_of_the_traffic_is_enough_and_every_drive_of_a_mirror_may_have_all_of_it() -> None:
    half = Share(engine_bytes=GIB, charged_bytes=GIB, device_bytes=2 * GIB)
    less = replace(half, device_bytes=2 * GIB + 1)
    mirrored = replace(half, device_bytes=3 * GIB)
    for share, drives, reasons in ((half, 1, 1), (less, 1, 2), (mirrored, 3, 1)):
        assert len(judge(replace(SOUND, written_share=share, drives=drives)).reasons) == reasons


def test_a_warm_up_that_was_not_measured_does_not_decide() -> None:
    late, whole = covered(9000.0), Coverage(8000.0, 8000.0)
    assert judge(replace(SOUND, coverage=late)).name is VerdictName.INVALID
    passed = judge(replace(SOUND, coverage=late, judged=whole))
    assert passed.name is VerdictName.PASS
    assert "100.00 % of the time after the warm-up" in passed.reasons[0]
    missed = judge(replace(SOUND, coverage=late, judged=Coverage(8000.0, 7900.0)))
    assert "Only 98.75 % of the time after the warm-up was measured" in missed.reasons[0]


def test_the_most_severe_verdict_names_the_run_and_the_other_reasons_follow() -> None:
    verdict = judge(replace(SOUND, load_end=LoadEnd.STOPPED, errors=1, device_written_bytes=0))
    assert verdict.name is VerdictName.STOPPED
    assert [reason.split()[0] for reason in verdict.reasons] == ["A", "The", "1"]


def test_nothing_is_asked_of_a_device_that_the_target_does_not_have() -> None:
    synthetic = replace(
        SOUND, target_kind="synthetic", has_drive=False, device_written_bytes=None, device_read_bytes=None
    )
    assert judge(synthetic).name is VerdictName.PASS


def test_a_run_that_moves_no_bytes_needs_no_device() -> None:
    assert judge(replace(SOUND, written_bytes=0, read_bytes=0, has_drive=None, device_written_bytes=None)).name is (
        VerdictName.PASS
    )


def test_a_load_that_never_began_failed_with_what_stood_in_its_way_or_was_stopped() -> None:
    refused = replace(SOUND, load_end=LoadEnd.FAILED, coverage=None, windows=0, message="the device is\n  mounted")
    assert judge(refused).reasons == ("The load did not start: the device is mounted.",)
    for nothing in (None, Coverage(0.0, 0.0)):
        stopped = judge(replace(SOUND, load_end=LoadEnd.STOPPED, coverage=nothing, windows=0))
        assert stopped.name is VerdictName.STOPPED
        assert stopped.reasons == ("A user stopped the run before the load started.",)


def test_a_recovery_does_not_degrade() -> None:
    assert judge(replace(SOUND, findings=(FindingSummary("recovery", "…"),))).name is VerdictName.PASS


def test_the_worst_finding_comes_first_and_the_others_are_counted() -> None:
    found = (FindingSummary("drift", "drifts."), FindingSummary("cliff", "fell."), FindingSummary("spikes", "spikes."))
    verdict = judge(replace(SOUND, findings=found))
    assert verdict.name is VerdictName.DEGRADED
    assert verdict.reasons == ("fell. 2 more findings follow.",)


def test_a_broken_limit_degrades_and_one_that_could_not_be_judged_makes_the_run_invalid() -> None:
    broken = LimitOutcome('The limit "p99 <= 20ms" was broken.', judged=True)
    unjudged = LimitOutcome('The limit "write amplification <= 2" could not be judged.', judged=False)
    assert judge(replace(SOUND, limits=(broken,))).reasons == (broken.sentence,)
    assert judge(replace(SOUND, limits=(broken,))).name is VerdictName.DEGRADED
    both = judge(replace(SOUND, limits=(broken, unjudged)))
    assert both.name is VerdictName.INVALID
    assert both.reasons == (unjudged.sentence, broken.sentence)


def test_a_target_that_was_taken_away_under_the_load_is_said_and_what_was_measured_stands() -> None:
    verdict = judge(replace(SOUND, displaced=("/data/cliffwatch-a was removed", 300.0)))
    assert verdict.name is VerdictName.PASS
    assert verdict.reasons[1] == (
        "The target was taken away under the load: /data/cliffwatch-a was removed, noticed 5m after the load began. "
        "What the engine had open went on being measured, and stands."
    )


def test_a_client_that_was_the_limit_itself_says_nothing_about_the_target() -> None:
    verdict = judge(replace(SOUND, client_limited="it was held back.", findings=(FindingSummary("cliff", "fell."),)))
    assert verdict.name is VerdictName.INVALID
    assert verdict.reasons == ("The client was the bottleneck: it was held back.", "fell.")


def test_a_percentage_is_never_rounded_up_to_a_limit_that_it_misses() -> None:
    assert percent(0.98999) == "98.99 %"
    assert percent(0.99) == "99.00 %"


def test_windows_without_a_count_of_operations_are_judged_by_what_is_known_of_them() -> None:
    table = RunEvidence(
        load_end=LoadEnd.COMPLETED, coverage=covered(10_000.0), windows=100, target_kind="", operations=None
    )
    noted = replace(table, left_out="Values below zero count as not measured: 3 of p99.")
    assert judge(noted).name is VerdictName.PASS
    seen = "No degradation was found in what was seen; how much work was due is unknown."
    assert judge(noted).reasons == (seen, noted.left_out)
    assert judge(replace(noted, due=5_000)).reasons == ("No degradation was found.", noted.left_out)
    assert judge(replace(table, errors=7)).reasons == ("7 operations failed.",)
    short = judge(replace(noted, coverage=covered(9000.0), unmeasured="Only 3 rows hold a latency.", errors=7))
    assert short.name is VerdictName.INVALID
    assert short.reasons[0] == "Only 3 rows hold a latency."
    assert [reason[:4] for reason in short.reasons[1:]] == ["Only", "7 op", "Valu"]
