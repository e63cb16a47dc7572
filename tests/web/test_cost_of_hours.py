"""36 hours cost the same at their end as at their beginning: a worker, the service that indexes its run, and a page.

In virtual time, where a second has some hundred windows. So what is compared is what a window costs, not a second.
"""

from dataclasses import dataclass, replace

import pytest
from playwright.sync_api import Page
from testkit.process_cost import ProcessCost, cost_of
from testkit.service import Service
from testkit.waiting import wait_until
from testkit.worker_runs import status
from tests.web.conftest import log_in, start_run

from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader
from cliffwatch.model.run_state import RunState

WINDOWS = 36 * 360
#: Until the first look, every path has been taken: detection has its baseline, the curve its full resolution.
LOOKS = (0.2, 0.4, 0.75, 0.95)
#: Of a window a page keeps a row of numbers, up to 40,000 of them, and what its charts make of these.
PAGE_BYTES_A_WINDOW = 400
WORKLOAD = {
    "version": 1,
    "name": "hours",
    "engine": "synthetic",
    "window": "10s",
    "phases": {"warm_up": "1h", "baseline": "1h", "soak": "34h"},
    "load": {"time": "virtual", "cliff_after": "12h"},
}


@dataclass(frozen=True, slots=True)
class Look:
    """What was taken up by now; of memory, the least since the look before.

    A process has some tenth more of it for a moment now and then. What it keeps it has at any time.
    """

    windows: int
    worker: ProcessCost
    service: ProcessCost
    page_bytes: int


@pytest.mark.timing(why="what a window costs the processor is compared")
@pytest.mark.timeout(900)
def test_a_window_costs_the_same_in_the_last_hours_as_in_the_first(service: Service, page: Page) -> None:
    run_id = start_run(service, WORKLOAD)
    directory = service.state_directory / "runs" / run_id
    log_in(page, service, f"/runs/{run_id}")
    page.wait_for_selector("#live[data-ready=true]")
    looks = [look(service, page, run_id, share) for share in LOOKS]
    early, late = looks[1], looks[3]
    for name in ("worker", "service"):
        of_early, of_late = getattr(early, name), getattr(late, name)
        assert of_late.memory_bytes < 1.1 * of_early.memory_bytes, name
        # Requests at the same time open connections to the database, five at most, of three files each. A file that was
        # left open for one window in a hundred would make seventy.
        assert of_late.open_files <= of_early.open_files + 15, name
        first, last = per_window(looks[0], looks[1], name), per_window(looks[2], looks[3], name)
        # What reads from the beginning each time takes 2.8 times as much.
        assert last[0] < 2 * first[0], f"CPU of the {name} for a window: {first[0]:.6f} s, then {last[0]:.6f} s"
        assert last[1] < 2 * first[1], f"bytes that the {name} reads for a window: {first[1]:.0f}, then {last[1]:.0f}"
    kept = (late.page_bytes - early.page_bytes) / (late.windows - early.windows)
    assert kept < PAGE_BYTES_A_WINDOW, f"the page keeps {kept:.0f} bytes of each window"
    wait_until(lambda: status(directory).state is RunState.FINISHED, "the run's end")


def look(service: Service, page: Page, run_id: str, share: float) -> Look:
    """Once so much of the run is measured."""
    directory = service.state_directory / "runs" / run_id
    heartbeat = wait_until(lambda: Heartbeat.read(directory), "a worker")
    costs: list[tuple[ProcessCost, ProcessCost]] = []

    def windows() -> int:
        # The browser's own events are handled only while it is waited for.
        page.wait_for_timeout(20)
        worker, own = cost_of(heartbeat.worker.pid), cost_of(service.pid)
        assert worker is not None, "the run was over before it was looked at"
        assert own is not None
        costs.append((worker, own))
        last = JournalReader(directory).last_window()
        return 0 if last is None else last.seq + 1

    count = wait_until(
        lambda: found if (found := windows()) >= share * WINDOWS else None, f"{share:.0%} of the windows"
    )
    worker, own = (
        replace(each[-1], memory_bytes=min(cost.memory_bytes for cost in each)) for each in zip(*costs, strict=True)
    )
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    page_bytes = int(page.evaluate("performance.memory.usedJSHeapSize"))
    session.detach()
    return Look(count, worker, own, page_bytes)


def per_window(before: Look, after: Look, name: str) -> tuple[float, float]:
    """CPU-seconds and bytes read."""
    of_before, of_after = getattr(before, name), getattr(after, name)
    windows = after.windows - before.windows
    cpu_seconds = of_after.cpu_seconds - of_before.cpu_seconds
    return cpu_seconds / windows, (of_after.read_bytes - of_before.read_bytes) / windows
