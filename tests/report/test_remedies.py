"""What a page says to do about a run that is invalid or failed."""

from dataclasses import replace
from typing import Any

import pytest
from tests.analysis.sound_run import GIB, SOUND, covered

from cliffwatch.analysis.coverage import Coverage
from cliffwatch.analysis.run_evidence import LimitOutcome, LoadEnd
from cliffwatch.analysis.verdict import judge
from cliffwatch.model.run_state import VerdictName
from cliffwatch.report.remedies import remedy_of


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"load_end": LoadEnd.FAILED, "coverage": None, "message": "sda is mounted"}, "Mend what the reason names"),
        ({"load_end": LoadEnd.FAILED, "message": "status 1."}, "Read engine.log"),
        ({"windows": 0, "coverage": Coverage(60.0, 0.0)}, "Read engine.log"),
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


def test_a_reason_of_another_version_has_one_and_a_run_that_says_something_needs_none() -> None:
    assert "Read the report" in remedy_of(VerdictName.INVALID, ["Something else."], "r1")
    assert remedy_of(VerdictName.PASS, ["1 operation."], "r1") == ""
    assert remedy_of(VerdictName.DEGRADED, ["Only 3."], "r1") == ""
    assert remedy_of(None, [], "r1") == ""
