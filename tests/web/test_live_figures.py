"""What a live page shows besides its stream: limits with their margins, drives, time left; and a run's own figures."""

import json
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from testkit.journals import rewritten
from testkit.loops import loop_drive
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from testkit.service import Service
from tests.report.documents import document_of
from tests.telemetry.prometheus_server import PrometheusServer, fill
from tests.web.conftest import log_in, start_run, steady, wait_until_finished

from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_amplification, format_number, format_ratio, format_share
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.engines.synthetic import SyntheticLoad
from cliffwatch.journal import JournalReader, files
from cliffwatch.report import format as formats
from cliffwatch.report.limits.now import LimitWatch, Outside, WatchedLimits, judged_limit

LIMITS = ["p99 <= 20ms over any 2s", "throughput >= 1MB/s over any 2s", "no cliff", "write amplification <= 2"]


def test_a_live_run_shows_its_limits_its_drives_and_the_time_left(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("limited", "5m") | {"limits": LIMITS})
    log_in(page, service, f"/runs/{run_id}")
    limits = page.locator("#limits > div")
    expect(limits).to_have_count(4)
    expect(limits.nth(0)).to_contain_text(re.compile(r"p99 <= 20ms over any 2s.* ms.*% below the bound, last 2 s"))
    expect(limits.nth(1)).to_contain_text(re.compile(r"MiB/s\d+× the bound"))
    expect(limits.nth(2)).to_contain_text("none found")
    expect(limits.nth(3)).to_contain_text("not measured")
    expect(page.locator("#drives-missing")).to_contain_text("No drive of this machine")
    expect(page.locator("#tile-left")).to_contain_text(re.compile(r"0:0[45]:\d\d"))
    expect(page.locator("#tile-phase-left")).to_contain_text(re.compile(r"(baseline|soak): 0:0\d:\d\d left"))
    said = r"No finding in .* of soak; even a cliff may take 30m to .*\. Open: its limits\. The verdict is"
    expect(page.locator("#standing")).to_have_text(re.compile(said))
    assert re.match(said, service.client.get(f"/api/v1/runs/{run_id}").json()["standing"])
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    expect(page.locator("#verdict")).to_contain_text("stopped")
    # What was about the last window is about the whole load now, without loading the page again.
    expect(page.locator("#tile-ratio")).to_have_text("whole load")
    figures = service.client.get(f"/api/v1/runs/{run_id}").json()["figures"]
    expect(page.locator("#tile-p99")).to_have_text(formats.latency(figures["p99_seconds"]))
    # Neither is what the limits are now, but what became of them.
    expect(limits.nth(0).locator("dd").first).to_have_text("held")
    expect(limits.nth(0)).to_contain_text(re.compile(r"at least \d+(\.\d+)? % below the bound"))
    expect(limits.nth(3)).to_contain_text("not judged")
    expect(page.locator("#standing")).to_be_hidden()


def test_a_page_says_for_how_long_no_window_has_come(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("silent", "5m", "1s"))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#tile-windows")).not_to_have_text("0")
    directory = service.state_directory / "runs" / run_id
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    heartbeat.worker.send(signal.SIGSTOP)
    try:
        expect(page.locator("#tile-ratio")).to_have_text(re.compile(r"no window for \d+ s"))
        expect(page.locator("#tile-p99")).to_have_text("–")
    finally:
        heartbeat.worker.send(signal.SIGCONT)
    expect(page.locator("#tile-ratio")).to_contain_text("last window")
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    service.wait_for(run_id, "finished")


def test_a_live_runs_limits_are_those_of_its_newest_window(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("prompt", "5m", "1s") | {"limits": LIMITS[:1]})
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#limits > div")).to_have_count(1)
    # One answer a window, and not one in five seconds.
    for _ in range(3):
        with page.expect_response(lambda answer: answer.url.endswith("/now"), timeout=3000):
            pass
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()


def test_a_finished_run_shows_which_limit_broke_when_and_by_how_much(page: Page, service: Service) -> None:
    limits = ["p99 <= 20ms over any 1m", "throughput >= 1MB/s over any 1m"]
    run_id = start_run(service, steady("broken", "2h", "10s", time="virtual", cliff_after="1h") | {"limits": limits})
    wait_until_finished(service, run_id)
    broken, held = service.client.get(f"/api/v1/runs/{run_id}/report").json()["limits"]
    log_in(page, service, f"/runs/{run_id}")
    first, other = page.locator("#limits > div").nth(0), page.locator("#limits > div").nth(1)
    expect(first.locator("dd").first).to_have_text("broken")
    expect(first).to_contain_text(re.compile(r"× the bound, first at 1:00:\d\d \(.* at worst\)"))
    expect(first).to_contain_text(broken["broken"][0]["worst"])
    expect(other).to_contain_text(re.compile(r"held.*× the bound"))
    assert (broken["held"], held["held"]) == (False, True)


