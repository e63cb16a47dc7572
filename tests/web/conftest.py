"""The pages in a real browser: the service as a process of its own, and the distribution's Chromium."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers import PATIENCE_MILLISECONDS, chromium
from testkit.service import Service

from cliffwatch.model.workload import BUILT_IN_WORKLOADS


# One process can have one at a time, and other directories want theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    assert BUILT_IN_WORKLOADS.is_dir()
    with Service(tmp_path_factory.mktemp("web") / "state") as service:
        yield service


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    """A fresh browser profile at the service; what it complains of fails the test."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{service.port}", viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = context.new_page()
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.complaints = complaints  # type: ignore[attr-defined]
    yield page
    context.close()


def token_of(service: Service) -> str:
    return (service.state_directory / "token").read_text().strip()


def log_in(page: Page, service: Service, after: str = "/runs") -> None:
    page.goto(after)
    page.get_by_label("Token").fill(token_of(service))
    page.get_by_role("button", name="Log in").click()


def steady(name: str, soak: str, window: str = "200ms", **load: object) -> dict[str, object]:
    """A workload without a drive, in real time unless `load` says otherwise."""
    return {
        "version": 1,
        "name": name,
        "engine": "synthetic",
        "window": window,
        "phases": {"baseline": "2s", "soak": soak},
        "load": load,
    }


def start_run(service: Service, workload: dict[str, object]) -> str:
    order = {"workload": workload, "target": {"kind": "synthetic", "name": workload["name"]}}
    answer = service.client.post("/api/v1/runs", json=order)
    answer.raise_for_status()
    run_id: str = answer.json()["id"]
    return run_id


def wait_until_finished(service: Service, run_id: str) -> None:
    """Follows the run's own stream, which ends with the run."""
    with service.client.stream("GET", f"/api/v1/runs/{run_id}/live", timeout=120) as stream:
        for _ in stream.iter_lines():
            pass
