"""The page of drives: the gate's word, and their health from a real Prometheus that knows some of it.

The drives are the tests' own, because those of others come and go between two listings.
"""

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from testkit.loops import command, loop_drive
from testkit.ports import free_port
from testkit.service import Service
from tests.telemetry.prometheus_server import PrometheusServer, fill
from tests.web.conftest import log_in


def _section(page: Page, drive: str) -> Locator:
    """The section of the page about the drive of this name."""
    return page.locator("section.drive").filter(has=page.locator("h2 code", has_text=re.compile(f"^{drive}$")))


def test_drives_are_listed_with_the_gates_word(page: Page, service: Service, tmp_path: Path) -> None:
    with loop_drive(tmp_path / "free") as free, loop_drive(tmp_path / "used") as used:
        command("mkfs.ext4", "-q", used.node)
        log_in(page, service, "/drives")
        for drive, word in ((free, "not in use"), (used, "there is a file system on the drive")):
            expect(_section(page, drive.node.name)).to_contain_text(word)


def test_reasons_that_are_unfolded_stay_so_when_the_list_refreshes(
    page: Page, service: Service, tmp_path: Path
) -> None:
    with loop_drive(tmp_path / "used") as used:
        command("mkfs.ext4", "-q", used.node)
        log_in(page, service, "/drives")
        section = _section(page, used.node.name)
        reasons = section.locator("details")
        reasons.locator("summary").click()
        section.locator("h2").evaluate("heading => { heading.dataset.stale = 'yes' }")
        # Shown again, a page refreshes at once, and the refresh takes away the attribute that the service did not send.
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(section.locator("h2")).not_to_have_attribute("data-stale", "yes")
        expect(reasons).to_have_attribute("open", "")


def _samples(device: str) -> list[str]:
    labels, now = f'{{device="{device}",serial="S1"}}', int(time.time())
    values = {"temperature_celsius": 41, "percentage_used_ratio": 1.02, "free_blocks_ratio": 0.08}
    lines = []
    for name, value in values.items():
        lines.append(f"# TYPE cliffwatch_drive_{name} gauge")
        lines += [f"cliffwatch_drive_{name}{labels} {value} {moment}" for moment in range(now - 60, now, 10)]
    return lines


def test_a_drive_shows_its_health(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prometheus = PrometheusServer(tmp_path / "prometheus")
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", prometheus.url)
    with loop_drive(tmp_path / "reported") as reported, loop_drive(tmp_path / "silent") as silent:
        fill(prometheus.data, _samples(reported.node.name))
        with prometheus, Service(tmp_path / "state") as service:
            _see_health(browser, service, reported.node.name, silent.node.name)


def _see_health(browser: Browser, service: Service, reported: str, silent: str) -> None:
    context = browser.new_context(base_url=f"http://127.0.0.1:{service.port}")
    page = context.new_page()
    log_in(page, service, "/drives")
    shown = _section(page, reported)
    for words in ("41 °C", "102 %", "8 %"):
        expect(shown).to_contain_text(words)
    expect(shown).not_to_contain_text("write amplification")
    other = _section(page, silent)
    expect(other).to_contain_text("No health log (SMART)")
    context.close()


def test_without_prometheus_the_page_says_so(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", f"http://127.0.0.1:{free_port()}")
    with Service(tmp_path / "state") as service:
        context = browser.new_context(base_url=f"http://127.0.0.1:{service.port}")
        page = context.new_page()
        log_in(page, service, "/drives")
        expect(page.get_by_text("does not answer")).to_be_visible()
        expect(page.locator("section.drive").first).to_be_visible()
        context.close()
