"""Parts of a run with several targets, on its page and in its report."""

from playwright.sync_api import Page, expect
from testkit.browsers import CUT_OFF
from testkit.service import Service
from tests.web.conftest import log_in, steady, wait_until_finished


def begin(service: Service, workload: dict[str, object]) -> str:
    target, other = ({"kind": "synthetic", "name": f"{workload['name']}-{name}"} for name in ("a", "b"))
    order = {"workload": workload, "target": target, "more_targets": [other], "part_names": ["left", None]}
    answer = service.client.post("/api/v1/runs", json=order)
    answer.raise_for_status()
    return str(answer.json()["id"])


def test_each_part_has_its_p99_during_the_run(page: Page, service: Service) -> None:
    run = begin(service, steady("beside", "5m"))
    log_in(page, service, f"/runs/{run}")
    tiles = page.locator("#parts > div")
    expect(tiles).to_have_count(2)
    expect(tiles.first).to_contain_text("left")
    expect(tiles.first).to_contain_text("p99")
    expect(tiles.first).to_contain_text("synthetic:beside-a")
    expect(tiles.nth(1)).to_contain_text("beside-b")
    service.client.post(f"/api/v1/runs/{run}/stop").raise_for_status()


def test_parts_of_a_run_that_is_over_are_those_of_its_report(page: Page, service: Service) -> None:
    run = begin(service, steady("over", "2h", "10s", time="virtual", cliff_after="1h"))
    wait_until_finished(service, run)
    log_in(page, service, f"/runs/{run}")
    expect(page.locator("#parts > div")).to_have_count(2)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(CUT_OFF) == []
    page.goto(f"/runs/{run}/report")
    rows = page.locator("section[aria-labelledby=parts] tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="left")).to_contain_text("synthetic:over-a")
    assert page.evaluate(CUT_OFF) == []


def test_a_run_with_one_target_shows_no_parts(page: Page, service: Service) -> None:
    run = str(
        service.client.post(
            "/api/v1/runs",
            json={
                "workload": steady("alone", "2h", "10s", time="virtual"),
                "target": {"kind": "synthetic", "name": "alone"},
            },
        ).json()["id"]
    )
    wait_until_finished(service, run)
    log_in(page, service, f"/runs/{run}")
    expect(page.locator("#live")).to_have_attribute("data-ready", "true")
    expect(page.locator("#parts-section")).to_be_hidden()
