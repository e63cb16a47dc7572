"""The standing verdict of a run that goes on: what is decided, what is open; and no later window contradicts it."""

from dataclasses import replace
from types import ModuleType

import pytest
from testkit.soaks import heavy, lognormal, queue

from cliffwatch.analysis.finding import FindingKind
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.standing import SETTLED_SECONDS, RunSoFar, standing_sentences

MINUTE, HOUR = 60.0, 3600.0
#: 2026-09-21 15:00:00 UTC.
START = 1_790_002_800.0
RUN = RunSoFar(now=START + 3 * HOUR, judged_from=START + HOUR, load_stop=START + 25 * HOUR)
DUE = "The verdict is due about 2026-09-22 16:00Z."


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"now": START + HOUR}, f"Nothing is judged before the soak, which begins about 2026-09-21 16:00Z. {DUE}"),
        (
            {"now": START + HOUR + 10 * MINUTE},
            f"No finding in 10m of soak; even a cliff may take 30m to be distinguished from noise. {DUE}",
        ),
        ({}, f"No cliff in the first 1h30m of soak. Open: what came in the last 30m, what is small or slow. {DUE}"),
        (
            {"found": ["The p99 rose 4×."]},
            f"Found so far: The p99 rose 4×. The report says what the whole run confirms. {DUE}",
        ),
        (
            {"found": ["The p99 rose 4×.", "Another."], "has_limits": True},
            f"Found so far: The p99 rose 4×. 1 more. The report says what the whole run confirms. {DUE}",
        ),
    ],
)
def test_it_says_what_is_decided_and_when_the_verdict_is_due(change: dict[str, object], words: str) -> None:
    assert standing_sentences(replace(RUN, **change)) == words  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"has_limits": True}, ", its limits."),
        ({"measured_ratio": 0.95}, ", whether the run is valid, since 5 % of it was not measured."),
        ({"measured_ratio": 0.995}, "what is small or slow."),
        (
            {"written_over": START + 10 * HOUR},
            ", a cliff once the drive was written over, about 2026-09-22 01:00Z.",
        ),
        (
            {"written_over": START + 30 * HOUR},
            ", a cliff once the drive was written over, which this run does not reach.",
        ),
        ({"written_over": START + 2 * HOUR}, "what is small or slow."),
    ],
)
def test_trouble_that_could_not_have_shown_yet_is_open(change: dict[str, object], words: str) -> None:
    assert f"{words} {DUE}" in standing_sentences(replace(RUN, **change))  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("generator", "seed"), [(heavy, 470), (lognormal, 456), (lognormal, 464), (queue, 458), (queue, 461)]
)
def test_the_first_cliff_is_found_before_it_is_said_that_there_was_none(generator: ModuleType, seed: int) -> None:
    """After it, the sentences are about the finding."""
    soak = generator.make(seed)
    first = analysis(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)[0]
    assert first.kind is FindingKind.CLIFF
    assert first.detected is not None
    assert first.detected - first.onset <= SETTLED_SECONDS
