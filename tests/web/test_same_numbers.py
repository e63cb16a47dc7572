"""A value of a run is the same number wherever it is shown: pages, report, command line, messages, JUnit, metrics.

Each value is worked out from report.json and written as the program writes it. Every occurrence in a view, found by the
words beside it, has to be that text, and each view that is named for a value has to show it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers import PATIENCE_MILLISECONDS
from testkit.ports import free_port
from tests.cli.machine import Machine, end

from cliffwatch.base.units import (
    format_byte_rate,
    format_count,
    format_latency,
    format_rate,
    format_ratio,
    format_share,
)

RUN = "falls"
LOAD = {"time": "virtual", "cliff_after": "3h", "cliff_ratio": 40}
#: Views that have the sentence of the finding.
TEXTS = ("run page", "report", "run show", "markdown", "junit", "metrics")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the run: its text, the words beside it in the views, and the views that have to show it."""

    text: str
    beside: str
    shown_in: tuple[str, ...]

    def found_in(self, text: str) -> set[str]:
        return {match[1].strip() for match in re.finditer(self.beside, text)}


def values_of(report: dict[str, Any]) -> dict[str, Value]:
    """The values by name. `beside` is a pattern whose one group is the number as a view has it."""
    (finding,) = report["findings"]
    load = report["throughput"]["load"]
    whole = report["latency"]["publish"]["load"]
    onset = f"{finding['onset_seconds'] / 3600:.0f}:00:00"
    return {
        "size of the cliff": Value(
            format_ratio(finding["ratio"]),
            r"(?:p99 rose |[Cc]liff |\()([\d.,]+×)(?=;|\s|$|\)\t)",
            ("list page", *TEXTS),
        ),
        "onset": Value(onset, r"[Cc]liff at (\d+:\d\d:\d\d)", TEXTS),
        "level before the cliff": Value(
            format_latency(finding["baseline"]),
            r"\npublish p99\t([\d.]+ \w+)\t[\d.]+ \w+ \([\d.]+×\)",
            ("report",),
        ),
        "confidence": Value(
            format_share(finding["confidence"]), r"confidence that it changed\n([\d.]+ %)", ("report",)
        ),
        "p99 of the load": Value(
            format_latency(whole["p99_seconds"]),
            r"(?:publish p99\n|publish p99 |p50 [\d.]+ \w+ +p99 )([\d.]+ \w+)(?=\n(?:whole load|p99\.9)|, max|  max)",
            ("run page", "report", "run show"),
        ),
        "p99 in lists": Value(
            format_latency(whole["p99_seconds"]), r"▲ degraded\s+([\d.]+ \w+)\nwhole load", ("list page",)
        ),
        "longest operation": Value(
            format_latency(whole["max_seconds"]), r"\bmax(?: |\n)([\d.]+ (?:s|ms|µs))", ("report", "run show")
        ),
        "operations": Value(
            format_count(whole["count"]), r"\nof ([\d.,]+ (?:million)?)(?: operations)?\n", ("report",)
        ),
        "bytes": Value(
            format_byte_rate(load["bytes_per_second"]),
            r"([\d.]+ [KMGT]iB/s)",
            ("list page", "run page", "report", "run show"),
        ),
        "rate": Value(
            format_rate(load["operations_per_second"]),
            r"(?<![\d,.])([\d.,]+ /s)",
            ("list page", "run page", "report", "run show"),
        ),
        "windows": Value(
            format_count(report["coverage"]["windows"]),
            r"(?:\nwindows\n|, in )([\d,]+)(?= windows|\n)",
            ("run page", "report"),
        ),
    }


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A service with one run, which fell off a cliff."""
    machine = Machine(tmp_path_factory.mktemp("numbers"), free_port())
    try:
        assert machine.run("up").returncode == 0
        path = machine.directory / "falls.yaml"
        phases = {"warm_up": "10m", "baseline": "1h", "soak": "5h"}
        path.write_text(
            json.dumps({"version": 1, "name": "falls", "engine": "synthetic", "phases": phases, "load": LOAD})
        )
        done = machine.run(
            *("run", "start", str(path), "--target", "synthetic:one", "--id", RUN, "--wait", "--junit", "junit.xml")
        )
        assert done.returncode == 1, done.stderr
        yield machine
    finally:
        end(machine)


@pytest.fixture(scope="module")
def views(machine: Machine, browser: Browser) -> dict[str, str]:
    """The text of every place that shows the run, by its name."""
    base = f"http://127.0.0.1:{machine.port}"
    context = browser.new_context(base_url=base)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = context.new_page()
    page.goto(machine.run("open").stdout.strip())
    page.wait_for_url("**/runs")
    shown = {
        "list page": seen(page, "/runs"),
        "run page": seen(page, f"/runs/{RUN}"),
        "report": seen(page, f"/runs/{RUN}/report"),
        "finding": machine.run("--output", "json", "run", "show", RUN).stdout,
        "run show": machine.run("run", "show", RUN).stdout,
        "markdown": machine.run("run", "show", RUN, "--format", "markdown").stdout,
        "junit": (machine.directory / "junit.xml").read_text(),
        "metrics": httpx.get(f"{base}/metrics").text,
    }
    context.close()
    return shown


def seen(page: Page, path: str) -> str:
    """The text of a page with all that is folded, once its live figures have come."""
    page.goto(path)
    page.get_by_text("whole load", exact=True).first.wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    return re.sub(r"\s*\n\s*", "\n", page.locator("body").inner_text())


def test_a_value_is_the_same_number_in_every_view(machine: Machine, views: dict[str, str]) -> None:
    report = json.loads((machine.state / "runs" / RUN / "report.json").read_text())
    wrong = []
    for name, value in values_of(report).items():
        found = {view: value.found_in(text) for view, text in views.items()}
        wrong += [
            f"{name} is {value.text}, not {texts - {value.text}}, in: {view}"
            for view, texts in found.items()
            if texts - {value.text}
        ]
        wrong += [f"{name} is missing in: {view}" for view in value.shown_in if not found[view]]
    assert wrong == []


def test_another_number_in_a_view_is_seen(machine: Machine, views: dict[str, str]) -> None:
    report = json.loads((machine.state / "runs" / RUN / "report.json").read_text())
    for value in values_of(report).values():
        view = views[value.shown_in[0]]
        (number,) = value.found_in(view)
        assert value.found_in(view.replace(number, "7" + number)) == {"7" + number}
