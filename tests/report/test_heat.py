"""Heat maps: where the requests of each moment were, read off cumulative buckets, and the operations of the client."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from testkit.browsers import chromium
from testkit.recorded_runs import JournalPlan, make_journal
from tests.report.pages import page_of

from cliffwatch.base.histogram import Histogram
from cliffwatch.report import html
from cliffwatch.report.charts.heat import COLUMN_LIMIT, HeatMap, drawn, heat_map
from cliffwatch.report.charts.layers import Layers
from cliffwatch.report.collect import collect
from cliffwatch.telemetry.catalogue import DEVICE_LATENCY
from cliffwatch.telemetry.reader import Floats, Samples, Telemetry

TEMPLATES = Path(html.__file__).parent / "templates"
ZERO = 1_790_002_800.0


def bucket(bound: str, counts: Sequence[float], step: float = 5.0) -> Samples:
    times = np.array([ZERO + step * number for number in range(len(counts))], dtype=np.float64)
    return Samples({"le": bound}, times, np.array(counts, dtype=np.float64))


def test_a_moment_has_the_shares_of_its_own_requests() -> None:
    # Ten requests in 5 s: all below 1 ms at first, then half of them, and none above 8 ms.
    buckets = [bucket("0.001", [0, 10, 15]), bucket("0.008", [0, 10, 20]), bucket("+Inf", [0, 10, 20])]
    heat = heat_map(buckets, ZERO, 10.0)
    assert heat is not None
    assert heat.bounds == [0.001, 0.008]
    assert heat.edges.tolist() == [0.0, 5.0, 10.0]
    assert heat.shares.tolist() == [[1.0, 0.5], [0.0, 0.5]]
    spoken = "<title>0:00:05 to 0:00:10: half of the requests took up to 1 ms, 99 % up to 8 ms</title>"
    assert spoken in drawn(heat, [])


def test_unsampled_time_is_blank_in_a_heat_map() -> None:
    buckets = [bucket("0.001", [0, 10, 20]), bucket("+Inf", [0, 10, 20])]
    heat = heat_map(buckets, ZERO, 100.0)
    assert heat is not None
    assert np.isnan(heat.shares[0, -1])
    assert drawn(heat, []).count("h44.00") <= 2


def test_the_clients_latency_is_spread_over_the_windows_that_measured_it(tmp_path: Path) -> None:
    slow, fast = (Histogram.from_values({nanoseconds: 100}) for nanoseconds in (70_000_000, 1_500_000))

    def latency(index: int) -> dict[str, Histogram]:
        both = Histogram()
        both.merge(fast)
        both.merge(slow)
        # A twin that counts from the start is another latency, and has no part in the map.
        return {"publish": both if index >= 5 else fast, "publish_service": slow}

    run = collect(make_journal(tmp_path, JournalPlan(windows=10, missing={3}, latency=latency)))
    heat = run.spread
    assert heat is not None
    assert heat.bounds[0] == 2**-9
    assert heat.bounds[-1] == 2**-3
    share = {bound: np.round(row, 3).tolist() for bound, row in zip(heat.bounds, heat.shares, strict=True)}
    assert heat.edges.tolist() == [10.0 * number for number in range(11)], "a column for each window"
    assert [math.isnan(value) for value in share[2**-9]] == [number == 3 for number in range(10)]
    assert share[2**-9][0] == 1.0
    assert share[2**-9][-1] == share[2**-3][-1] == 0.5
    assert all(value in (0.0, 0.5, 1.0) or math.isnan(value) for row in share.values() for value in row)
    page = page_of(tmp_path)
    assert "half of the operations took up to" in page
    assert "How the latency of operations was spread over time" in page


@pytest.mark.parametrize(
    "buckets", [[], [bucket("+Inf", [0, 1])], [bucket("0.001", [0, 0]), bucket("+Inf", [0, 0])]], ids=len
)
def test_where_nothing_was_counted_there_is_no_map(buckets: list[Samples]) -> None:
    assert heat_map(buckets, ZERO, 5.0) is None


def test_thirty_six_hours_stay_small() -> None:
    count = 36 * 720
    bounds = [f"{2.0**-power}" for power in range(20)]
    rising = np.arange(count) * 100.0
    buckets = [bucket(bound, list(rising * (20 - index))) for index, bound in enumerate(bounds)]
    heat = heat_map(buckets, ZERO, 36 * 3600.0)
    assert heat is not None
    assert heat.shares.shape == (20, COLUMN_LIMIT)
    picture = drawn(heat, [43_200.0, -5.0, 1e9])
    assert len(picture) < 100_000
    assert picture.count("heat-onset") == 1
    assert re.search(r">16:00:00</span>", picture) is not None


@pytest.mark.parametrize(
    ("seconds", "times", "latencies"),
    [
        (18.0, ["0:00:00", "0:00:02", "0:00:04"], ["more", "1 ms", "10 ms", "100 ms"]),
        (36 * 3600.0, ["0:00:00", "4:00:00", "8:00:00"], ["more", "1 ms", "10 ms", "100 ms"]),
        (7000.0, ["0:00:00", "0:15:00", "0:30:00"], ["more", "1 ms", "10 ms", "100 ms"]),
    ],
)
def test_its_axes_have_numbers_that_people_use(seconds: float, times: list[str], latencies: list[str]) -> None:
    bounds = [2.0**-power for power in range(11, 0, -1)]
    heat = HeatMap(np.linspace(0, seconds, 10), [*bounds, math.inf], np.full((12, 9), 1 / 12))
    bounds_shown, times_shown = drawn(heat, []).split('<div class="heat-times">')
    assert re.findall(r">([^<>]+)</span>", times_shown)[:3] == times
    assert re.findall(r">([^<>]+)</span>", bounds_shown) == latencies


@pytest.mark.parametrize("width", [390, 1280])
def test_the_whole_map_and_the_onset_are_on_the_screen(width: int) -> None:
    heat = heat_map([bucket("0.001", [0, 10, 20]), bucket("0.5", [0, 10, 30]), bucket("+Inf", [0, 10, 30])], ZERO, 10.0)
    assert heat is not None
    styles = "".join((TEMPLATES / name).read_text() for name in ("theme.css", "report.css"))
    head = f'<meta name="viewport" content="width=device-width"><style>{styles}</style>'
    with chromium() as browser:
        shown = browser.new_page(viewport={"width": width, "height": 800})
        shown.set_content(f"{head}<section>{drawn(heat, [9.0])}</section>")
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        for selector in (".heat svg", ".heat-onset", ".heat-bounds span", ".heat-times span:not(.between)"):
            box = shown.locator(selector).last.bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width, selector
        sizes = shown.evaluate(
            "[...document.querySelectorAll('.heat-times span')].map((each) => each.getBoundingClientRect())"
            ".filter((box) => box.width).map((box) => [box.left, box.right])"
        )
        assert all(left[1] < right[0] for left, right in pairwise(sizes)), "times overlap"


@pytest.mark.parametrize("bound", ["x", "", "nan", None])
def test_a_bucket_without_a_bound_is_passed_over(bound: str | None) -> None:
    stray = Samples({} if bound is None else {"le": bound}, *_two_samples())
    series: dict[str, tuple[Samples, ...]] = {
        DEVICE_LATENCY: (bucket("0.001", [0, 10]), bucket("+Inf", [0, 10]), stray)
    }
    layers = Layers(Telemetry(5.0, ZERO, ZERO + 5, series, gaps=(), faults=()), "write", ("sda",))
    heat = layers.heat(ZERO, 5.0)
    assert heat is not None
    assert heat.bounds == [0.001]
    assert "device_p99" in layers.columns(np.array([ZERO]), np.array([ZERO + 5]), 15.0)


def _two_samples() -> tuple[Floats, Floats]:
    return np.array([ZERO, ZERO + 5]), np.array([0.0, 1.0])
