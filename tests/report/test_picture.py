"""report.png: one picture that says what happened, of whatever journal there is."""

import itertools
import math
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from testkit.recorded_runs import Ending, JournalPlan, make_journal

from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.synthetic import SyntheticLoad, histogram_of
from cliffwatch.report.build import Report, build
from cliffwatch.report.picture.drawing import composed, draw, styled

#: An hour after which the latency is two hundred times what it was.
CLIFF = JournalPlan(windows=720, baseline_windows=60, load=SyntheticLoad(cliff_after="1h"))
#: No space to break at, no sign that the font has, and what a drawing library takes for a formula or for hidden.
ODD = (
    "_" + "x" * 300,
    "$\\frac{1}{0}$ & \\undefined{",
    "重複する名前" * 30,
    "line\nbreak\t\x00\x1b[31m",
    "\ud800 half",
    "",
)


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


def texts_of(report: Report) -> list[str]:
    """Every text of the picture, none of which reaches beyond it or over another."""
    with styled():
        figure = composed(report)
        figure.draw_without_rendering()
        shown = shown_texts(figure)
        places = [text.get_window_extent() for text in shown]
    width, height = figure.bbox.width, figure.bbox.height
    for text, place in zip(shown, places, strict=True):
        inside = place.x0 >= 0 and place.y0 >= 0 and place.x1 <= width and place.y1 <= height
        assert inside, f"{text.get_text()!r} reaches beyond the picture: {place}"
    for (one, here), (other, there) in itertools.combinations(zip(shown, places, strict=True), 2):
        across = min(here.x1, there.x1) - max(here.x0, there.x0)
        down = min(here.y1, there.y1) - max(here.y0, there.y0)
        assert across <= 1 or down <= 1, f"{one.get_text()!r} lies over {other.get_text()!r}"
    return [text.get_text() for text in shown]


def shown_texts(figure: Figure) -> list[Text]:
    """Of the picture itself, its charts, their legends and the ticks within them."""
    shown = list(figure.texts)
    for axes in figure.axes:
        shown += axes.texts
        legend = axes.get_legend()
        shown += legend.get_texts() if legend is not None else []
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            shown += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in shown if text.get_visible() and text.get_text().strip()]


def test_a_cliff_is_reported_with_its_time_and_size(tmp_path: Path) -> None:
    report = build(make_journal(tmp_path, CLIFF))
    texts = texts_of(report)
    assert size_of(draw(report)) == (1600, 900)
    assert "degraded" in texts
    assert any(text.startswith("cliff 1:00:") for text in texts)
    assert "steady-append" in texts
    recorded = " ".join(texts)
    assert report.document["headline"][:60] in recorded
    assert "publish p99" in recorded
    assert "baseline" in recorded


def test_the_drive_is_named_below_the_run_with_a_finding_and_without(tmp_path: Path) -> None:
    drive = {"name": "nvme0n1", "model": "Fast 2T", "serial": "S1"}
    facts = {"target": {"kind": "directory"}, "drives": [drive]}
    for name, plan in (("fell", CLIFF), ("passed", JournalPlan())):
        texts = texts_of(build(make_journal(tmp_path / name, replace(plan, target="directory:/data", facts=facts))))
        assert "directory:/data · drive nvme0n1 (Fast 2T, S1)" in texts


def test_the_same_journal_makes_the_same_picture(tmp_path: Path) -> None:
    directory = make_journal(tmp_path)
    assert draw(build(directory)) == draw(build(directory))


@pytest.mark.parametrize(
    "plan",
    [
        JournalPlan(windows=2, missing={0, 1}),
        JournalPlan(windows=3, latency=lambda index: {}),
        JournalPlan(windows=3, latency=lambda index: {"read": Histogram()}),
        JournalPlan(windows=1),
        JournalPlan(windows=3, counters=lambda index: {"operations": 0, "bytes": 0}),
    ],
    ids=["no window", "no latency", "nothing counted", "one window", "nothing done"],
)
def test_where_there_is_little_to_draw_that_is_drawn(plan: JournalPlan, tmp_path: Path) -> None:
    report = build(make_journal(tmp_path, plan))
    texts = texts_of(report)
    assert size_of(draw(report)) == (1600, 900)
    assert any(text.startswith("No window was measured") for text in texts) == (not report.series.elapsed)


def test_a_run_whose_load_never_began_has_a_picture(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, JournalPlan(windows=3, facts=None, ending=Ending(None)))
    for path in tmp_path.iterdir():
        if path.name not in {"order.json", "workload.yaml"}:
            path.unlink()
    texts = texts_of(build(directory))
    assert "invalid" in texts
    assert any(text.startswith("No window was measured") for text in texts)


