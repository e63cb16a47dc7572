"""Every metric that the stack's own exporters show is on a panel, directly or through a rule."""

import re
from typing import Any

import pytest
import yaml
from testkit.checkout import ROOT
from tests.dashboards.documents import PATHS, PanelQuery, load, panel_queries

from cliffwatch.base.resources import ALERTS_DIRECTORY

#: Sections of docs/metrics.md about what other projects or this one's rules show.
OF_OTHERS = {"Recorded by rules", "Other projects' metrics that rules use"}


def exposed() -> dict[str, str]:
    """Section by metric, from the page that other tests hold against the exporters."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for section in page.split("\n## ")[1:]:
        title = section.splitlines()[0]
        if title not in OF_OTHERS:
            found |= dict.fromkeys(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE), title)
    return found


def recorded() -> dict[str, set[str]]:
    """What each recorded series is made of, by its name."""
    made: dict[str, set[str]] = {}
    for path in sorted((ALERTS_DIRECTORY / "rules").glob("*.yaml")):
        document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        for rule in (rule for group in document["groups"] for rule in group["rules"]):
            if "record" in rule:
                made.setdefault(rule["record"], set()).update(PanelQuery(rule["record"], rule["expr"]).metrics())
    return made


def shown() -> set[str]:
    """What panels read, with what the rules make it of; parts of histograms by the histogram's name."""
    rules = recorded()
    waiting = [name for path in PATHS for query in panel_queries(load(path)) for name in query.metrics()]
    found: set[str] = set()
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += rules.get(name, ())
    return found | {re.sub(r"_(bucket|sum|count)$", "", name) for name in found}


@pytest.mark.parametrize("metric", exposed())
def test_every_metric_of_the_stacks_exporters_answers_a_question_on_a_panel(metric: str) -> None:
    assert metric in shown()


def test_the_page_was_read() -> None:
    sections = set(exposed().values())
    assert len(sections) == 4
    assert len(exposed()) > 70
    assert len(recorded()) > 8
