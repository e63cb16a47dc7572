"""The report of every kind of run in a real browser: no complaint, no empty chart, nothing wider than the screen."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers import CUT_OFF, KEEP_WRITTEN, PATIENCE_MILLISECONDS, chromium
from testkit.recorded_runs import make_journal
from tests.report.cliff_run import PLAN
from tests.report.every_run import KINDS, Kind, write_journal

from cliffwatch.report.build import build, write

SCREEN, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

#: What is seen of every figure: its chart's id, its size, how many pixels of it are of the colour of a series, of each
#: of them, and of that of a finding's onset.
FIGURES = """
() => [...document.querySelectorAll("figure")].filter((figure) => figure.offsetParent !== null).map((figure) => {
  const chart = figure.querySelector(".chart"), canvas = figure.querySelector("canvas");
  if (chart === null) {
    const svg = figure.querySelector("svg"), box = svg.getBoundingClientRect();
    if (svg.matches(".small-curve")) {
      const drawn = [...svg.querySelectorAll("polyline, rect")].reduce((sum, each) => sum + each.getBBox().width, 0);
      const onset = svg.querySelectorAll("path").length;
      return { id: "small-curve", width: box.width, height: box.height, drawn, each: [], onset };
    }
    const cells = [...svg.querySelectorAll("path")].map((path) => path.getAttribute("d").split("M").length - 1);
    const drawn = cells.reduce((sum, count) => sum + count, 0), onset = svg.querySelectorAll(".heat-onset").length;
    return { id: svg.parentElement.className, width: box.width, height: box.height, drawn, each: [], onset };
  }
  if (canvas === null) return { id: chart.id, width: 0, height: 0, drawn: 0, each: [], onset: 0 };
  const over = figure.querySelector(".u-over").getBoundingClientRect(), all = canvas.getBoundingClientRect();
  const unit = canvas.width / all.width;
  const [left, top] = [(over.left - all.left) * unit, (over.top - all.top) * unit];
  const pixels = canvas.getContext("2d").getImageData(left, top, over.width * unit, over.height * unit).data;
  const tones = [...figure.querySelectorAll(".legend .swatch")].map((swatch) =>
    getComputedStyle(swatch).borderTopColor.match(/[0-9.]+/g).slice(0, 3).map(Number));
  const danger = getComputedStyle(document.documentElement).getPropertyValue("--danger").trim();
  const onsetTone = [1, 3, 5].map((place) => parseInt(danger.slice(place, place + 2), 16));
  const each = tones.map(() => 0);
  const isOf = (tone, at) => tone.every((value, place) => Math.abs(pixels[at + place] - value) < 25);
  let drawn = 0, onset = 0;
  for (let at = 0; at < pixels.length; at += 4) {
    if (pixels[at + 3] <= 100) continue;
    if (tones.some((tone) => isOf(tone, at))) drawn += 1;
    tones.forEach((tone, index) => { if (isOf(tone, at)) each[index] += 1; });
    if (isOf(onsetTone, at)) onset += 1;
  }
  return { id: chart.id, width: over.width, height: over.height, drawn, each, onset };
})
"""
#: After what the page still has to do: observers have run, and a frame is drawn.
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


class Opened:
    """A page, and what it complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))
        page.on("requestfailed", lambda request: self.complaints.append(f"{request.url} cannot be had"))

    def _asked(self, url: str) -> None:
        if not url.endswith("/report.html"):
            self.complaints.append(f"the page asks for {url}")

    def open(self, path: Path, size: dict[str, int], scheme: Any) -> None:
        self.page.set_viewport_size({"width": size["width"], "height": size["height"]})
        self.page.emulate_media(color_scheme=scheme)
        self.page.goto(path.as_uri())
        # The scripts are in the page and run while it is read, so it is ready, or has complained, by now.
        assert self.complaints == []
        assert self.page.get_attribute("html", "data-ready") == "true"

    def look(self, expected: set[str], kind: Kind) -> None:
        """Every chart that there is data for is drawn, and no other; nothing is wider than the screen."""
        self.page.evaluate(SETTLED)
        figures = self.page.evaluate(FIGURES)
        assert {figure["id"] for figure in figures} == expected
        for figure in figures:
            assert figure["width"] > 200, figure
            assert figure["height"] > 60, figure
            # Of a heat map of one window there may be no more.
            assert figure["drawn"] >= (2 if figure["id"] == "heat" else 4), figure
            # What the engine wrote and what the device took are often the same: neither line hides the other.
            if figure["id"] == "rate-chart":
                assert min(figure["each"]) >= 4, figure
            if kind.shape == "cliff" and figure["id"] != "percentile-curve":
                # A line, and not its words, which would hide what is drawn there. A limit's line is of the same colour.
                limits = figure["width"] if kind.limits and figure["id"] == "latency-chart" else 0
                assert 0 < figure["onset"] <= 4 * figure["height"] + limits, figure
        assert self.page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
        assert self.complaints == []


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    yield Opened(context.new_page())
    context.close()


