"""`python -m bench.pictures RUN_DIRECTORY`: make the pictures of README.md and docs/, from a run and a service's pages.

The service is started in a temporary directory. Besides the run it has soaks of 36 h in virtual time, so that lists
are not empty. Where CLIFFWATCH_PROMETHEUS_URL names a Prometheus, the drives show their health.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from bench.pages import browse, soak
from playwright.sync_api import Browser, Page, ViewportSize
from testkit.service import Service

from cliffwatch.journal import files
from cliffwatch.report.picture.process import picture_of

PICTURES = Path(__file__).parents[1] / "docs" / "images"
_WIDTH, _HEIGHT = 1280, 900
_REPORT_HEIGHT = 1400
_PHONE: ViewportSize = {"width": 390, "height": 844}
#: Settings of the synthetic engine for each soak, by the soak's name.
_SOAKS: dict[str, dict[str, object]] = {
    "drive-a": {},
    "drive-b": {"cliff_after": "19h"},
}


def main(run_directory: Path) -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cliffwatch-") as place, Service(Path(place) / "state") as service:
        for name, load in _SOAKS.items():
            soak(service, name, **load)
        run_id = _take_in(service, run_directory)
        (PICTURES / "summary.png").write_bytes(picture_of(run_directory, Path(place) / "cache"))
        with browse() as browser:
            _picture_report(browser, run_directory)
            _picture_pages(browser, service, run_id, Path(place))
    for picture in sorted(PICTURES.glob("*.png")):
        print(picture)


def _take_in(service: Service, run_directory: Path) -> str:
    """Copy the run to the service's own runs, as a user does with a run from elsewhere; returns its id."""
    run_id = run_directory.name
    shutil.copytree(run_directory, service.state_directory / "runs" / run_id)
    service.rebuild_index()
    return run_id


def _picture_report(browser: Browser, run_directory: Path) -> None:
    page = browser.new_page(viewport={"width": _WIDTH, "height": _REPORT_HEIGHT})
    page.goto((run_directory / files.REPORT_HTML).as_uri())
    page.locator("#over-time").wait_for()
    page.screenshot(path=PICTURES / "report.png")
    for heading, name in (("over-time", "report-over-time"), ("layers", "report-layers"), ("device", "report-device")):
        section = page.locator(f"section[aria-labelledby={heading}]")
        if section.count():
            section.screenshot(path=PICTURES / f"{name}.png")
    page.close()


def _picture_pages(browser: Browser, service: Service, run_id: str, place: Path) -> None:
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{service.port}", viewport={"width": _WIDTH, "height": _HEIGHT}
    )
    page = context.new_page()
    page.goto("/schedules")
    page.get_by_label("Token").fill((service.state_directory / "token").read_text().strip())
    page.get_by_role("button", name="Log in").click()
    _add_schedule(page)
    _save(page, "page-schedules")
    page.goto("/runs")
    _save(page, "page-runs")
    page.goto("/drives")
    _save(page, "page-drives")
    _check_a_start(page, place / "data")
    _save(page, "page-start")
    page.goto(f"/runs/{run_id}")
    page.wait_for_selector("#live[data-drawn-milliseconds]")
    _save(page, "page-run")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(_PHONE)
    page.reload()
    page.wait_for_selector("#live[data-drawn-milliseconds]")
    page.screenshot(path=PICTURES / "page-run-on-a-phone.png")
    context.close()


def _add_schedule(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("weekly")
    page.get_by_label("Workload").select_option("quick-soak")
    page.get_by_label("Where").fill("/mnt/test")
    page.get_by_label("Cron expression").fill("0 18 * * fri")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Turn weekly off").wait_for()


def _check_a_start(page: Page, target: Path) -> None:
    target.mkdir()
    page.goto("/start")
    page.get_by_label("Workload").select_option("quick-soak")
    page.get_by_label("Where").fill(str(target))
    page.get_by_role("button", name="Check").click()
    page.get_by_text("The safety gate has no objection").wait_for()


def _save(page: Page, name: str) -> None:
    """Save a picture of the whole page, without the empty window below it."""
    page.locator("body").screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
