"""The committed dashboards are what the builder makes, and every panel can be read by who did not build it."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboards.builder.__main__ import documents, text
from tests.dashboards.documents import DIRECTORY, PATHS, PROVISIONING, ROOT, load, panels, queries, unit

from cliffwatch.stack.configuration import ALERTS_DIRECTORY

#: Kinds of panel that Grafana 9.3 has, with these options.
PANEL_TYPES = {"timeseries", "stat", "heatmap", "state-timeline"}
#: What may be looked up in the environment of Grafana.
ENVIRONMENT = {
    "CLIFFWATCH_PROMETHEUS_URL",
    "CLIFFWATCH_ALERTMANAGER_URL",
    "CLIFFWATCH_DASHBOARDS_DIRECTORY",
}


def provisioned(path: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((PROVISIONING / path).read_text(encoding="utf-8"))
    assert document["apiVersion"] == 1
    return document


def test_the_committed_files_are_what_the_builder_makes() -> None:
    made = {name: text(document) for name, document in documents().items()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in PATHS}
    assert committed == made, "write them anew with `make dashboards`"


def test_each_dashboard_has_an_identity_that_links_can_rely_on() -> None:
    uids = Counter(load(path)["uid"] for path in PATHS)
    assert set(uids.values()) == {1}
    assert "cliffwatch-run" in uids
    for path in PATHS:
        document = load(path)
        assert "id" not in document, "Grafana gives ids; a file must not"
        assert max(Counter(panel["id"] for panel in document["panels"]).values()) == 1


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_panel_says_what_it_means_in_which_unit(path: Path) -> None:
    for panel in panels(load(path)):
        title = panel["title"]
        assert len(panel["description"]) > 40, title
        assert "\n" not in panel["description"], title
        assert unit(panel), title
        assert panel["type"] in PANEL_TYPES, title
        assert panel["targets"], title
        for target in panel["targets"]:
            assert target["legendFormat"], title


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_panels_lie_side_by_side(path: Path) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in load(path)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_is_asked_goes_to_the_chosen_prometheus(path: Path) -> None:
    document = load(path)
    asked = [
        *(target for panel in panels(document) for target in panel["targets"]),
        *panels(document),
        *document["annotations"]["list"],
        *(variable for variable in document["templating"]["list"] if variable["type"] == "query"),
    ]
    assert {(each["datasource"]["type"], each["datasource"]["uid"]) for each in asked} == {
        ("prometheus", "${datasource}")
    }


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_projects_own_metrics_are_documented(path: Path) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    asked = {name for query in queries(load(path)) for name in query.metrics()}
    own = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked if "cliffwatch" in name}
    own |= {name for name in asked if ":" in name}
    assert len(own) > 20
    assert {name for name in own if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_run_is_known_by_its_own_series_only(path: Path) -> None:
    """Series of devices carry no run_id: a query that asks for both would be empty for ever."""
    for query in queries(load(path)):
        for name, selector in re.findall(r"([\w:]+)\{([^}]*)\}", query.expression):
            assert name.startswith(("cliffwatch_", "ALERTS", "run")) or "run_id" not in selector, query.where


def test_the_data_source_has_the_uid_that_dashboards_choose_and_the_scrape_interval_of_the_stack() -> None:
    sources = {source["uid"]: source for source in provisioned("datasources/cliffwatch.yaml")["datasources"]}
    assert len(sources) == 2
    for path in PATHS:
        (chosen,) = (each for each in load(path)["templating"]["list"] if each["type"] == "datasource")
        assert sources[chosen["current"]["value"]]["type"] == chosen["query"] == "prometheus"
    prometheus = yaml.safe_load((ALERTS_DIRECTORY / "prometheus" / "prometheus.yaml").read_text(encoding="utf-8"))
    stated = sources["cliffwatch-prometheus"]["jsonData"]["timeInterval"]
    assert stated == prometheus["global"]["scrape_interval"]


def test_grafana_keeps_the_dashboards_as_they_are_committed() -> None:
    (provider,) = provisioned("dashboards/cliffwatch.yaml")["providers"]
    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
    assert provider["options"]["path"] == "${CLIFFWATCH_DASHBOARDS_DIRECTORY}"
    assert list(DIRECTORY.glob("*")) == PATHS, "Grafana reads every file in the directory"


def test_provisioning_looks_up_only_what_is_documented() -> None:
    looked_up = {
        name
        for path in PROVISIONING.rglob("*.yaml")
        for name in re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8"))
    }
    assert looked_up == ENVIRONMENT
    page = (ROOT / "docs" / "dashboards.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in ENVIRONMENT)
    assert all(f"**{panel['title']}**" in page for path in PATHS for panel in panels(load(path)))
