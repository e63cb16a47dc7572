"""report.html: one page that needs nothing but itself, and that nothing from outside can break out of."""

import html.parser
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testkit.recorded_runs import LOAD_START, GapEvent, JournalPlan, make_journal
from tests.journal.event_samples import HARMLESS, RAW
from tests.report.pages import page_of
from tests.report.several_targets import ordered_on_two

from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.synthetic import SyntheticLoad
from cliffwatch.journal import Event, EventType
from cliffwatch.model.run_state import VerdictName
from cliffwatch.report.build import build
from cliffwatch.report.html import CHART_LIBRARY, VERDICTS, chart_library, render

HOSTILE = """</script><img src=x onerror="document.title='broken'"> <b>&amp;</b>"""


class Elements(html.parser.HTMLParser):
    """Every element with its attributes, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_refers_to_nothing_outside_it(tmp_path: Path) -> None:
    page = page_of(make_journal(tmp_path))
    elements = Elements(page).found
    references = [
        value
        for tag, attributes in elements
        for name, value in attributes.items()
        if name in {"src", "href", "action", "poster", "srcset", "data"}
    ]
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert [reference for reference in references if reference not in {f"#{each}" for each in ids}] == []
    assert {tag for tag, _ in elements} & {"link", "img", "iframe", "object", "base", "form"} == set()
    assert re.search(r"@import|url\(", page) is None
    policy = next(item["content"] for tag, item in elements if tag == "meta" and "http-equiv" in item)
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_links_lead_to_the_sections_that_there_are_in_their_order(tmp_path: Path) -> None:
    page = page_of(make_journal(tmp_path, JournalPlan(limits=("p99 <= 1s",))))
    links = re.findall(r'<a href="#([a-z-]+)">([^<]+)</a>', page)
    sections = re.findall(r'<h2 id="([a-z-]+)">([^<]+)</h2>', page)
    assert links == sections
    assert [title for _, title in links][:3] == ["Limits", "Over time", "Latency percentiles"]
    assert "Alerts" not in dict(links).values()


def test_limits_and_the_baseline_are_levels_of_the_latency_that_they_are_on(tmp_path: Path) -> None:
    limits = ("p99 <= 20ms over any 1m", "p99.9 of end_to_end <= 1s", "p50 of absent <= 1s", "no cliff")
    slow = Histogram()
    slow.record(3_000_000, 100)
    plan = JournalPlan(
        windows=20, baseline_windows=5, limits=limits, latency=lambda _: {"publish": slow, "end_to_end": slow}
    )
    levels = data_of(page_of(make_journal(tmp_path, plan)))["levels"]
    assert sorted((each["kind"], each["latency"], each["at"], each["words"]) for each in levels) == [
        ("baseline", "end_to_end", pytest.approx(3000, rel=0.01), "p99 of the baseline"),
        ("baseline", "publish", pytest.approx(3000, rel=0.01), "p99 of the baseline"),
        ("limit", "end_to_end", 1_000_000, "limit: p99.9 of end_to_end <= 1s"),
        ("limit", "publish", 20_000, "limit: p99 <= 20ms over any 1m"),
    ]


def test_a_limit_of_a_part_is_a_level_of_that_part_s_latency(tmp_path: Path) -> None:
    slow = Histogram.from_values({3_000_000: 100})
    names = ("publish", "left/publish", "right/publish")
    limits = ("p99 of part right <= 20ms", "p99 of any part <= 30ms", "p99 of part absent <= 40ms")
    plan = JournalPlan(windows=20, limits=limits, latency=lambda _: dict.fromkeys(names, slow))
    levels = data_of(page_of(ordered_on_two(make_journal(tmp_path, plan))))["levels"]
    assert [(each["latency"], each["at"]) for each in levels if each["kind"] == "limit"] == [
        ("right/publish", 20_000),
        ("publish", 30_000),
    ]


def data_of(page: str) -> dict[str, Any]:
    """What the page's script is given."""
    data = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    found: dict[str, Any] = json.loads(data[1])
    return found