def test_an_empty_directory_has_a_picture(tmp_path: Path) -> None:
    report = build(tmp_path)
    assert tmp_path.name[:20] in " ".join(texts_of(report))
    assert size_of(draw(report)) == (1600, 900)


def test_a_gap_is_drawn_and_named_and_no_line_crosses_it(tmp_path: Path) -> None:
    report = build(make_journal(tmp_path, JournalPlan(windows=60, missing=set(range(20, 35)))))
    assert "not measured" in texts_of(report)
    with styled():
        figure = composed(report)
    across = [value for at, value in drawn(figure, "publish p99") if 200 < at < 350]
    assert len(across) == 1
    assert math.isnan(across[0])


def test_a_window_between_two_gaps_is_a_point(tmp_path: Path) -> None:
    report = build(make_journal(tmp_path, JournalPlan(windows=30, missing={9, 11})))
    with styled():
        figure = composed(report)
    points = [line.get_label() for line in figure.axes[-1].lines if line.get_marker() == "."]
    assert points
    assert all([at for at, _ in drawn(figure, name)] in ([105.0], []) for name in map(str, points))


def drawn(figure: Figure, name: str) -> list[tuple[float, float]]:
    """Times and values of a line of the picture's last chart."""
    line = next(line for line in figure.axes[-1].lines if line.get_label() == name)
    return [(float(at), float(value)) for at, value in np.asarray(line.get_xydata())]


@pytest.mark.real(why="a picture for each odd name takes seconds")
@pytest.mark.parametrize("odd", ODD, ids=["long", "formula", "signs", "control", "surrogate", "empty"])
def test_no_name_breaks_out_of_the_picture(odd: str, tmp_path: Path) -> None:
    report = build(make_journal(tmp_path, CLIFF))
    document = cast(dict[str, Any], report.document)
    document["run"] |= {"id": odd, "target": odd}
    document["run"]["workload"]["name"] = odd
    document["headline"] = odd * 5
    for phase in document["phases"]:
        phase["name"] = odd
    document["findings"][0] |= {
        "drive": {"name": odd, "serial": odd},
        "cause": {"title": odd, "confidence": 0.8, "evidence_for": [odd * 9, odd]},
        "runner_up": {"title": odd},
    }
    texts_of(report)
    assert size_of(draw(report)) == (1600, 900)


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd.isascii()])
def test_no_operation_is_hidden_by_its_name(odd: str, tmp_path: Path) -> None:
    load = SyntheticLoad()
    histograms = {odd or "empty": histogram_of(load, 100, 0.0, np.random.default_rng(1))}
    report = build(make_journal(tmp_path, JournalPlan(windows=20, latency=lambda index: histograms)))
    texts = texts_of(report)
    assert any(text.endswith(" p99") for text in texts)


def test_many_findings_and_many_gaps_stay_readable(tmp_path: Path) -> None:
    plan = JournalPlan(windows=600, missing=set(range(5, 600, 7)))
    report = build(make_journal(tmp_path, plan))
    for number in range(150):
        report.series.findings.append(
            {"at": 40.0 * number, "kind": "spikes", "text": "again", "degrades": number % 2 == 0}
        )
    texts_of(report)
    assert size_of(draw(report)) == (1600, 900)


@pytest.mark.parametrize(
    ("lowest", "highest"), [(6.0, 6.0), (1.05, 1.95), (9.1, 9.9), (0.101, 0.19), (2.1, 4.9), (1.0, 60_000.0)]
)
def test_the_latency_axis_has_two_round_numbers_at_least(tmp_path: Path, lowest: float, highest: float) -> None:
    """However little the latency differs: a single number on an axis does not show what is twice as much."""

    def latency(index: int) -> dict[str, Histogram]:
        return {"publish": Histogram.from_values({round((lowest, highest)[index % 2] * 1e6): 100})}

    report = build(make_journal(tmp_path, JournalPlan(windows=12, latency=latency)))
    with styled():
        axes = next(axes for axes in composed(report).axes if axes.get_yscale() == "log")
        low, high = axes.get_ylim()
        ticks = [tick for tick in axes.yaxis.get_majorticklocs() if low <= tick <= high]
        labels = [axes.yaxis.get_major_formatter()(tick, 0) for tick in ticks]
    assert 2 <= len(ticks) <= 12
    assert len(set(labels)) == len(labels)
    assert all(re.fullmatch(r"[1-9][0,]* (µs|ms|s)", label) for label in labels), labels
