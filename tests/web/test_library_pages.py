"""Labels, notes, pins, deletion and another start of a run by its pages, in a real browser against a real service."""

import re

import pytest
from playwright.sync_api import Page, expect
from testkit.service import Service
from tests.web.conftest import log_in, start_run, steady, wait_until_finished

QUICK = {"time": "virtual"}


@pytest.fixture
def over(service: Service) -> str:
    """A run that is over, of a stored workload."""
    workload = steady("kept", "5m", "10s", **QUICK)
    service.client.put("/api/v1/workloads/kept", json=workload).raise_for_status()
    order = {"workload": "kept", "target": {"kind": "synthetic", "name": "kept"}, "durations": {"soak": "4m"}}
    run: str = service.client.post("/api/v1/runs", json=order).raise_for_status().json()["id"]
    wait_until_finished(service, run)
    return run


def open_dialog(page: Page, name: str) -> None:
    expect(page.locator("#live[data-ready]")).to_be_attached()
    page.get_by_role("button", name=name).click()


def test_a_run_is_labelled_pinned_found_and_deleted_on_its_pages(page: Page, service: Service, over: str) -> None:
    wait_until_finished(service, start_run(service, steady("without-labels", "1m", "10s", **QUICK)))
    log_in(page, service, f"/runs/{over}")
    open_dialog(page, "Labels and note…")
    page.locator("#annotate-dialog").get_by_role("button", name="Leave it").click()
    expect(page.locator("#annotate-dialog")).to_be_hidden()
    open_dialog(page, "Labels and note…")
    page.get_by_label("Labels, one on each line").fill("release=26.1\n\ndrive=A & <b>")
    page.get_by_role("textbox", name="Note").fill("new firmware\nafter a purge")
    page.get_by_label("pin it").check()
    page.get_by_role("button", name="Keep").click()
    expect(page).to_have_url(re.compile(rf"/runs/{over}$"))
    expect(page.locator("#labels")).to_have_text(re.compile(r"pinned\s+drive=A & <b>\s+release=26.1"))
    # Its lines are broken by the style sheet, which may come after the text.
    page.wait_for_load_state()
    assert page.locator("#note").inner_text() == "new firmware\nafter a purge"
    page.get_by_role("link", name="drive=A & <b>").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_label("Label")).to_have_value("drive=A & <b>")
    expect(page.locator(f"#row-{over}")).to_contain_text("pinned")

    page.goto(f"/runs/{over}")
    open_dialog(page, "Delete…")
    expect(page.locator("#delete-dialog")).to_contain_text("It is pinned, and stays until it is not.")
    expect(page.get_by_role("button", name="Delete the run")).to_have_count(0)
    page.goto(f"/runs/{over}")
    open_dialog(page, "Labels and note…")
    page.get_by_label("Labels, one on each line").fill("release=26.2")
    page.get_by_label("pin it").uncheck()
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("#labels")).to_have_text(re.compile(r"^\s*release=26.2\s*$"))
    open_dialog(page, "Delete…")
    page.get_by_role("button", name="Delete the run").click()
    expect(page).to_have_url(re.compile(r"/runs$"))
    expect(page.locator(f"#row-{over}")).to_have_count(0)
    assert page.complaints == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("bad", "'bad' is not a label; write name=value"),
        ("release=1\nrelease=2", "'release' is given twice; give it once"),
        ("release=1.0, kernel=6.1", "holds more than one label; write each on a line of its own"),
    ],
)
def test_a_fault_in_the_form_leaves_what_was_typed(
    page: Page, service: Service, over: str, labels: str, said: str
) -> None:
    log_in(page, service, f"/runs/{over}")
    open_dialog(page, "Labels and note…")
    page.get_by_label("Labels, one on each line").fill(labels)
    page.get_by_role("textbox", name="Note").fill("a long note\nof two lines")
    page.get_by_label("pin it").check()
    page.get_by_role("button", name="Keep").click()
    dialog = page.locator("#annotate-dialog")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("alert")).to_contain_text(said)
    expect(page.get_by_role("textbox", name="Note")).to_have_value("a long note\nof two lines")
    expect(page.get_by_label("pin it")).to_be_checked()
    page.get_by_label("pin it").uncheck()
    page.get_by_label("Labels, one on each line").fill("release=1")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("#labels")).to_have_text(re.compile(r"^\s*release=1\s*$"))
    page.wait_for_load_state()
    assert page.locator("#note").inner_text() == "a long note\nof two lines"