def test_text_from_outside_cannot_become_markup_in_a_report(tmp_path: Path) -> None:
    note = Event(LOAD_START + 20, EventType.NOTE, HOSTILE, {"text": HOSTILE, HOSTILE: "lone \ud800 surrogate"})
    facts = {"kernel": HOSTILE, HOSTILE: [{"name": HOSTILE}], "warnings": [HOSTILE], "drives": []}
    plan = JournalPlan(description=HOSTILE, facts=facts, events=(note,))
    page = page_of(make_journal(tmp_path, plan))
    assert "<img" not in page
    assert "</script><" not in page.replace("</script>\n", "")
    assert "&lt;/script&gt;&lt;img src=x" in page
    data = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert "<" not in data[1]
    assert any(HOSTILE in mark[2] for mark in json.loads(data[1])["marks"])


def test_no_event_and_no_gap_reaches_the_page_as_a_name_of_the_journal(tmp_path: Path) -> None:
    events = [
        Event(LOAD_START + 20 + place, EventType(kind), name, detail)
        for place, ((kind, name), detail) in enumerate(HARMLESS.items())
    ]
    gap = GapEvent(2, 4, "engine_restarted")
    plan = JournalPlan(missing={2, 3}, gaps=(gap,), warm_up_windows=1, events=tuple(events))
    page = page_of(make_journal(tmp_path, plan))
    rows = re.findall(r'data-label="(?:what|detail|reason)">([^<]*)<', page)
    assert len(rows) > len(HARMLESS)
    assert "the engine died and was started again" in rows
    assert [row for row in rows if RAW.search(row)] == []
    data = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    marks = [mark[2] for mark in json.loads(data[1])["marks"]]
    assert len(marks) > 20
    assert [mark for mark in marks if RAW.search(mark)] == []


def test_the_end_of_an_alert_is_no_second_alert(tmp_path: Path) -> None:
    about = {"summary": "the queue is full", "starts_at": LOAD_START + 20, "fingerprint": "a"}
    firing = Event(LOAD_START + 21, EventType.ALERT, "QueueFull", about | {"status": "firing", "ends_at": None})
    over = Event(
        LOAD_START + 31, EventType.ALERT, "QueueFull", about | {"status": "resolved", "ends_at": LOAD_START + 30}
    )
    page = page_of(make_journal(tmp_path, JournalPlan(events=(firing, over))))
    kinds = re.findall(r'data-label="what">([^<]*)</td><td class="detail" data-label="detail">QueueFull', page)
    assert kinds == ["alert", "resolved"]


def test_lines_break_where_nothing_was_measured(tmp_path: Path) -> None:
    series = build(make_journal(tmp_path, JournalPlan(windows=6, missing={2, 3}))).series
    assert series.elapsed == [5, 15, 30, 45, 55]
    assert [value is None for value in series.latency["publish"]["p99"]] == [False, False, True, False, False]
    assert series.rates["operations"] == [1000, 1000, None, 1000, 1000]


