"""What a page says to do about a run that is invalid or failed."""

from dataclasses import replace
from typing import Any

import pytest
from tests.analysis.sound_run import GIB, SOUND, covered

from cliffwatch.analysis.causes.rules import CAUSES, CauseRow
from cliffwatch.analysis.coverage import Coverage
from cliffwatch.analysis.run_evidence import LimitOutcome, LoadEnd
from cliffwatch.analysis.verdict import judge
from cliffwatch.model.run_state import VerdictName
from cliffwatch.report.remedies import remedy_of


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"load_end": LoadEnd.FAILED, "coverage": None, "message": "sda is mounted"}, "Mend what the reason names"),
        (
            {"load_end": LoadEnd.FAILED, "message": "status 1."},
            "engine.log in the run's directory if the engine wrote one",
        ),
        ({"windows": 0, "coverage": Coverage(60.0, 0.0)}, "engine.log in the run's directory if the engine wrote one"),
        ({"operations": 0, "errors": 7}, "Look at the errors"),
        ({"load_end": None}, "`cliffwatch run report r1`"),
        ({"has_drive": False}, "a directory that is on a drive"),
        ({"device_written_bytes": 5 * GIB}, "direct I/O"),
        ({"device_written_bytes": None}, "See the warnings under Environment"),
        ({"coverage": covered(9000.0)}, "what was not measured and why"),
        ({"lost_latencies": 500_000}, "Check the disk that the journals are on"),
        ({"client_limited": "throttled."}, "more CPU time"),
        ({"not_steady": "The drive was not in its steady state."}, "more time"),
        ({"unanalysed": "no"}, "`cliffwatch run report r1`"),
        ({"limits": (LimitOutcome('The limit "p99" could not be judged: no.', False),)}, "what was not measured"),
    ],
)
def test_every_reason_of_an_invalid_or_failed_run_has_its_remedy(change: dict[str, Any], words: str) -> None:
    verdict = judge(replace(SOUND, **change))
    assert verdict.name in (VerdictName.INVALID, VerdictName.FAILED)
    remedy = remedy_of(verdict.name, list(verdict.reasons), "r1")
    assert words in remedy
    assert remedy.count(". ") == 0, "one sentence"


@pytest.mark.parametrize(
    ("verdict", "reason", "words"),
    [
        (VerdictName.INVALID, "Something else.", "Read the report"),
        (VerdictName.PASS, "1 operation.", "`cliffwatch run pin r1`"),
        (VerdictName.STOPPED, "A user stopped the run after 53 s of load.", "start it again"),
        (
            VerdictName.DEGRADED,
            "Cliff at 0:01:30: p99 rose 9.0×; likely cause: drive garbage collection (75 % sure).",
            "Trim the drive, or leave a tenth of it unpartitioned",
        ),
        (VerdictName.DEGRADED, "Cliff at 0:01:30: p99 rose 59x; its cause is not known.", "the kernel's log"),
        (VerdictName.DEGRADED, 'The limit "p99" was broken.', "under Limits"),
    ],
)
def test_every_verdict_says_what_to_do_next(verdict: VerdictName, reason: str, words: str) -> None:
    remedy = remedy_of(verdict, [reason], "r1")
    assert words in remedy
    assert remedy.count(". ") == 0, "one sentence"


def test_a_pass_with_a_slow_baseline_is_to_be_run_again() -> None:
    reasons = ["1 operation.", "The baseline was slow: the publish p99 of its median window was 590 ms."]
    assert remedy_of(VerdictName.PASS, reasons, "r1").startswith("Give the warm-up more time, and run it again")


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.cause.value)
def test_the_remedy_of_a_cause_is_what_removes_it(cause: CauseRow) -> None:
    reason = f"Cliff at 0:01:30: p99 rose 9.0×; likely cause: {cause.title} (75 % sure)."
    remedy = remedy_of(VerdictName.DEGRADED, [reason], "r1")
    assert remedy.lower() == f"{cause.remedy}.".lower()


def test_a_run_that_goes_on_needs_no_remedy() -> None:
    assert remedy_of(None, [], "r1") == ""
