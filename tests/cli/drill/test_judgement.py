"""What a drill must have shown: all holds of a drill that went as it should, and each thing can fail by itself."""

from dataclasses import replace
from typing import Any

import pytest

from cliffwatch.cli.drill.judgement import VARIANTS, Expectation, Observed, expectations
from cliffwatch.cli.drill.progress import WindowFigures
from cliffwatch.model.drill import VariantName

CLIFF: dict[str, Any] = {
    "kind": "cliff",
    "degrades": True,
    "baseline": 0.0102,
    "level": 6.9,
    "sentence": "p99 fell off a cliff at 12:00:00.",
    "drive": {"name": "loop7", "major_minor": "7:7", "serial": "…/flash/drive"},
    "cause": {"name": "drive_garbage_collection", "title": "The drive collects garbage"},
}
OTHER_CAUSE = {"name": "retention", "title": "Retention limit reached"}
SMALL = CLIFF | {"level": 0.0145, "cause": OTHER_CAUSE}
HEALTHY_VERDICT = "the verdict is pass, or degraded by something else than garbage collection"
ALERT = {"name": "CliffwatchLatencyCliff", "received": "2026-01-01T12:00:09Z", "description": "97 times its baseline."}


def windows(*seconds: float | None) -> list[WindowFigures]:
    warm_up = [WindowFigures("warm_up", 9.0)]
    return [*warm_up, *(WindowFigures("baseline" if index < 2 else "soak", p99) for index, p99 in enumerate(seconds))]


FELL = Observed(
    run={"verdict": "degraded"},
    report={"findings": [CLIFF], "alerts": [ALERT]},
    device="loop7",
    windows=windows(0.01, 0.012, 0.01, None, 0.02, 4.0, 5.0, 6.0),
    amplifications=[("baseline", 1.0), ("soak", 4.1), ("soak", 3.2)],
)
STAYED = Observed(
    run={"verdict": "pass"},
    report={"findings": [], "alerts": [ALERT | {"name": "CliffwatchFreeBlocksRunningOut"}]},
    device="loop7",
    windows=windows(0.01, 0.012, 0.01, 0.011, 0.02, 0.01),
    amplifications=[("baseline", 1.0), ("soak", 1.1)],
)


def failed(found: list[Expectation]) -> list[str]:
    return [each.what for each in found if not each.holds]


def test_a_drive_that_fell_as_it_should_is_what_the_drill_was_to_show() -> None:
    found = expectations(VARIANTS[VariantName.AGING], FELL)
    assert failed(found) == []
    details = {each.what: each.detail for each in found}
    assert details["write amplification rose above 2"] == "up to 4.10 in 10 s"
    assert details["latency rose at least 5.0×"] == "p99 from 10.2 ms to 6.9 s at worst"
    assert details["the alert CliffwatchLatencyCliff arrived"] == "2026-01-01T12:00:09Z: 97 times its baseline."


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"amplifications": [("soak", 1.9)]}, ["write amplification rose above 2"]),
        ({"amplifications": []}, ["write amplification rose above 2"]),
        (
            {"report": {"findings": [CLIFF | {"level": 0.04}], "alerts": [ALERT]}},
            ["latency rose at least 5.0×"],
        ),
        ({"run": {"verdict": "invalid"}}, ["the verdict is degraded"]),
        (
            {"report": {"findings": [CLIFF | {"kind": "step"}], "alerts": [ALERT]}},
            [
                "the report has a cliff",
                "it names the drive loop7",
                "it names garbage collection as the likely cause",
            ],
        ),
        ({"device": "loop8"}, ["it names the drive loop8"]),
        (
            {
                "report": {
                    "findings": [{**CLIFF, "cause": {"name": "client", "title": "The client"}}],
                    "alerts": [ALERT],
                }
            },
            ["it names garbage collection as the likely cause"],
        ),
        ({"report": {"findings": [CLIFF], "alerts": []}}, ["the alert CliffwatchLatencyCliff arrived"]),
    ],
)
def test_each_unmet_expectation_of_the_aging_drill_is_named(change: dict[str, Any], missing: list[str]) -> None:
    assert failed(expectations(VARIANTS[VariantName.AGING], replace(FELL, **change))) == missing


@pytest.mark.parametrize("name", [VariantName.TRIM, VariantName.OVER_PROVISIONED])
def test_a_drive_that_stayed_healthy_is_what_the_other_variants_are_to_show(name: VariantName) -> None:
    assert failed(expectations(VARIANTS[name], STAYED)) == []
    assert len(failed(expectations(VARIANTS[name], FELL))) == 4
    assert len(failed(expectations(VARIANTS[VariantName.AGING], STAYED))) == 7


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"amplifications": [("soak", 1.0), ("soak", 1.6)]}, ["write amplification stayed below 1.5"]),
        ({"run": {"verdict": "stopped"}}, [HEALTHY_VERDICT]),
        ({"windows": windows(0.01, 0.01, 0.011, 0.02, 0.05, 0.05)}, ["latency rose less than 5.0×"]),
        ({"windows": []}, ["latency rose less than 5.0×"]),
        (
            {"report": {"findings": [SMALL, CLIFF | {"cause": OTHER_CAUSE}], "alerts": []}},
            ["latency rose less than 5.0×"],
        ),
        ({"report": {"findings": [CLIFF | {"kind": "drift"}], "alerts": []}}, [HEALTHY_VERDICT]),
        ({"report": {"findings": [], "alerts": [ALERT]}}, ["no alert CliffwatchLatencyCliff arrived"]),
        ({"report": {}}, ["no alert CliffwatchLatencyCliff arrived"]),
    ],
)
def test_each_unmet_expectation_of_a_healthy_drill_is_named(change: dict[str, Any], missing: list[str]) -> None:
    assert failed(expectations(VARIANTS[VariantName.TRIM], replace(STAYED, **change))) == missing


def test_a_small_cliff_of_another_cause_is_shown_and_does_not_fail_a_healthy_drill() -> None:
    """On a busy machine what the load itself does, such as to delete, may be seen."""
    report = {"findings": [SMALL], "alerts": []}
    found = expectations(VARIANTS[VariantName.TRIM], replace(STAYED, run={"verdict": "degraded"}, report=report))
    assert failed(found) == []
    details = {each.what: each.detail for each in found}
    assert details[HEALTHY_VERDICT] == f"degraded, findings: {CLIFF['sentence']}"
    assert details["latency rose less than 5.0×"] == "p99 from 10.2 ms to 14.5 ms"
