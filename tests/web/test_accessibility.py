"""Every page held against axe-core's rules, in light and dark, on a screen and on a phone; and what a page weighs."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from testkit.service import Service
from tests.web.conftest import log_in, start_run, steady, wait_until_finished

import cliffwatch.web

AXE = Path(cliffwatch.web.__file__).parent / "assets" / "node_modules" / "axe-core" / "axe.min.js"
#: All that a page loads, in bytes, over the wire.
ASSETS_LIMIT_BYTES = 200_000


@pytest.fixture(scope="module")
def finished_run(service: Service) -> str:
    run_id = start_run(service, steady("looked-at", "2h", "10s", time="virtual", cliff_after="1h"))
    wait_until_finished(service, run_id)
    return run_id


def violations(page: Page) -> list[str]:
    # Evaluated by the debugger, which the page's policy does not bind.
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found["violations"] for node in rule["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_no_page_violates_a_rule(page: Page, service: Service, finished_run: str, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/login")
    assert violations(page) == []
    log_in(page, service)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    for path in (
        "/runs",
        f"/runs/{finished_run}",
        "/start",
        "/schedules",
        "/drives",
        "/workloads",
        "/notifications",
        "/tokens",
        "/api",
        "/runs/none-such",
    ):
        page.goto(path)
        if path.endswith(finished_run):
            expect(page.locator("#live")).to_have_attribute("data-ready", "true")
        assert violations(page) == [], path
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{path} is wider than the screen"


def test_the_keyboard_reaches_the_stop_and_leaves_it(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("by-keyboard", "60s"))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#live")).to_have_attribute("data-ready", "true")
    page.get_by_role("button", name="Stop…").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#stop-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#stop-dialog")).not_to_be_visible()
    page.get_by_role("button", name="Stop…").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Stop the run").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#verdict")).to_contain_text("stopped")


def test_a_live_page_loads_little_and_nothing_from_elsewhere(page: Page, service: Service, finished_run: str) -> None:
    loaded: dict[str, int] = {}
    page.on("response", lambda answer: loaded.update({answer.url: len(answer.body())}) if answer.ok else None)
    log_in(page, service, f"/runs/{finished_run}")
    expect(page.locator("#live")).to_have_attribute("data-over", "true")
    assert all(url.startswith(f"http://127.0.0.1:{service.port}/") for url in loaded)
    assets = {url: size for url, size in loaded.items() if "/static/" in url}
    assert len(assets) >= 6
    assert sum(assets.values()) <= ASSETS_LIMIT_BYTES
