"""report.html of a run of more parts than are drawn: each of them is on the page."""

import re
from pathlib import Path

from testkit.recorded_runs import JournalPlan, make_journal
from tests.report.pages import page_of
from tests.report.several_targets import ordered_on

from cliffwatch.base.histogram import Histogram

NAMES = [f"nvme{number}n1" for number in range(20)]


def latency(_: int) -> dict[str, Histogram]:
    own = {f"{name}/publish": Histogram.from_values({(4 + n) * 1_000_000: 50}) for n, name in enumerate(NAMES)}
    return {"publish": Histogram.from_values({4_000_000: 1000})} | own


def named_in(page: str) -> list[str]:
    """Operations whose latencies are listed."""
    return re.findall(r"<summary>(\S+) <span>p99", page)


def test_parts_that_have_no_curve_are_listed_below_and_latencies_of_parts_apart(tmp_path: Path) -> None:
    page = page_of(ordered_on(make_journal(tmp_path, JournalPlan(windows=12, latency=latency)), NAMES))
    parts = page.partition('<h2 id="parts">')[2].partition("</section>")[0]
    drawn, _, more = parts.partition("<details>")
    assert [name for name in NAMES if re.search(rf">{name}<", drawn)] == NAMES[4:]
    assert [name for name in NAMES if re.search(rf">{name}<", more)] == NAMES[:4]
    latencies = page.partition('<h2 id="latency">')[2].partition("</section>")[0]
    of_run, _, by_part = latencies.partition("<summary>By part")
    assert named_in(of_run) == ["publish"]
    assert named_in(by_part) == [f"{name}/publish" for name in sorted(NAMES)]
