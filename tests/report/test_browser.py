"""The page in a real browser: its script runs under the page's own policy, draws, and answers a user's hand."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal

from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventType
from cliffwatch.report.build import build, write

#: Drags over the middle of the latency chart, records what is seen, then double-clicks and records again.
GESTURES = """
const over = document.querySelector("#latency-chart .u-over"), box = over.getBoundingClientRect();
const charts = document.getElementById("charts"), seen = [];
function mouse(type, share, target) {
  const x = box.left + box.width * share, y = box.top + box.height / 2;
  (target || over).dispatchEvent(new MouseEvent(type, {bubbles: true, clientX: x, clientY: y, movementX: 5}));
}
mouse("mouseenter", 0.25); mouse("mousedown", 0.25); mouse("mousemove", 0.35); mouse("mousemove", 0.5);
mouse("mouseup", 0.5, document);
setTimeout(() => {
  seen.push(charts.dataset.span);
  mouse("mousemove", 0.5);
  setTimeout(() => {
    seen.push(document.getElementById("readout").textContent);
    mouse("dblclick", 0.5);
    setTimeout(() => { seen.push(charts.dataset.span); document.body.dataset.seen = seen.join(" | "); }, 50);
  }, 50);
}, 50);
"""


@pytest.fixture
def browser(tmp_path: Path) -> list[str]:
    """Chromium with nothing of its own to say to the network."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program is not None, "the tests need chromium: apt-get install chromium"
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    more = "--disable-component-update --disable-sync --enable-logging=stderr --virtual-time-budget=5000 --dump-dom"
    return [
        program,
        *flags.split(),
        *more.split(),
        f"--user-data-dir={tmp_path / 'browser'}",
        "--window-size=1280,2000",
    ]


def opened(browser: list[str], page: Path) -> tuple[str, list[str]]:
    """The document as the browser has it in the end, and what came to its console."""
    done = subprocess.run([*browser, page.as_uri()], capture_output=True, text=True, check=True, timeout=240)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def clean(browser: list[str], directory: Path) -> str:
    write(directory, build(directory))
    dom, console = opened(browser, directory / "report.html")
    assert console == []
    assert re.search(r"<html[^>]* data-ready=\"true\"", dom) is not None
    return dom


def test_charts_are_drawn_without_a_complaint(tmp_path: Path, browser: list[str]) -> None:
    note = Event(LOAD_START + 155, EventType.NOTE, "seen", {"text": "</script><img src=x onerror=alert(1)>"})
    plan = JournalPlan(windows=40, missing={10, 11, 13}, baseline_windows=5, events=(note,), limits=("p99 <= 5ms",))
    dom = clean(browser, make_journal(tmp_path / "run", plan))
    assert dom.count("<canvas") == 2
    assert '<option value="baseline">baseline</option>' in dom
    keys = re.search(r'<div class="legend" id="keys"[^>]*>(.*?)</div>', dom)
    assert keys is not None
    assert re.findall(r"</span>([^<]+)</span>", keys[1]) == [
        "an event: point at it to read it",
        "limit",
        "p99 of the baseline",
        "not measured",
    ]


def test_a_page_with_no_window_and_one_with_no_latency_run_clean(tmp_path: Path, browser: list[str]) -> None:
    assert "<canvas" not in clean(browser, make_journal(tmp_path / "none", JournalPlan(windows=2, missing={0, 1})))
    bare = JournalPlan(windows=3, latency=lambda index: {})
    assert clean(browser, make_journal(tmp_path / "bare", bare)).count("<canvas") == 1
    empty = JournalPlan(windows=3, latency=lambda index: {"read": Histogram()})
    assert clean(browser, make_journal(tmp_path / "empty", empty)).count("<canvas") == 1


def test_dragging_zooms_both_charts_and_a_double_click_shows_the_whole_load(tmp_path: Path, browser: list[str]) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=100))
    write(directory, build(directory))
    page = (directory / "report.html").read_text()
    # The page's own policy keeps a script that is not its own from running, so the gestures need it gone.
    open_page = re.sub(r"<meta http-equiv[^>]*>", "", page).replace("</body>", f"<script>{GESTURES}</script></body>")
    assert open_page != page
    (directory / "gestures.html").write_text(open_page)
    dom, console = opened(browser, directory / "gestures.html")
    assert console == []
    seen = re.search(r'data-seen="([^"]*)"', dom)
    assert seen is not None
    zoomed, readout, whole = html.unescape(seen[1]).split(" | ")
    start, end = map(float, zoomed.split())
    assert start == pytest.approx(250, abs=15)
    assert end == pytest.approx(500, abs=15)
    assert re.fullmatch(r"0:06:\d\d elapsed · 2026-09-21 15:06:\d\d UTC", readout) is not None
    assert whole == "0 1000"