def test_a_finished_run_shows_its_whole_load_and_not_its_last_window(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("over", "2h", "10s", time="virtual", cliff_after="1h"))
    wait_until_finished(service, run_id)
    load = service.client.get(f"/api/v1/runs/{run_id}/report").json()
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#tile-p50")).to_have_text(formats.latency(load["latency"]["publish"]["load"]["p50_seconds"]))
    expect(page.locator("#tile-bytes")).to_have_text(formats.byte_rate(load["throughput"]["load"]["bytes_per_second"]))
    expect(page.locator("#live .span").first).to_have_text("whole load")


def test_a_runs_drive_shows_what_prometheus_knows_of_it(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prometheus = PrometheusServer(tmp_path / "prometheus")
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", prometheus.url)
    with loop_drive(tmp_path / "drive") as drive, Service(tmp_path / "state") as service:
        device, now = drive.node.name, int(time.time())
        # A rate over a minute has its samples whenever the page asks for it.
        times = range(now - 60, now + 600, 10)
        names = {"temperature_celsius": 41, "free_blocks_ratio": 0.08}
        lines = []
        for name, value in names.items():
            lines.append(f"# TYPE cliffwatch_drive_{name} gauge")
            lines += [f'cliffwatch_drive_{name}{{device="{device}"}} {value} {at}' for at in times]
        for name, factor in (("media", 3), ("host", 2)):
            lines.append(f"# TYPE cliffwatch_drive_{name}_written_bytes counter")
            counter = f'cliffwatch_drive_{name}_written_bytes_total{{device="{device}"}}'
            lines += [f"{counter} {factor * 1e6 * (at - now + 100)} {at}" for at in times]
        fill(prometheus.data, lines)
        run_id = start_run(service, steady("on-a-drive", "5m") | {"limits": ["write amplification <= 2 over any 1m"]})
        service.wait_for(run_id, "running")
        # The engine makes no load on a drive; its run's facts name one all the same.
        facts = service.state_directory / "runs" / run_id / files.FACTS
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"drives": [{"name": device}]}))
        context = browser.new_context(base_url=f"http://127.0.0.1:{service.port}")
        page = context.new_page()
        log_in(page, service, f"/runs/{run_id}")
        # It is not scraped yet: the page says so, and what would help.
        expect(page.locator("#drives-missing")).to_contain_text("cliffwatch up")
        with prometheus:
            for words in ("1.5", "8 %", "41 °C"):
                expect(page.locator("#drives")).to_contain_text(words)
            expect(page.locator("#limits")).to_contain_text("25 % below the bound")
            expect(page.locator("#drives-missing")).to_be_empty()
        service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
        context.close()
        service.wait_for(run_id, "finished")


def test_a_limits_value_is_of_its_span_alone(tmp_path: Path) -> None:
    load = SyntheticLoad(median_latency="2ms", cliff_after="400s", cliff_ratio=100)
    directory = make_journal(tmp_path / "run", JournalPlan(windows=60, baseline_windows=6, load=load))
    texts = ["p99 <= 20ms over any 1m", "p99 <= 20ms", "throughput >= 100MB/s over any 1m", "p99 <= 20ms over any 9m"]
    watches = WatchedLimits()
    watch = watches.of(directory, texts, LOAD_START)
    assert watch.read_on()
    assert watches.of(directory, texts, LOAD_START) is watch
    reader = JournalReader(directory)
    windows = list(reader.windows())
    last_minute = reader.merged(windows[-6:], lambda window: "span")["span"]["publish"]
    short, whole, throughput, long = watch.now(Outside({}, ()))
    assert short.value == formats.latency(last_minute.percentiles_seconds([0.99])[0])
    assert (short.broken, short.note.partition(" (")[0]) == (True, "last 1m; first at 0:06:40")
    assert short.margin.endswith("× the bound")
    assert whole.note.startswith("whole load so far")
    everything = reader.merged(windows, lambda window: "all")["all"]["publish"]
    assert whole.value == formats.latency(everything.percentiles_seconds([0.99])[0])
    assert throughput.value == formats.byte_rate(windows[-1].counters["bytes"] / 10)
    assert "below the bound" in throughput.margin
    assert long.note.startswith("last 9m")


