"""A page whose service fails inside: what is shown stays, and the page says that it is not up to date."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
from playwright.sync_api import Page, expect
from testkit.service import Service
from tests.web.conftest import log_in, start_run, steady

from cliffwatch.http.stream_places import STREAMS_OF_A_TOKEN_LIMIT

CHECK = "**/start"


@pytest.fixture(scope="module")
def run(service: Service) -> Iterator[str]:
    run_id = start_run(service, steady("looked-for", "5m"))
    service.wait_for(run_id, "running")
    yield run_id
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()


def _change(service: Service, *statements: str) -> None:
    with closing(sqlite3.connect(service.state_directory / "cliffwatch.sqlite3", timeout=30)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


@contextmanager
def _without_table(service: Service, name: str) -> Iterator[None]:
    """What asks the database for it fails, and the service answers 503."""
    _change(service, f"ALTER TABLE {name} RENAME TO {name}_elsewhere")
    try:
        yield
    finally:
        _change(service, f"ALTER TABLE {name}_elsewhere RENAME TO {name}")


@contextmanager
def _with_a_defect(page: Page) -> Iterator[None]:
    """The answer to an unforeseen error, which the service cannot be made to give."""
    problem = {
        "type": "urn:cliffwatch:problem:internal",
        "title": "The service failed to handle the request.",
        "status": 500,
    }
    page.route(CHECK, lambda route: route.fulfill(status=500, json=problem, content_type="application/problem+json"))
    try:
        yield
    finally:
        page.unroute(CHECK)


def test_an_open_list_stays_while_the_service_fails_and_says_so(page: Page, service: Service, run: str) -> None:
    log_in(page, service)
    row = page.locator(f"#row-{run}")
    expect(row).to_contain_text("running")
    with _without_table(service, "runs"):
        expect(page.locator("#lost")).to_contain_text("503")
        expect(page.locator("#lost")).to_contain_text("may be out of date")
        expect(row).to_contain_text("running")
        assert page.locator("#list").inner_text().count("{") == 0
    expect(page.locator("#lost")).not_to_be_visible()
    expect(row).to_contain_text("running")


def test_a_live_page_stays_while_the_service_fails_and_says_so(page: Page, service: Service, run: str) -> None:
    log_in(page, service, f"/runs/{run}")
    expect(page.locator("#tile-p99")).to_contain_text("ms")
    with _without_table(service, "runs"):
        expect(page.locator("#lost")).to_contain_text("503")
        expect(page.locator("#tile-p99")).to_contain_text("ms")
    expect(page.locator("#lost")).not_to_be_visible()


@pytest.mark.parametrize(("trouble", "status"), [("database", "503"), ("defect", "500")])
def test_a_check_that_fails_leaves_the_answer_before_it(
    page: Page, service: Service, trouble: str, status: str
) -> None:
    log_in(page, service, "/start")
    page.get_by_label("Workload").select_option(index=1)
    page.get_by_label("Where").fill("relative")
    check = page.get_by_role("button", name="Check")
    check.click()
    expect(page.locator("#answer").get_by_role("alert")).to_contain_text("target")
    with _without_table(service, "workloads") if trouble == "database" else _with_a_defect(page):
        check.click()
        expect(page.locator("#lost")).to_contain_text(status)
        expect(page.locator("#answer").get_by_role("alert")).to_contain_text("target")
    check.click()
    expect(page.locator("#lost")).not_to_be_visible()


def test_a_user_whose_token_is_revoked_is_led_to_the_login(page: Page, service: Service, run: str) -> None:
    made = service.client.post("/api/v1/tokens", json={"name": "brief", "scope": "read"}).json()
    page.goto(f"/runs/{run}")
    page.get_by_label("Token").fill(made["token"])
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#state")).to_contain_text("running")
    service.client.delete(f"/api/v1/tokens/{made['id']}").raise_for_status()
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_page_without_a_stream_says_why_and_goes_on_when_there_is_one(page: Page, service: Service, run: str) -> None:
    with ExitStack() as held:
        for _ in range(STREAMS_OF_A_TOKEN_LIMIT):
            stream = held.enter_context(service.client.stream("GET", f"/api/v1/runs/{run}/live"))
            assert stream.status_code == 200
        log_in(page, service, f"/runs/{run}")
        expect(page.locator("#lost")).to_contain_text("429: 32 live streams are open with this token")
        # All that needs no stream is asked for, and what was said stays.
        for _ in range(2):
            with page.expect_response(lambda answer: answer.url.endswith("/now")):
                pass
        expect(page.locator("#lost")).to_be_visible()
        expect(page.locator("#latency-chart canvas")).to_be_visible()
    with page.expect_response(lambda answer: "/live?" in answer.url and answer.status == 200):
        pass
    expect(page.locator("#lost")).to_be_hidden()
