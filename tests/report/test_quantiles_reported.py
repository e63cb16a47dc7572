"""What is made of latencies of which only quantiles of each window are known: they are judged, and never merged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit.recorded_runs import JournalPlan, make_journal
from tests.report.documents import document_of
from tests.report.pages import page_of

from cliffwatch.journal import JournalReader

LEVELS = {"p50": 0.002, "p99": 0.008, "p999": 0.02}


def plan(factor: Callable[[int], float] = lambda index: 1.0, **changes: Any) -> JournalPlan:
    """Windows of 10 s in which only quantiles are known; each index may be slower by a factor."""
    given: dict[str, Any] = {
        "windows": 360,
        "baseline_windows": 60,
        "target": "observed:orders",
        "engine": "observe",
        "latency": lambda index: {},
        "quantiles": lambda index: {"publish": {name: level * factor(index) for name, level in LEVELS.items()}},
    }
    return JournalPlan(**given | changes)


def test_the_journal_has_them_without_a_histogram(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, plan(windows=60, baseline_windows=0))
    reader = JournalReader(directory)
    window = next(iter(reader.windows()))
    assert window.latency == {"publish": {"count": 0, "max": None, "p90": None, "p9999": None, **LEVELS}}
    assert reader.histograms(window) == {}
    assert reader.faults == []


def test_the_report_has_what_windows_had_and_no_percentile_of_a_longer_span(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, plan(lambda index: 1.3 if index == 200 else 1.0))
    document = document_of(directory)
    assert document["latency"] == {}
    assert document["quantiles"]["publish"]["windows"] == 360
    p99 = document["quantiles"]["publish"]["quantiles"]["p99"]
    assert p99 == {"median_seconds": 0.008, "highest_seconds": 0.0104}
    page = page_of(directory)
    assert "They cannot be merged" in page
    assert "p99.9" in page
    assert "No latency was recorded" not in page


def test_a_cliff_is_found(tmp_path: Path) -> None:
    document = document_of(make_journal(tmp_path, plan(lambda index: 30.0 if index >= 200 else 1.0)))
    (cliff,) = document["findings"]
    assert cliff["kind"] == "cliff"
    assert cliff["ratio"] == pytest.approx(30, rel=0.05)
    assert cliff["onset_seconds"] == pytest.approx(2000, abs=20)
    assert "publish p99 rose" in document["verdict"]["reasons"][0]


def outcome(directory: Path) -> dict[str, Any]:
    (limit,) = document_of(directory)["limits"]
    found: dict[str, Any] = limit
    return found


def test_a_limit_that_every_window_keeps_is_kept(tmp_path: Path) -> None:
    found = outcome(make_journal(tmp_path, plan(limits=("p99 of publish <= 20ms over any 10m",))))
    assert found["held"], json.dumps(found)


def test_a_limit_that_a_window_exceeds_cannot_be_judged(tmp_path: Path) -> None:
    slow = plan(lambda index: 5.0 if index == 200 else 1.0, limits=("p99 <= 20ms over any 10m",))
    document = document_of(make_journal(tmp_path, slow))
    words = "could not be judged: 1 window is above it, and quantiles of windows cannot be merged"
    assert words in " ".join(document["verdict"]["reasons"])
    assert document["verdict"]["name"] != "pass"


def test_a_limit_on_a_quantile_that_was_not_observed_cannot_be_judged(tmp_path: Path) -> None:
    document = document_of(make_journal(tmp_path, plan(limits=("p90 <= 20ms over any 10m",))))
    assert "of publish no p90 was observed" in " ".join(document["verdict"]["reasons"])


def broken(directory: Path) -> tuple[dict[str, Any], str]:
    """Outcome of the only limit, and the verdict's name."""
    document = document_of(directory)
    (limit,) = document["limits"]
    return limit, document["verdict"]["name"]


def test_a_span_of_which_every_window_exceeds_the_limit_breaks_it(tmp_path: Path) -> None:
    slow = plan(lambda index: 5.0 if 200 <= index < 261 else 1.0, limits=("p99 <= 20ms over any 10m",))
    found, verdict = broken(make_journal(tmp_path, slow))
    assert not found["held"]
    (span,) = found["broken"]
    assert span["worst"].startswith("at least ")
    assert (span["start_seconds"], span["end_seconds"]) == (pytest.approx(2590), pytest.approx(2610))
    assert verdict == "degraded"


def test_a_span_with_one_window_within_the_limit_is_not_called_broken(tmp_path: Path) -> None:
    slow = plan(lambda index: 5.0 if 200 <= index < 261 and index % 40 else 1.0, limits=("p99 <= 20ms over any 10m",))
    found, _ = broken(make_journal(tmp_path, slow))
    assert not found["held"]
    assert "cannot be merged" in found["unjudged"]


def test_a_maximum_above_the_limit_in_one_window_breaks_it(tmp_path: Path) -> None:
    def levels(index: int) -> dict[str, dict[str, float]]:
        return {"publish": {"p99": 0.008, "max": 0.09 if index == 200 else 0.01}}

    found, _ = broken(make_journal(tmp_path, plan(quantiles=levels, limits=("max <= 20ms",))))
    (span,) = found["broken"]
    assert span["worst"] == "90 ms"
    assert (span["start_seconds"], span["end_seconds"]) == (pytest.approx(2000), pytest.approx(2010))
