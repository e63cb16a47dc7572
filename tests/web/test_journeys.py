"""What people do with the pages, from logging in to the report, in a real browser against a real service."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect
from testkit.service import Service
from tests.api.notifications import alert, notification
from tests.web.conftest import log_in, start_run, steady, token_of, wait_until_finished

from cliffwatch.journal import Event, EventLog, EventType, JournalReader


def complaints(page: Page) -> list[str]:
    found: list[str] = page.complaints  # type: ignore[attr-defined]
    return found


def test_a_wrong_token_is_refused_and_the_right_one_leads_to_the_page_that_was_asked_for(
    page: Page, service: Service
) -> None:
    page.goto("/schedules")
    page.get_by_label("Token").fill("cw_00000000_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown, or it was revoked")
    page.get_by_label("Token").fill(token_of(service))
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/schedules$"))
    assert token_of(service) not in page.content()
    # The refusal is a status that the browser logs; nothing else is.
    assert all("401" in text for text in complaints(page))


def test_a_link_logs_in_once_and_leads_to_its_page(page: Page, service: Service) -> None:
    for wanted, reached in (("/schedules", "/schedules"), ("//elsewhere.example", "/runs")):
        made = service.client.post("/api/v1/login-links", json={"next": wanted}).raise_for_status().json()["path"]
        assert token_of(service) not in made
        page.goto(made)
        expect(page).to_have_url(re.compile(f"{reached}$"))
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
    assert complaints(page) == []
    page.get_by_role("button", name="Log out").click()
    page.goto(made)
    expect(page.get_by_role("alert")).to_contain_text("This link was used, or is older than ten minutes")


def test_choosing_a_workload_says_what_it_does_and_how_long_it_lasts(page: Page, service: Service) -> None:
    log_in(page, service, "/start")
    said = page.locator("[data-of-workload]:visible")
    expect(said).to_have_count(0)
    page.get_by_label("Workload").select_option("observe-etcd")
    expect(said).to_have_text("an etcd cluster that others load, by its /metrics; baseline 1h, soak 35h")
    expect(page.get_by_label("Target")).to_have_value("observed")
    page.goto("/schedules")
    page.get_by_label("Workload").select_option("observe-etcd")
    expect(said).to_have_text("an etcd cluster that others load, by its /metrics; baseline 1h, soak 35h")
    page.goto("/start?workload=observe-tikv")
    expect(said).to_contain_text("a TiKV cluster")
    expect(page.get_by_label("Target")).to_have_value("observed")


@pytest.mark.gate(why="smoke of Chromium, and of a run from its request to its report")
def test_a_run_is_checked_started_watched_and_stopped(page: Page, service: Service) -> None:
    put = service.client.put("/api/v1/workloads/walked-through", json=steady("walked-through", "5m"))
    put.raise_for_status()
    log_in(page, service, "/start")
    page.get_by_label("Workload").select_option("walked-through")
    page.get_by_label("Where").fill("nowhere")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("The safety gate has no objection.")).to_be_visible()
    expect(page.locator("#answer")).to_contain_text("if it starts now")
    # What writes nothing has no place that it writes to, and bypasses no page cache.
    assert {"writes to", "page cache"}.isdisjoint(page.locator("#answer dt").all_inner_texts())
    assert service.client.get("/api/v1/runs", params={"workload": "walked-through"}).json()["items"] == []
    page.get_by_role("button", name="Start the run").click()
    expect(page).to_have_url(re.compile(r"/runs/walked-through-"))
    expect(page.locator("#state")).to_contain_text("running")
    expect(page.locator("#tile-p99")).to_contain_text("ms")
    expect(page.locator("#latency-chart canvas")).to_be_visible()
    windows = int(page.locator("#tile-windows").inner_text())
    expect(page.locator("#tile-windows")).not_to_have_text(str(windows))
    page.get_by_role("button", name="Stop…").click()
    page.get_by_role("button", name="Let it run").click()
    expect(page.locator("#stop-dialog")).not_to_be_visible()
    page.get_by_role("button", name="Stop…").click()
    page.get_by_role("button", name="Stop the run").click()
    expect(page.locator("#verdict")).to_contain_text("stopped")
    page.get_by_role("link", name="Report").click()
    expect(page.locator(".badge")).to_contain_text("stopped")
    assert complaints(page) == []


def test_a_refusal_names_what_is_in_the_way_and_starts_nothing(page: Page, service: Service) -> None:
    log_in(page, service, "/start")
    page.get_by_label("Workload").select_option("sequential-log")
    page.get_by_label("Where").fill("/proc")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#answer").get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("button", name="Start the run")).to_have_count(0)
    page.get_by_label("Where").fill("relative")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#answer").get_by_role("alert")).to_contain_text("target")


def test_a_page_that_is_open_while_the_service_dies_catches_up_when_it_is_back(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("outlived", "5m"))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#state")).to_contain_text("running")
    expect(page.locator("#tile-p99")).to_contain_text("ms")
    service.kill()
    expect(page.locator("#lost")).to_be_visible()
    before = page.locator("#tile-windows").inner_text()
    service.start()
    expect(page.locator("#lost")).not_to_be_visible()
    expect(page.locator("#tile-windows")).not_to_have_text(before)
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    expect(page.locator("#verdict")).to_contain_text("stopped")
    drawn = page.evaluate("fetch(location.pathname + '/series').then((answer) => answer.json())")
    elapsed = drawn["columns"][drawn["names"].index("elapsed")]
    assert elapsed == sorted(elapsed)
    assert len(elapsed) == drawn["last_window"] + 1


def test_findings_are_on_the_page_of_a_run_that_fell_off_a_cliff(page: Page, service: Service) -> None:
    workload = steady("fallen", "3h", "10s", time="virtual", cliff_after="2h")
    run_id = start_run(service, workload)
    wait_until_finished(service, run_id)
    # The worker notes how a cliff that it raised goes on: what the note says last is the size that the page states.
    directory = service.state_directory / "runs" / run_id
    raised = next(event.event for event in JournalReader(directory).events() if event.event.type is EventType.FINDING)
    grown = {"kind": raised.name, **raised.detail, "summary": "The publish p99 rose 500×."}
    EventLog(directory).append(Event(raised.at + 60, EventType.NOTE, "finding_updated", grown))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#verdict")).to_contain_text("degraded")
    expect(page.locator("#findings li.finding").filter(has_text="500×")).to_have_count(1)
    # One entry of the list of events, which says when it was raised, and none of the update.
    expect(page.locator("#events li.finding")).to_have_text(re.compile("cliff of publish p99$"))
    expect(page.locator("#events li").filter(has_text=re.compile("500×|finding updated"))).to_have_count(0)
    expect(page.locator("#reasons li").first).to_contain_text("2:00:00")
    page.goto("/runs")
    row = page.get_by_role("row").filter(has_text=run_id)
    expect(row).to_contain_text("degraded")
    expect(row.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"p99 from .* ms to .* ms"))


def test_a_live_run_says_at_its_top_what_was_found_so_far(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("so-far", "5m"))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#state")).to_contain_text("running")
    expect(page.locator("#reasons li")).to_have_count(0)
    log = EventLog(service.state_directory / "runs" / run_id)
    key = {"kind": "cliff", "series": "publish.p99", "onset": time.time() - 60}
    log.append(Event(time.time(), EventType.FINDING, "cliff", {**key, "summary": "Cliff: publish p99 rose 30×."}))
    expect(page.locator("#reasons li")).to_have_text("Cliff: publish p99 rose 30×.")
    higher = {**key, "summary": "Cliff: publish p99 rose 40×."}
    log.append(Event(time.time(), EventType.NOTE, "finding_updated", higher))
    expect(page.locator("#reasons li")).to_have_text("Cliff: publish p99 rose 40×.")
    # An alert about the service itself is no news of this run.
    general = alert(None, "firing", fingerprint="ab13")
    service.client.post("/api/v1/alerts", json=notification(general)).raise_for_status()
    log.append(Event(time.time(), EventType.NOTE, "finding_ended", {**higher, "until": time.time()}))
    expect(page.locator("#reasons li")).to_have_count(0)
    expect(page.locator("#findings li")).to_have_count(1)
    service.client.post("/api/v1/alerts", json=notification(alert(None, "resolved", fingerprint="ab13")))
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()


def test_an_alert_shows_its_name_what_it_is_about_and_when_it_is_over(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("alerted", "5m"))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#state")).to_contain_text("running")
    expect(page.locator("#tile-p99")).to_contain_text("ms")
    for status, kind in (("firing", "alert"), ("resolved", "resolved")):
        reported = notification(alert(run_id, status), status=status)
        service.client.post("/api/v1/alerts", json=reported).raise_for_status()
        newest = page.locator("#findings li").first
        expect(newest.locator("b")).to_have_text(kind)
        expect(newest).to_contain_text("QueueFull: ")
        expect(newest).to_contain_text("97 % of it.")
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()


def test_schedules_are_added_turned_off_and_removed(page: Page, service: Service) -> None:
    log_in(page, service, "/schedules")
    page.get_by_label("Name").fill("weekly")
    workload = page.get_by_label("Workload")
    expect(workload.locator("option:checked")).to_have_text("choose one")
    workload.select_option(index=1)
    page.get_by_label("Where").fill("/tmp")
    page.get_by_label("Cron expression").fill("every friday")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Every").fill("24h")
    page.get_by_label("Cron expression").fill("0 18 * * fri")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("exactly one of: every, once at, cron expression")
    page.get_by_label("Every").fill("")
    page.get_by_role("button", name="Add").click()
    row = page.get_by_role("row").filter(has_text="weekly")
    expect(row).to_contain_text("18:00:00 UTC")
    row.get_by_role("button", name="Turn weekly off").click()
    expect(row).to_contain_text("off")
    page.on("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Remove weekly").click()
    expect(page.get_by_role("row").filter(has_text="weekly")).to_have_count(0)


@pytest.mark.parametrize(
    ("field", "filled", "shown"),
    [("Every", "24h", "every 24h"), ("or once at", "2099-12-24T18:00", "2099-12-24 18:00")],
)
def test_a_schedule_has_the_intervals_lengths_and_labels_of_the_command(
    page: Page, service: Service, field: str, filled: str, shown: str
) -> None:
    log_in(page, service, "/schedules")
    page.get_by_label("Name").fill("nightly")
    page.get_by_label("Workload").select_option("sequential-log")
    page.get_by_label("Where").fill("/mnt/test")
    page.get_by_label(field).fill(filled)
    page.get_by_text("Drives of other hosts, labels").click()
    page.get_by_label("Labels").fill("release=26.1")
    page.get_by_label("soak").fill("8h")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("row").filter(has_text="nightly")).to_contain_text(shown)
    (made,) = service.client.get("/api/v1/schedules").json()["items"]
    assert (made["labels"], made["durations"]["soak"]) == ({"release": "26.1"}, "8h")
    service.client.delete(f"/api/v1/schedules/{made['id']}").raise_for_status()


def test_brokers_are_soaked_by_the_clock_too(page: Page, service: Service) -> None:
    document = {"version": 1, "name": "to-brokers", "engine": "kafka", "phases": {"soak": "1m"}}
    document["load"] = {"producer": {"rate": 1}}
    service.client.put("/api/v1/workloads/to-brokers", json=document).raise_for_status()
    log_in(page, service, "/schedules")
    page.get_by_label("Name").fill("brokers")
    page.get_by_label("Workload").select_option("to-brokers")
    page.get_by_label("Target").select_option("broker")
    page.get_by_label("Where").fill("a:9092,b:9092")
    page.get_by_label("Cron expression").fill("0 18 * * fri")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("row").filter(has_text="brokers")).to_contain_text("broker:a:9092,b:9092")
    for schedule in service.client.get("/api/v1/schedules").json()["items"]:
        service.client.delete(f"/api/v1/schedules/{schedule['id']}").raise_for_status()


def test_a_page_that_is_not_there_says_so_once(page: Page, service: Service) -> None:
    log_in(page, service, "/runs")
    page.goto("/runs/absent")
    expect(page.get_by_role("heading")).to_have_text("Not found")
    expect(page.get_by_role("alert")).to_have_text("There is no run absent")


def test_a_reader_sees_and_cannot_change(page: Page, service: Service) -> None:
    made = service.client.post("/api/v1/tokens", json={"name": "reader", "scope": "read"}).json()
    run_id = start_run(service, steady("only-watched", "20s"))
    page.goto(f"/runs/{run_id}")
    page.get_by_label("Token").fill(made["token"])
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#state")).to_contain_text("running")
    expect(page.get_by_role("button", name="Stop…")).to_have_count(0)
    service.client.delete(f"/api/v1/tokens/{made['id']}").raise_for_status()
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("none", 303), (None, 303)])
def test_a_link_from_another_site_does_not_log_in(service: Service, site: str | None, status: int) -> None:
    made = service.client.post("/api/v1/login-links", json={"next": "/runs"}).raise_for_status().json()["path"]
    headers = {"Sec-Fetch-Site": site} if site else {}
    answer = httpx.get(f"{service.client.base_url}{made}", headers=headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (status, status == 303)
    # What was refused is not used up.
    assert httpx.get(f"{service.client.base_url}{made}").status_code == (303 if status == 403 else 401)


@pytest.fixture
def logged_in(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=str(service.client.base_url), trust_env=False, timeout=30) as client:
        client.post("/login", data={"token": token_of(service)})
        yield client


def test_forms_from_elsewhere_change_nothing(logged_in: httpx.Client, service: Service) -> None:
    run_id = start_run(service, steady("not-to-be-stopped", "30s"))
    word = re.search(r'name="form_word" value="([0-9a-f]{64})"', logged_in.get("/start").text)
    assert word is not None
    path = f"/runs/{run_id}/stop"
    assert logged_in.post(path).status_code == 403
    assert logged_in.post(path, data={"form_word": "0" * 64}).status_code == 403
    good = {"form_word": word[1]}
    assert logged_in.post(path, data=good, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert logged_in.post(path, data=good, headers={"Origin": "http://elsewhere.example"}).status_code == 403
    assert service.client.get(f"/api/v1/runs/{run_id}").json()["state"] in {"queued", "starting", "running"}
    assert logged_in.post(path, data=good).status_code == 303
    assert service.client.get(f"/api/v1/runs/{run_id}").json()["state"] in {"stopping", "reporting", "finished"}


def test_every_answer_carries_the_strict_policy_and_no_secret_leaves(logged_in: httpx.Client, service: Service) -> None:
    for path in ("/runs", "/start", "/schedules", "/drives", "/runs/none-such", "/login"):
        answer = logged_in.get(path)
        assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert token_of(service) not in answer.text
        assert "unsafe" not in answer.headers["content-security-policy"]
    cookie = httpx.post(f"{service.client.base_url}/login", data={"token": token_of(service)}).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie


@pytest.mark.parametrize(
    "after", ["//elsewhere.example/", "https://elsewhere.example/", "/\\elsewhere.example", "/login"]
)
def test_a_login_leads_nowhere_else(service: Service, after: str) -> None:
    answer = httpx.post(f"{service.client.base_url}/login", data={"token": token_of(service), "next": after})
    assert answer.headers["location"] == "/runs"


def test_a_worker_that_is_killed_is_reported_on_the_page(page: Page, service: Service) -> None:
    run_id = start_run(service, steady("bereft", "5m"))
    log_in(page, service, f"/runs/{run_id}")
    expect(page.locator("#tile-p99")).to_contain_text("ms")
    worker = json.loads((service.state_directory / "runs" / run_id / "worker.json").read_text())
    os.kill(worker["worker"]["pid"], signal.SIGKILL)
    expect(page.locator("#events")).to_contain_text("interrupted")
    expect(page.locator("#state")).to_contain_text("running")
    service.client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    expect(page.locator("#verdict")).to_contain_text("stopped")
