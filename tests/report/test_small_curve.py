"""Small curves of a p99 over the load: several on one scale, with gaps and stalls, in the list of runs and by part."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from testkit.journals import rewritten
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from tests.report import cliff_run
from tests.report.pages import page_of

from cliffwatch.engines.synthetic import SyntheticLoad
from cliffwatch.journal import files
from cliffwatch.report.build import build
from cliffwatch.report.charts.curve import CURVE_POINTS, CurvePoint, curve_of
from cliffwatch.report.charts.small_curve import CURVE_WIDTH, Scale, curve_of_load, scale_of, small_curve
from cliffwatch.report.format import elapsed

LOAD = (LOAD_START, LOAD_START + 600)


def test_a_curve_reads_few_lines_of_a_long_run_and_says_what_it_shows(tmp_path: Path) -> None:
    load = SyntheticLoad(median_latency="2ms", cliff_after="1000s", cliff_ratio=100)
    directory = make_journal(tmp_path / "run", JournalPlan(windows=200, load=load))
    points = curve_of(directory)
    assert 2 <= len(points) <= CURVE_POINTS
    curve = small_curve(points, scale_of(point.p99 for point in points), LOAD_START, LOAD_START + 4000)
    assert curve is not None
    places = [tuple(map(float, point.split(","))) for point in curve.lines[0].split()]
    # Half of the planned load is over, and down on the screen is small: the cliff ends above where it began.
    assert places[-1][0] == pytest.approx(CURVE_WIDTH / 2, abs=2)
    assert places[-1][1] < places[0][1] - 10
    assert curve.words.startswith("p99 from ")
    (directory / files.WINDOWS).write_bytes(b"")
    assert curve_of(directory) == []


def test_a_curve_is_broken_where_nothing_was_measured(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=60, missing=set(range(20, 40))))
    points = curve_of(directory)
    curve = small_curve(points, Scale(0.001, 0.1), *LOAD)
    assert curve is not None
    assert len(curve.lines) == 2
    assert small_curve([], None, *LOAD) is None


def test_a_stall_is_a_band_in_a_curve_and_said_and_no_gap(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=60))
    lines = (directory / files.WINDOWS).read_bytes().splitlines(keepends=True)
    for number in range(30, 36):
        window = json.loads(lines[number])
        # Requests of operations that were not completed may have been.
        some = {"write": window["latency"].popitem()[1]} if number % 2 else {}
        gauges = window["gauges"] | {"oldest_outstanding_seconds": 29.0}
        lines[number] = rewritten(lines[number], counters={"operations": 0}, latency=some, gauges=gauges)
    (directory / files.WINDOWS).write_bytes(b"".join(lines))
    points = curve_of(directory)
    assert all(point.p99 is None for point in points if point.stall is not None)
    curve = small_curve(points, Scale(0.001, 0.1), *LOAD)
    assert curve is not None
    places = [float(line.split()[-1].partition(",")[0]) for line in curve.lines]
    # Lines are looked up by their place in the file, so that of short ones some are passed over.
    assert (curve.stalls[0].left, curve.stalls[-1].right) == pytest.approx((CURVE_WIDTH / 2, CURVE_WIDTH * 0.6), abs=5)
    assert 0 < curve.stalls[0].left - places[0] < 2 * CURVE_WIDTH / CURVE_POINTS, "it begins after the line"
    assert len(curve.stalls) == 1, "one stall is one band"
    assert curve.words.endswith("; stalled, oldest operation due for 29 s")
    # As the index keeps it, and as it kept it before a stall was part of it.
    assert [CurvePoint(*point) for point in json.loads(json.dumps(points))] == points
    assert small_curve([CurvePoint(*point[:2]) for point in points], Scale(0.001, 0.1), *LOAD) == replace(
        curve, stalls=(), words=curve.words.partition(";")[0]
    )
    stalled = [CurvePoint(LOAD_START + 10.0 * number, None, 0.0) for number in range(1, 4)]
    only = small_curve(stalled, None, *LOAD)
    assert only is not None
    assert (only.lines, len(only.stalls), only.words) == ((), 1, "nothing completed")
    long = small_curve(stalled, None, LOAD_START, LOAD_START + 129_600)
    assert long is not None
    assert all(band.right - band.left >= 1 for band in long.stalls), "a short stall of a long run is seen"


def test_a_report_of_a_stall_explains_its_band_and_says_how_much_was_completed(tmp_path: Path) -> None:
    stalled = range(200, 210)
    plan = replace(
        cliff_run.PLAN,
        counters=lambda index: cliff_run.counters()(0) | ({"operations": 0, "bytes": 0} if index in stalled else {}),
        latency=lambda index: {} if index in stalled else cliff_run.latency(0),
        gauges=lambda index: {"oldest_outstanding_seconds": 10.0 * (index - 199) if index in stalled else 0.1},
    )
    page = page_of(make_journal(tmp_path / "stall", plan))
    assert "; nothing was completed in a shaded band</figcaption>" in page
    assert "(0.00 % of the baseline)</td>" in page


def test_a_report_begins_with_the_curve_of_its_load_and_the_onsets(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "cliff", cliff_run.PLAN)
    curve, scale = curve_of_load(build(directory).document)
    assert curve is not None
    assert scale == Scale(0.001, 1.0)
    (onset,) = curve.onsets
    assert onset == pytest.approx(CURVE_WIDTH * cliff_run.CLIFF / cliff_run.WINDOWS, abs=1)
    page = page_of(directory)
    assert curve.svg in page
    assert page.index(curve.svg) < page.index("What was found")
    length = cliff_run.PLAN.windows * cliff_run.PLAN.window_seconds
    assert curve.seconds == length
    assert f'<p class="hint ends"><span>0:00:00</span><span>{elapsed(length)}</span></p>' in page
    assert "; a red line is an onset</figcaption>" in page
    # An improvement is a finding, and no onset of what degraded the load.
    document = build(directory).document
    document["findings"] = [{**each, "degrades": False} for each in document["findings"]]
    better, _ = curve_of_load(document)
    assert better is not None
    assert better.onsets == ()
    healthy, _ = curve_of_load(build(make_journal(tmp_path / "healthy", JournalPlan(windows=60))).document)
    assert healthy is not None
    assert healthy.onsets == ()
    assert curve_of_load(
        build(make_journal(tmp_path / "empty", JournalPlan(windows=20, missing=set(range(20))))).document
    ) == (None, None)