def test_a_stall_is_drawn_as_one_and_is_no_gap(tmp_path: Path) -> None:
    """Of ten windows two completed nothing: of the first pair it is known for how long, of the last one it is not."""

    def latency(index: int) -> dict[str, Histogram]:
        return {} if index in (4, 5, 8) else {"publish": Histogram.from_values({2_000_000: 100})}

    def gauges(index: int) -> dict[str, float]:
        return {} if index == 8 else {"oldest_outstanding_seconds": {4: 9.5, 5: 19.5}.get(index, 0.0)}

    def counters(index: int) -> dict[str, int]:
        return {} if index not in (4, 5, 8) else {"operations": 0, "bytes": 0}

    plan = JournalPlan(windows=10, latency=latency, gauges=gauges, counters=counters)
    report = build(make_journal(tmp_path, plan))
    assert report.document["coverage"]["gaps"] == []
    assert report.document["coverage"]["ratio"] == 1
    assert report.series.stalls == [(40, 60, 19.5), (80, 90, None)]
    assert report.series.outstanding == [None] * 4 + [9_500_000, 19_500_000] + [None] * 4
    assert report.series.rates["operations"][4] == 0
    assert [each.get("oldest_outstanding_seconds") for each in report.document["stalls"]] == [19.5, None]
    page = render(report.document, report.series)
    assert "No operation of the load was completed in these windows" in page
    idle = replace(plan, gauges=lambda index: {"oldest_outstanding_seconds": 0.0})
    assert build(make_journal(tmp_path / "idle", idle)).series.stalls == []


def test_a_run_that_ends_in_a_stall_says_so(tmp_path: Path) -> None:
    plan = JournalPlan(
        windows=10,
        latency=lambda index: {"publish": Histogram.from_values({2_000_000: 100})} if index < 8 else {},
        counters=lambda index: {"operations": 100 if index < 8 else 0},
        gauges=lambda index: {"oldest_outstanding_seconds": max(0.0, 10.0 * (index - 7))},
    )
    verdict = build(make_journal(tmp_path, plan)).conclusion.verdict
    assert "The load ended in a stall: the oldest operation had been due for 20 s" in verdict.reasons[-1]


def test_charted_values_have_four_digits(tmp_path: Path) -> None:
    series = build(make_journal(tmp_path, JournalPlan(windows=3))).series
    for column in series.latency["publish"].values():
        assert all(len(str(value).replace(".", "").strip("0")) <= 4 for value in column)


def test_without_the_chart_library_the_page_has_its_tables_and_says_what_is_missing(tmp_path: Path) -> None:
    report = build(make_journal(tmp_path))
    page = render(report.document, report.series, library_directory=tmp_path / "none")
    assert "make assets" in page
    assert "uPlot" not in page.replace('typeof uPlot === "undefined"', "").split("<script>")[0]
    assert "whole load" in page
    assert 'id="charts"' not in page


def test_the_chart_library_is_installed_and_its_licence_goes_with_it(tmp_path: Path) -> None:
    library = chart_library(CHART_LIBRARY)
    assert library is not None, "make assets installs it"
    page = page_of(make_journal(tmp_path))
    assert library.script in page
    assert "Permission is hereby granted, free of charge" in page


@pytest.mark.parametrize("name", VerdictName)
def test_every_verdict_has_its_mark_and_meaning(tmp_path: Path, name: VerdictName) -> None:
    report = build(make_journal(tmp_path, replace(JournalPlan(), windows=2, load=SyntheticLoad(seed=2))))
    report.document["verdict"] = {"name": name.value, "reasons": ["because"]}
    report.document["facts"] = {"drives": [{"name": "sda", "serial": "S1"}]}
    page = render(report.document, report.series)
    assert "<dt>drive</dt><dd>sda (S1)</dd>" in page, "a run without findings, too, names its drive"
    mark, meaning = VERDICTS[name]
    assert f'<span aria-hidden="true">{mark}</span> {name.value}' in page
    assert meaning in page


def test_percentiles_beyond_the_engines_scale_are_marked(tmp_path: Path) -> None:
    details: tuple[dict[str, object], ...] = (
        {"operation": "write", "count": 3},
        {"operation": "read", "count": 2},
        {"count": HOSTILE},
        {},
    )
    events = tuple(Event(LOAD_START + 20, EventType.ENGINE, "latency_beyond_scale", detail) for detail in details)
    page = page_of(make_journal(tmp_path / "beyond", JournalPlan(events=events)))
    assert "Of 5 operations that took longer than 17.1 s" in page
    assert "17.1 s" not in page_of(make_journal(tmp_path / "within"))