def expected_charts(page: str) -> set[str]:
    """The charts that a report's data can fill."""
    data = json.loads(page.split('id="report-data">')[1].split("</script>")[0])
    timed = data["latency"] or data["outstanding"]
    charts = {f"{name}-chart" for name, column in (("latency", timed), ("rate", data["rates"])) if column}
    charts |= {"percentile-curve", "heat"} if data["latency"] else set()
    charts |= {"small-curve"} if data["latency"] and len(data["elapsed"]) > 1 else set()
    charts |= {"depth-chart"} if "queue_depth" in data["layers"] else set()
    charts |= {"layer-chart"} if {"device_p99", "device_mean"} & data["layers"].keys() else set()
    evidence = {
        "device_write_latency": "evidence-latency",
        "write_amplification": "evidence-amplification",
        "clean_blocks": "evidence-clean",
    }
    return charts | {evidence[name] for name in data["evidence"]}


def test_a_limit_beyond_the_chart_stands_as_words_at_its_edge(tmp_path: Path, opened: Opened) -> None:
    opened.page.add_init_script(KEEP_WRITTEN)
    limits = ("p99 <= 10m over any 1m", "p99 <= 20ms over any 1m", "p99 <= 1us over any 1m")
    directory = make_journal(tmp_path, replace(PLAN, limits=limits))
    write(directory, build(directory))
    opened.open(directory / "report.html", SCREEN, "dark")
    opened.page.evaluate(SETTLED)
    written = set(opened.page.evaluate("[...window.written.keys()]"))
    signs = {"↑ limit: p99 <= 10m over any 1m", "limit: p99 <= 20ms over any 1m", "↓ limit: p99 <= 1us over any 1m"}
    assert {words for words in written if "limit" in words} == signs
    assert opened.complaints == []


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=str)
def test_six_questions_are_answered_on_the_first_screen(tmp_path: Path, opened: Opened, size: dict[str, int]) -> None:
    """Did it pass, when did it fall, on which drive, why, how sure, and what next."""
    directory = write_journal(tmp_path, Kind("storage", "degraded", "cliff", telemetry=True))
    write(directory, build(directory))
    opened.open(directory / "report.html", size, "light")
    seen = opened.page.evaluate(
        "() => [...document.querySelectorAll('.verdict .badge, .verdict .headline, .verdict .remedy')]"
        ".filter((each) => each.getBoundingClientRect().bottom <= innerHeight).map((each) => each.innerText)"
    )
    assert len(seen) == 3
    assert "degraded" in seen[0]
    assert re.search(r"Cliff at 0:\d\d:\d\d.* on nvme0n1; likely cause: \w.* \(\d+ % sure\)", seen[1])
    assert re.search(r"^What now: \w", seen[2])


def test_a_report_is_printed_dark_on_light_with_all_of_its_charts(tmp_path: Path, opened: Opened) -> None:
    directory = write_journal(tmp_path, Kind("storage", "degraded", "cliff", telemetry=True))
    write(directory, build(directory))
    opened.open(directory / "report.html", SCREEN, "dark")
    expected = expected_charts((directory / "report.html").read_text())
    opened.page.emulate_media(media="print", color_scheme="dark")
    opened.page.evaluate(SETTLED)
    assert {figure["id"] for figure in opened.page.evaluate(FIGURES) if figure["drawn"] >= 4} == expected
    paper, ink = opened.page.evaluate(
        "() => ['backgroundColor', 'color'].map((name) => getComputedStyle(document.body)[name])"
    )
    assert [sum(map(int, re.findall(r"\d+", each)[:3])) > 3 * 128 for each in (paper, ink)] == [True, False]
    for hidden in opened.page.query_selector_all(".jump, #reset, #span"):
        assert not hidden.is_visible(), hidden.evaluate("(each) => each.outerHTML")
    opened.page.evaluate(
        "() => {"
        " window.folded = [];"
        " addEventListener('beforeprint', () => window.folded.push(document.querySelectorAll('details:not([open])')));"
        "}"
    )
    folded = opened.page.locator("details:not([open])")
    before = folded.count()
    assert before > 0
    opened.page.pdf()
    assert opened.page.evaluate("() => window.folded.map((each) => each.length)") == [0]
    assert folded.count() == before


def test_every_engine_and_verdict_is_among_the_kinds() -> None:
    assert len({str(kind) for kind in KINDS}) == len(KINDS) >= 30
    verdicts = {"pass", "degraded", "invalid", "failed", "stopped"}
    for engine in ("fio", "storage", "kafka", "synthetic"):
        assert {kind.verdict for kind in KINDS if kind.engine == engine} == verdicts


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_report_opens_without_a_complaint_or_an_empty_chart(tmp_path: Path, opened: Opened, kind: Kind) -> None:
    directory = write_journal(tmp_path, kind)
    report = build(directory)
    assert report.conclusion.verdict.name == kind.verdict, report.conclusion.verdict.reasons
    write(directory, report)
    path = directory / "report.html"
    text = path.read_text()
    expected = expected_charts(text)
    assert ("<strong>CliffwatchLatencyCliff</strong>" in text) == (kind.shape == "cliff")
    # The headline and the tile count the same operations.
    assert ("of 150,017 operations" in report.conclusion.verdict.reasons[0]) == ("of 150,017 operations</dd>" in text)
    stalled = kind.shape in ("stalls", "all_stalled")
    for first, then, size in (("light", "dark", SCREEN), ("dark", "light", PHONE)):
        opened.open(path, size, first)
        opened.look(expected, kind)
        assert opened.page.get_by_text("stalled: nothing completed").count() == stalled
        opened.page.emulate_media(color_scheme=then)  # type: ignore[arg-type]
        opened.look(expected, kind)
        # Tables whose details are closed are seen too.
        opened.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert opened.page.evaluate(CUT_OFF) == []
