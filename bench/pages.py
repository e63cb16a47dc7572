"""Cost of the service's pages in a browser: bytes, first paint, drawing 36 hours, and memory of a page left open.

A run of 36 h in virtual time stands in for a real one; two hours of windows are sent to an open page as fast as it
accepts them.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figure
from playwright.sync_api import Browser, CDPSession, Page, Response, sync_playwright
from testkit.service import Service

LONG = "36h"
#: Windows of an open page's two hours, sent in rounds; memory is compared after the first and after the last.
ROUNDS, WINDOWS_A_ROUND = 8, 90
_PATIENCE_MILLISECONDS = 300_000


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as place, Service(Path(place) / "state") as service:
        run_id = soak(service, "long", cliff_after="12h")
        with browse() as browser:
            context = browser.new_context(base_url=f"http://127.0.0.1:{service.port}")
            context.set_default_timeout(_PATIENCE_MILLISECONDS)
            page = context.new_page()
            weight = _log_in(page, service, f"/runs/{run_id}")
            paint = min(_first_paint(page, run_id) for _ in range(5))
            drawn = min(_drawing(page, run_id) for _ in range(5))
            growth = _growth(page, context.new_cdp_session(page))
    return [
        Figure("pages: assets of a live page", weight / 1000, "kB", 200),
        Figure("pages: first paint of a live page", paint, "s", 1.0),
        Figure("pages: 36 h of windows drawn", drawn, "ms", 300),
        Figure("pages: memory of an open page after two hours / at first", growth, "", 1.1),
    ]


@contextmanager
def browse() -> Iterator[Browser]:
    """The distribution's Chromium, headless."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise RuntimeError("the pages are looked at in chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def soak(service: Service, name: str, **load: object) -> str:
    """Execute a run of 36 h in virtual time; returns its id once it is over."""
    workload = {
        "version": 1,
        "name": name,
        "engine": "synthetic",
        "window": "10s",
        "phases": {"soak": LONG},
        "load": {"time": "virtual", **load},
    }
    order = {"workload": workload, "target": {"kind": "synthetic", "name": name}}
    answer = service.client.post("/api/v1/runs", json=order)
    answer.raise_for_status()
    run_id: str = answer.json()["id"]
    with service.client.stream("GET", f"/api/v1/runs/{run_id}/live", timeout=900) as stream:
        for _ in stream.iter_lines():
            pass
    return run_id


def _log_in(page: Page, service: Service, after: str) -> float:
    """Log in; returns the bytes of all assets that the page after the login loads, none of them cached."""
    sizes: dict[str, int] = {}

    def weigh(answer: Response) -> None:
        if "/static/" in answer.url and answer.status == 200:
            sizes[answer.url] = len(answer.body())

    page.on("response", weigh)
    page.goto(after)
    page.get_by_label("Token").fill((service.state_directory / "token").read_text().strip())
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("#live[data-ready=true]")
    page.remove_listener("response", weigh)
    return float(sum(sizes.values()))


def _first_paint(page: Page, run_id: str) -> float:
    page.goto(f"/runs/{run_id}")
    page.wait_for_selector("#live[data-ready=true]")
    milliseconds = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return float(milliseconds) / 1000


def _drawing(page: Page, run_id: str) -> float:
    page.goto(f"/runs/{run_id}")
    page.wait_for_selector("#live[data-drawn-milliseconds]")
    return float(page.get_attribute("#live", "data-drawn-milliseconds") or "inf")


#: Replacement for the browser's EventSource that sends windows on request.
_STAND_IN = """
window.EventSource = class {
  constructor() { this.handlers = {}; window.stream = this; }
  addEventListener(name, handle) { this.handlers[name] = handle; }
  close() {}
};
window.sendWindows = async (from, count, origin) => {
  for (let seq = from; seq < from + count; seq += 1) {
    const latency = { p50: 0.002, p99: 0.004 + 0.001 * Math.random(), p999: 0.006, max: 0.01 };
    const body = { seq, start: origin + seq * 10, end: origin + seq * 10 + 10, phase: "soak",
      counters: { operations: 10000, bytes: 1e8 }, gauges: {}, latency: { publish: latency } };
    window.stream.handlers.window({ data: JSON.stringify(body), lastEventId: "0." + seq });
    await new Promise(requestAnimationFrame);
  }
};
"""


def _growth(page: Page, session: CDPSession) -> float:
    """Ratio of a live page's heap after two hours of windows to its heap after the first quarter of an hour."""
    page.add_init_script(_STAND_IN)
    series = {
        "names": [
            "elapsed",
            "p50",
            "p99",
            "p999",
            "max",
            "operations_per_second",
            "bytes_per_second",
            "device_write_latency",
            "stall",
        ],
        "columns": [[] for _ in range(9)],
        "latency": "publish",
        "last_window": -1,
        "origin": 1_790_000_000.0,
        "has_begun": True,
        "planned_seconds": ROUNDS * WINDOWS_A_ROUND * 10.0,
        "events": [],
        "position": "0.-1",
        "run": {"state": "running", "phase": "soak", "verdict": None, "reasons": [], "progress_ratio": 0, "windows": 0},
    }
    page.route("**/series", lambda route: route.fulfill(json=series))
    page.reload()
    page.wait_for_selector("#live[data-ready=true]")
    heaps = []
    for number in range(ROUNDS):
        page.evaluate(f"sendWindows({number * WINDOWS_A_ROUND}, {WINDOWS_A_ROUND}, 1790000000)")
        session.send("HeapProfiler.collectGarbage")
        heaps.append(page.evaluate("performance.memory.usedJSHeapSize"))
    return float(heaps[-1] / heaps[0])