def test_a_limit_is_broken_live_by_what_waits_in_a_stall(tmp_path: Path) -> None:
    plan = JournalPlan(
        windows=30,
        latency=lambda index: {} if 10 <= index < 20 else {"publish": Histogram.from_values({2_000_000: 1000})},
        counters=lambda index: {"operations": 0} if 10 <= index < 20 else {},
        gauges=lambda index: {"oldest_outstanding_seconds": 10.0 * (index - 9) if 10 <= index < 20 else 0.0},
    )
    directory = make_journal(tmp_path / "run", plan)
    watch = LimitWatch(directory, ["p99 <= 30s over any 1m", "p99 of publish <= 30s over any 1m"], LOAD_START)
    watch.read_on()
    waited, of_an_operation = watch.now(Outside({}, ()))
    # Six windows without a completed operation end at 160 s; the one that waits is 60 s old by then.
    assert (waited.broken, waited.again, waited.note) == (True, True, "last 1m; first at 0:02:30 (80.1 s at worst)")
    assert (waited.value, of_an_operation.broken) == (formats.latency(0.002), False)


def dip(windows: range) -> JournalPlan:
    """60 windows, in some of which a tenth of the latencies are long and a hundredth of the bytes are written."""

    def latency(index: int) -> dict[str, Histogram]:
        slow = 100 + index if index in windows else 0
        return {"publish": Histogram.from_values({2_000_000: 1000 - slow, 50_000_000: slow})}

    def counters(index: int) -> dict[str, int]:
        return {"bytes": 10_000_000 if index in windows else 1_000_000_000}

    return JournalPlan(windows=60, latency=latency, counters=counters)


@pytest.mark.parametrize(
    "plan",
    [
        dip(range(3)),
        dip(range(5, 6)),
        dip(range(20, 26)),
        dip(range(59, 60)),
        dip(range(60)),
        replace(dip(range(20, 26)), missing=(10, 22)),
        replace(dip(range(20, 26)), missing=range(19, 23)),
        dip(range(0, 60, 20)),
    ],
    ids=["first", "short", "long", "last", "whole", "gaps", "a long gap", "again and again"],
)
def test_a_limit_was_broken_when_the_report_says_and_as_badly(tmp_path: Path, plan: JournalPlan) -> None:
    limits = ("p99 <= 20ms over any 1m", "throughput >= 90MB/s over any 1m", "p99 <= 20ms over any 100s", "p99 <= 20ms")
    directory = make_journal(tmp_path / "run", replace(plan, limits=limits))
    rows = document_of(directory)["limits"]
    watch = LimitWatch(directory, limits, LOAD_START)
    watch.read_on()
    for row, live in zip(rows, watch.now(Outside({}, ())), strict=True):
        assert live.broken == bool(row["broken"]), row
        if live.broken and "over any" in row["limit"]:
            assert live.note.partition("; ")[2] == judged_limit(row).note


def test_a_limit_that_was_broken_and_holds_again_says_both(tmp_path: Path) -> None:
    limits = ("throughput >= 90MB/s over any 1m",)
    directory = make_journal(tmp_path / "run", replace(dip(range(20, 26)), limits=limits))
    watch = LimitWatch(directory, limits, LOAD_START)
    watch.read_on()
    (throughput,) = watch.now(Outside({}, ()))
    assert (throughput.broken, throughput.again) == (True, True)
    assert throughput.note == "last 1m; first at 0:03:20 (976.6 KiB/s at worst)"


def test_a_span_that_is_not_measured_yet_says_how_much_of_it_is(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=30))
    watch = LimitWatch(directory, ["p99 <= 20ms over any 1h", "no drift", "write amplification <= 2"], LOAD_START)
    watch.read_on()
    judged = watch.now(Outside({None: 1.5}, ("cliff",)))
    assert [(each.note, each.broken) for each in judged] == [
        ("5m of 1h measured so far", False),
        ("so far", False),
        ("whole load so far", False),
    ]
    assert judged[2].margin == "25 % below the bound"