def test_a_run_whose_workload_was_saved_since_is_started_again(page: Page, service: Service) -> None:
    workload = steady("later", "1m", "10s", **QUICK)
    run = start_run(service, workload)
    wait_until_finished(service, run)
    log_in(page, service, f"/runs/{run}")
    expect(page.get_by_role("link", name="Run again")).to_have_count(0)
    expect(page.locator("main")).to_contain_text(f"Again: cliffwatch run again {run}")
    service.client.put("/api/v1/workloads/later", json=workload).raise_for_status()
    # The drive of a drill is gone.
    service.client.patch(f"/api/v1/runs/{run}", json={"labels": {"drill": "aging"}}).raise_for_status()
    page.reload()
    expect(page.locator("#labels")).to_contain_text("drill")
    expect(page.get_by_role("link", name="Run again")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("Again: cliffwatch drill --variant aging")
    # A label of the user's own is not a drill.
    service.client.patch(f"/api/v1/runs/{run}", json={"labels": {"drill": "failover"}}).raise_for_status()
    page.reload()
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_label("Workload")).to_have_value("later@1")


def test_concurrent_changes_survive_saving_the_annotation_dialog(page: Page, service: Service, over: str) -> None:
    before = {"labels": {"old": "1", "kept": "1"}, "note": "a\nb"}
    service.client.patch(f"/api/v1/runs/{over}", json=before).raise_for_status()
    log_in(page, service, f"/runs/{over}")
    open_dialog(page, "Labels and note…")
    meanwhile = {"labels": {"new": "1", "kept": "2"}, "pinned": True, "note": "theirs"}
    service.client.patch(f"/api/v1/runs/{over}", json=meanwhile).raise_for_status()
    page.get_by_label("Labels, one on each line").fill("kept=1\nmine=1")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("#labels")).to_have_text(re.compile(r"pinned\s+kept=2\s+mine=1\s+new=1"))
    expect(page.locator("#note")).to_have_text("theirs")
    # The other tests' runs are of the same workload, and compared with a pinned one.
    service.client.patch(f"/api/v1/runs/{over}", json={"pinned": False}).raise_for_status()


def test_a_run_is_started_again_as_it_was(page: Page, service: Service, over: str) -> None:
    service.client.patch(f"/api/v1/runs/{over}", json={"labels": {"release": "26.1"}}).raise_for_status()
    log_in(page, service, f"/runs/{over}")
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_label("Workload")).to_have_value("kept@1")
    expect(page.get_by_label("Where")).to_have_value("kept")
    # Without a click: it is not to be overlooked that they differ from the workload's.
    expect(page.get_by_label("Soak")).to_have_value("4m")
    expect(page.get_by_label("Soak")).to_be_visible()
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Start the run").click()
    expect(page).to_have_url(re.compile(r"/runs/kept-"))
    again = page.url.rpartition("/")[2]
    assert again != over
    asked = [service.client.get(f"/api/v1/runs/{run}/request").json() for run in (over, again)]
    assert asked[0] == asked[1]
    assert asked[0]["durations"]["soak"] == "4m"


def test_a_run_that_goes_on_has_no_deletion_and_what_the_form_cannot_hold_is_said(page: Page, service: Service) -> None:
    run = start_run(service, steady("goes-on", "5m"))
    log_in(page, service, f"/runs/{run}")
    expect(page.get_by_role("button", name="Delete…")).to_have_count(0)
    expect(page.get_by_role("link", name="Run again")).to_have_count(0)
    page.goto(f"/start?again={run}")
    expect(page.locator("body")).to_contain_text(f"cliffwatch run again {run}")


def test_two_runs_are_compared(page: Page, service: Service, over: str) -> None:
    order = {"workload": "kept", "target": {"kind": "synthetic", "name": "kept"}}
    longer: str = service.client.post("/api/v1/runs", json=order).raise_for_status().json()["id"]
    wait_until_finished(service, longer)
    log_in(page, service, f"/runs/{longer}")
    page.get_by_role("link", name="Differences").click()
    expect(page.get_by_label("Other run")).to_have_value(over)
    row = page.get_by_role("row").filter(has_text="phases.soak")
    expect(row).to_contain_text(re.compile(r"5m\s*4m"))
    expect(page.get_by_role("table", name="Result")).to_contain_text("pass")
    expect(page.get_by_role("table", name="Environment")).to_have_count(0)
    service.client.patch(f"/api/v1/runs/{longer}", json={"pinned": True}).raise_for_status()
    page.goto(f"/runs/{over}/differences")
    expect(page.get_by_label("Other run")).to_have_value(longer)
    page.get_by_label("Other run").fill("none-of-this-name")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("body")).to_contain_text("There is no run none-of-this-name")


def test_a_first_run_has_none_to_be_compared_with(page: Page, service: Service) -> None:
    run = start_run(service, steady("the-first", "1m", "10s", **QUICK))
    log_in(page, service, f"/runs/{run}/differences")
    expect(page.locator("body")).to_contain_text("There is no other run of this workload")
