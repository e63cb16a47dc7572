"""Explanation of a finding about one part: by the part's own windows and drive, and not those of all parts."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from tests.report.documents import document_of
from tests.report.pages import page_of
from tests.report.several_targets import ordered_on_two

from cliffwatch.base.histogram import Histogram
from cliffwatch.coordinator.part_journals import PartJournals
from cliffwatch.coordinator.part_windows import merged
from cliffwatch.journal import files
from cliffwatch.model.window import EngineWindow
from cliffwatch.report.among_parts import AmongParts

CLIFF, WINDOWS = 240, 400
NUMBERS = {"left": ["259:0"], "right": ["259:0"]}
DRIVES = [
    {"name": "nvme0n1", "major_minor": "259:0", "serial": "S1", "part": "left"},
    {"name": "nvme3n1", "major_minor": "259:0", "serial": "S2", "part": "right"},
]


def own_window(part: str, index: int) -> EngineWindow:
    """200 operations in 10 s, each of which a drive serves by one request, ten times as long on the right at last."""
    factor = 10.0 if part == "right" and index >= CLIFF else 1.0
    chance = np.random.default_rng((index, part == "right"))
    histogram = Histogram()
    histogram.record_many((factor * 2e6 * chance.lognormal(0, 0.1, 200)).astype(np.int64))
    counters = {"operations": 200, "bytes": 200 << 16, "errors": 0, "device_read_operations": 0}
    counters |= {"device_write_operations": 200, "device_write_milliseconds": round(300 * factor)}
    counters |= {"device_written_bytes": 200 << 16, "device_read_bytes": 0}
    start = LOAD_START + 10.0 * index
    return EngineWindow(start, start + 10.0, counters, {}, {"append": histogram})


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on two targets whose drives have one number each, the same, and of which one falls off a cliff."""
    run: dict[int, Any] = {}
    journals = tmp_path_factory.mktemp("parts") / "run"
    for index in range(WINDOWS):
        own = {part: [own_window(part, index)] for part in NUMBERS}
        run[index] = merged(LOAD_START + 10.0 * index, LOAD_START + 10.0 * (index + 1), own, NUMBERS)
    plan = JournalPlan(
        windows=WINDOWS,
        warm_up_windows=6,
        baseline_windows=120,
        latency=lambda index: run[index].latency,
        counters=lambda index: run[index].counters,
        facts={"target": {"kind": "synthetic"}, "drives": DRIVES},
    )
    made = ordered_on_two(make_journal(journals, plan))
    parts = PartJournals(made, NUMBERS, LOAD_START)
    for index in range(WINDOWS):
        for part in NUMBERS:
            parts.append(part, own_window(part, index), "soak")
    parts.close()
    return made


def test_a_finding_about_one_part_is_explained_by_that_part(directory: Path) -> None:
    (finding,) = document_of(directory)["findings"]
    assert finding["series"] == "right/append.p99"
    assert finding["ratio"] == pytest.approx(10, rel=0.15)
    assert finding["drive"] == {"name": "nvme3n1", "major_minor": "259:0", "serial": "S2", "part": "right"}
    assert finding["among_parts"] == {"ratio_to_others": pytest.approx(10, rel=0.1), "others_risen": []}
    assert "on nvme3n1, to 9.8× the others, none of which rose; cause" in finding["sentence"]
    before, after = finding["layer"]["before"], finding["layer"]["after"]
    # One request for each operation of the part; of both parts together there would be two.
    assert (before["requests_per_operation"], after["requests_per_operation"]) == (1.0, 1.0)
    assert after["device_seconds"] == pytest.approx(0.015, rel=0.01)
    assert before["client_seconds"] == pytest.approx(0.002, rel=0.05)


@pytest.mark.parametrize(
    ("ratio", "risen", "words"),
    [(4.0, (), ", to 4.0× the others, none of which rose"), (4.0, ("nvme1n1",), ""), (1.1, (), "")],
)
def test_a_part_is_not_said_to_be_alone_where_another_rose(ratio: float, risen: tuple[str, ...], words: str) -> None:
    assert AmongParts(ratio, risen).words == words


def test_without_the_part_s_own_windows_those_of_the_run_explain_it_as_far_as_they_have_it(
    directory: Path, tmp_path: Path
) -> None:
    """As in a bundle, which has the run's windows alone."""
    shutil.copytree(directory, tmp_path / "run", ignore=shutil.ignore_patterns("parts"))
    (finding,) = document_of(tmp_path / "run")["findings"]
    assert finding["drive"]["serial"] == "S2"
    after = finding["layer"]["after"]
    assert after["device_seconds"] == pytest.approx(0.015, rel=0.01)
    assert after["requests_per_operation"] == 1.0


def test_damaged_facts_and_windows_of_a_part_are_said_and_cost_no_report(directory: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "run"
    shutil.copytree(directory, damaged)
    facts = json.loads((damaged / files.FACTS).read_text())
    (damaged / files.FACTS).write_text(json.dumps(facts | {"drives": ["nvme0n1", None, *DRIVES]}))
    windows = damaged / files.PARTS / "right" / files.WINDOWS
    windows.write_text(windows.read_text()[:-2000] + "}\n")
    document = document_of(damaged)
    (finding,) = document["findings"]
    assert finding["drive"]["serial"] == "S2"
    assert f"{files.PARTS}/right/{files.WINDOWS}" in {fault["file"] for fault in document["journal_faults"]}


def test_a_report_names_drives_and_no_numbers(directory: Path) -> None:
    page = page_of(directory)
    assert "write latency of nvme3n1" in page
    assert "right/259:0" not in page.partition("<h2>Environment")[0].partition("What was found")[2]