def test_a_stall_is_drawn_as_a_stall(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("stalled", "10m", "10s", time="virtual"))
    wait_until_finished(service, run_id)
    # Its journal as an engine leaves it that completed nothing for four windows, the oldest operation waiting.
    journal = service.state_directory / "runs" / run_id / files.WINDOWS
    lines = journal.read_bytes().splitlines(keepends=True)
    for number in range(20, 24):
        window = json.loads(lines[number])
        counters = window["counters"] | {"operations": 0}
        gauges = window["gauges"] | {"oldest_outstanding_seconds": 10.0 * (number - 19)}
        lines[number] = rewritten(lines[number], counters=counters, gauges=gauges, latency={})
    journal.write_bytes(b"".join(lines))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#stalled")).to_have_text("stalled: nothing completed in 4 windows")
    band = page.evaluate(
        """() => {
          const canvas = document.querySelector("#latency-chart canvas"), pen = canvas.getContext("2d");
          const row = pen.getImageData(0, 40, canvas.width, 1).data, reds = [];
          for (let x = 0; x < 4 * canvas.width; x += 4) if (row[x] > row[x + 2] + 60 && row[x + 3] > 0) reds.push(x);
          return reds.length;
        }"""
    )
    assert band > 10
    assert page.complaints == []  # type: ignore[attr-defined]


def test_a_window_alone_is_a_dot(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("alone", "10m", "10s", time="virtual"))
    wait_until_finished(service, run_id)
    journal = service.state_directory / "runs" / run_id / files.WINDOWS
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    log_in(page, service, f"/runs/{run_id}")
    page.locator("#latency-chart canvas").wait_for()
    coloured = """(where) => {
      const canvas = document.querySelector(where), pen = canvas.getContext("2d");
      const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
      let found = 0;
      for (let at = 0; at < pixels.length; at += 4) {
        const shades = pixels.slice(at, at + 3);
        if (pixels[at + 3] > 200 && Math.max(...shades) - Math.min(...shades) > 90) found += 1;
      }
      return found;
    }"""
    for chart in ("latency", "rate"):
        assert page.evaluate(coloured, f"#{chart}-chart canvas") > 4, chart
    assert page.complaints == []  # type: ignore[attr-defined]


NUMBERS = [
    0,
    3.2e-7,
    1e-6,
    9.994e-4,
    9.9951e-4,
    0.00403,
    0.0123,
    0.09995,
    0.2,
    0.99949,
    0.9996,
    1.005,
    12.34,
    99.94,
    99.96,
]
NUMBERS += [
    999.6,
    1000,
    1280,
    12.25,
    0.5,
    1.5,
    2.125,
    1023.6,
    1234.5,
    16_384,
    1_048_576,
    5_000_000,
    9_999_999,
    12_963_000,
    2.5e9,
    3.1e12,
    7e15,
    999.5,
    1023,
    1003 * 1024,
    1007.1 * 2**20,
    999.94 * 2**20,
    999.96 * 2**20,
]


def test_pages_write_quantities_as_the_report_does(page: Page, service: Service) -> None:
    page.goto("/login")
    page.add_script_tag(url="/static/format.js")
    for name, python in (
        ("latency", formats.latency),
        ("byteRate", formats.byte_rate),
        ("rate", formats.rate),
        ("elapsed", formats.elapsed),
        ("number", format_number),
        ("ratio", format_ratio),
        ("amplification", format_amplification),
        ("share", format_share),
    ):
        shown = page.evaluate(f"numbers => numbers.map(quantities.{name})", NUMBERS)
        assert shown == [python(number) for number in NUMBERS], name


def test_a_run_without_a_window_says_so_in_place_of_its_charts(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("not-begun", "5m") | {"window": "30s"})
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#live")).to_have_attribute("data-ready", "true")
    expect(page.locator("#no-windows")).to_contain_text("No window was measured yet.")
    expect(page.locator("#figures")).not_to_be_visible()
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()


def test_a_run_that_is_invalid_says_what_to_do_now(page: Page, service: Service) -> None:
    limits = ["write amplification <= 2"]
    run_id = start_run(service, steady("unjudged", "1h", "10s", time="virtual") | {"limits": limits})
    wait_until_finished(service, run_id)
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#verdict")).to_contain_text("invalid")
    expect(page.locator("#remedy")).to_contain_text("What now: See in the reason what was not measured")
    sound = start_run(service, steady("judged", "1h", "10s", time="virtual"))
    wait_until_finished(service, sound)
    page.goto(f"/runs/{sound}")
    expect(page.locator("#verdict")).to_contain_text("pass")
    expect(page.locator("#remedy")).to_contain_text("What now: Compare later runs with it")
