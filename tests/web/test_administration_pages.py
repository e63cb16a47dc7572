"""The pages of saved workloads, of tokens and of notification channels do what their commands do."""

import json

import httpx
from playwright.sync_api import Page, expect
from testkit.service import Service
from tests.web.conftest import log_in


def test_a_saved_workload_is_shown_and_started_from_its_page(page: Page, service: Service) -> None:
    log_in(page, service, "/workloads")
    row = page.get_by_role("row").filter(has_text="sequential-log")
    expect(row).to_contain_text("fio")
    expect(row).to_contain_text("A commit log")
    row.get_by_role("link", name="sequential-log").click()
    expect(page.locator("pre")).to_contain_text("preset: sequential-log")
    page.get_by_role("link", name="Start a run…").click()
    expect(page.get_by_label("Workload")).to_have_value("sequential-log")


def test_a_token_is_made_shown_once_and_revoked(page: Page, service: Service) -> None:
    log_in(page, service, "/tokens")
    page.get_by_label("Whose, or what for").fill("a / b")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("alert")).to_contain_text("name")
    page.get_by_label("Whose, or what for").fill("dashboards")
    page.get_by_label("Scope").select_option("read")
    page.get_by_role("button", name="Make it").click()
    token = page.locator("#made").inner_text()
    assert _status(service, token) == 200
    page.goto("/tokens")
    expect(page.locator("#made")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke the token of dashboards").click()
    expect(page.get_by_role("button", name="Revoke the token of dashboards")).to_have_count(0)
    assert _status(service, token) == 401


def test_the_last_admin_keeps_its_token(page: Page, service: Service) -> None:
    log_in(page, service, "/tokens")
    page.once("dialog", lambda dialog: dialog.accept())
    page.complaints.clear()  # type: ignore[attr-defined]
    page.get_by_role("button", name="Revoke the token of admin").click()
    expect(page.get_by_role("alert")).to_contain_text("last token of scope admin")


def test_tokens_are_for_admins(page: Page, service: Service) -> None:
    made = service.client.post("/api/v1/tokens", json={"name": "operator", "scope": "operate"}).json()
    page.goto("/tokens")
    page.get_by_label("Token").fill(made["token"])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("needs a token of scope admin")
    page.goto("/notifications")
    expect(page.get_by_role("link", name="tokens")).to_have_count(0)


def test_a_channel_is_listed_without_its_secret_and_tried(page: Page, service: Service) -> None:
    log_in(page, service, "/notifications")
    expect(page.locator("main")).to_contain_text("No channels yet")
    secret = service.state_directory / "slack-url"
    secret.write_text("https://127.0.0.1:9/services/T0/B0/secret\n")
    channel = {"name": "slack", "kind": "slack", "url_file": str(secret), "occasions": ["cliff", "finished"]}
    (service.state_directory / "notifications.json").write_text(json.dumps({"version": 1, "channels": [channel]}))
    page.reload()
    row = page.get_by_role("row").filter(has_text="slack")
    expect(row).to_contain_text("cliff, finished")
    assert "B0/secret" not in page.content()
    # Without its Alertmanager; tests/alerts/test_notifications.py has one.
    row.get_by_role("button", name="Send a test to slack").click()
    expect(page.get_by_role("alert")).to_contain_text("Alertmanager does not answer")


def _status(service: Service, token: str) -> int:
    url = f"http://127.0.0.1:{service.port}/api/v1/runs"
    return httpx.get(url, headers={"Authorization": f"Bearer {token}"}).status_code
