"""The committed dashboards are what the builder makes, and every panel can be read by who did not build it."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboards.builder.__main__ import documents, text
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from testkit.checkout import ROOT
from tests.dashboards.documents import DIRECTORY, PATHS, PROVISIONING, load, panels, queries, unit

from cliffwatch.base.resources import ALERTS_DIRECTORY

#: Kinds of panel that Grafana 9.3 has, with these options.
PANEL_TYPES = {"timeseries", "stat", "heatmap", "state-timeline", "table"}
TRANSFORMATIONS = {"merge", "organize"}
#: Rows of a screen: one is 30 of Grafana's units and a bit more.
SCREENS, SCREEN = 3, 32
#: What Grafana reads of a provisioned provider and of a data source, and ignores what is spelled otherwise:
#: pkg/services/provisioning/{dashboards,datasources}/types.go.
PROVIDER_FIELDS = {
    *("name", "orgId", "folder", "folderUid", "type", "editable", "disableDeletion", "allowUiUpdates"),
    *("updateIntervalSeconds", "options"),
}
SOURCE_FIELDS = {
    *("name", "orgId", "uid", "type", "access", "url", "user", "database", "basicAuth", "basicAuthUser"),
    *("withCredentials", "isDefault", "correlations", "jsonData", "secureJsonData", "editable", "version"),
}
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
    assert uids == Counter(f"cliffwatch-{name}" for name in ("runs", "run", "layers", "drive", "compare", "watcher"))
    assert len({load(path)["title"] for path in PATHS}) == len(PATHS)
    for path in PATHS:
        document = load(path)
        assert "id" not in document, "Grafana gives ids; a file must not"
        assert max(Counter(panel["id"] for panel in document["panels"]).values()) == 1


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_panel_says_what_it_means_in_which_unit(path: Path) -> None:
    for panel in panels(load(path)):
        title = panel["title"]
        meaning, _, bad = panel["description"].partition("Bad: ")
        assert len(meaning) > 15, title
        bad, _, empty = bad.partition(" Empty: ")
        assert len(bad) > 2, f"{title} does not say what bad looks like"
        assert len(empty) > 3, f"{title} does not say why it would be empty"
        assert panel["fieldConfig"]["defaults"]["noValue"] == empty.removesuffix("."), title
        assert "\n" not in panel["description"], title
        assert unit(panel), title
        assert panel["type"] in PANEL_TYPES, title
        assert {each["id"] for each in panel.get("transformations", [])} <= TRANSFORMATIONS, title
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
def test_every_dashboard_query_uses_the_chosen_prometheus(path: Path) -> None:
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
    assert len(own) > 10
    assert {name for name in own if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_run_is_known_by_its_own_series_only(path: Path) -> None:
    """Series of devices carry no run_id: a query that asks for both would be empty for ever."""
    for query in queries(load(path)):
        for name, selector in re.findall(r"([\w:]+)\{([^}]*)\}", query.expression):
            of_a_run = name.startswith(("cliffwatch_", "ALERTS", "run")) and not name.startswith("cliffwatch_drive_")
            assert of_a_run or "run_id" not in selector, query.where


def test_the_data_source_has_the_uid_that_dashboards_choose_and_the_scrape_interval_of_the_stack() -> None:
    sources = {source["uid"]: source for source in provisioned("datasources/cliffwatch.yaml")["datasources"]}
    assert len(sources) == 2
    for path in PATHS:
        (chosen,) = (each for each in load(path)["templating"]["list"] if each["type"] == "datasource")
        assert sources[chosen["current"]["value"]]["type"] == chosen["query"] == "prometheus"
    prometheus = yaml.safe_load((ALERTS_DIRECTORY / "prometheus" / "prometheus.yaml").read_text(encoding="utf-8"))
    stated = sources["cliffwatch-prometheus"]["jsonData"]["timeInterval"]
    assert stated == prometheus["global"]["scrape_interval"]


def test_grafana_knows_each_field_of_what_is_provisioned() -> None:
    (provider,) = provisioned("dashboards/cliffwatch.yaml")["providers"]
    assert set(provider) <= PROVIDER_FIELDS
    for source in provisioned("datasources/cliffwatch.yaml")["datasources"]:
        assert set(source) <= SOURCE_FIELDS


def test_grafana_keeps_the_dashboards_as_they_are_committed() -> None:
    (provider,) = provisioned("dashboards/cliffwatch.yaml")["providers"]
    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
    assert provider["options"]["path"] == "${CLIFFWATCH_DASHBOARDS_DIRECTORY}"
    assert sorted(DIRECTORY.glob("*")) == PATHS, "Grafana reads every file in the directory"


def test_provisioning_looks_up_only_what_is_documented() -> None:
    looked_up = {
        name
        for path in PROVISIONING.rglob("*.yaml")
        for name in re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8"))
    }
    assert looked_up == ENVIRONMENT
    page = (ROOT / "docs" / "dashboards.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in ENVIRONMENT)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_panel_is_explained_where_its_dashboard_is(path: Path) -> None:
    page = (ROOT / "docs" / "dashboards.md").read_text(encoding="utf-8")
    document = load(path)
    section = page.split(f"\n## {document['title']}\n")[1].split("\n## ")[0]
    explained = re.findall(r"\*\*(.+?)\*\*", section)
    assert explained == [panel["title"] for panel in panels(document)]
    assert document["uid"] in section


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_grafana_is_given_nothing_that_it_does_not_know(path: Path) -> None:
    """What the SDK's models of Grafana's own schema read and write again is the same."""
    register_default_plugins()
    document = load(path)
    again = json.loads(json.dumps(Dashboard.from_json(load(path)), cls=JSONEncoder))
    for panel in document["panels"]:
        if panel["type"] == "heatmap":
            # Grafana 9's name for it.
            assert panel["options"]["tooltip"].pop("show") is True
            # What the SDK reads of a heat map without fields of its own.
            panel["fieldConfig"]["defaults"].setdefault("custom", {})
    for part in ("panels", "templating", "links", "time", "uid", "title", "timezone", "refresh", "editable"):
        assert again.get(part) == document.get(part), part


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_dashboard_is_no_wall(path: Path) -> None:
    document = load(path)
    assert max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in document["panels"]) <= SCREENS * SCREEN
    row: dict[int, set[int]] = {}
    for panel in panels(document):
        row.setdefault(panel["gridPos"]["y"], set()).add(panel["gridPos"]["h"])
    assert all(len(heights) == 1 for heights in row.values()), "panels side by side have one height"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_latencies_are_drawn_on_a_logarithmic_axis(path: Path) -> None:
    for panel in panels(load(path)):
        asked = " ".join(target["expr"] for target in panel["targets"])
        if panel["type"] == "timeseries" and re.search(r"latency_seconds(_bucket)?\{", asked):
            stacked = panel["fieldConfig"]["defaults"]["custom"].get("stacking", {}).get("mode") == "normal"
            scale = panel["fieldConfig"]["defaults"]["custom"].get("scaleDistribution", {}).get("type")
            assert stacked or scale == "log", panel["title"]
            assert stacked or panel["fieldConfig"]["defaults"]["custom"]["scaleDistribution"]["log"] == 10, "decades"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_only_stat_and_table_panels_use_instant_queries(path: Path) -> None:
    """A range is aligned to its step: its last value may be minutes old."""
    for panel in panels(load(path)):
        for target in panel["targets"]:
            assert target["instant"] is (panel["type"] in ("stat", "table")), panel["title"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_lines_are_named_in_a_table_with_last_and_max_and_a_p99_is_drawn_broad(path: Path) -> None:
    for panel in panels(load(path)):
        if panel["type"] != "timeseries":
            continue
        legend = panel["options"]["legend"]
        assert (legend["displayMode"], legend["calcs"]) == ("table", ["lastNotNull", "max"]), panel["title"]
        widths = {
            each["matcher"]["options"]: change["value"]
            for each in panel["fieldConfig"]["overrides"]
            for change in each["properties"]
            if change["id"] == "custom.lineWidth"
        }
        for target in panel["targets"]:
            if re.search(r"p99$", target["legendFormat"]):
                assert widths.get(target["refId"]) == 2, f"{panel['title']}: {target['legendFormat']}"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_missing_value_of_a_stat_panel_is_named_in_a_neutral_colour(path: Path) -> None:
    for panel in panels(load(path)):
        if panel["type"] != "stat":
            continue
        shown = panel["fieldConfig"]["defaults"]
        special = [each["options"] for each in shown["mappings"] if each["type"] == "special"]
        assert special == [{"match": "null+nan", "result": {"color": "text", "text": shown["noValue"]}}], panel["title"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_an_annotation_is_a_point_where_it_begins(path: Path) -> None:
    """One for as long as it lasts would cover the lines in red."""
    for annotation in load(path)["annotations"]["list"]:
        series, _, before = annotation["expr"].partition(" unless ")
        assert before == f"max_over_time({series}[12s:12s] offset 12s)", annotation["name"]


def test_verdicts_and_findings_have_the_colours_of_their_meaning() -> None:
    (verdict, finding) = (
        next(panel for panel in panels(load(DIRECTORY / "run.json")) if panel["title"] == title)
        for title in ("Verdict or state", "Finding")
    )
    colors = [
        {
            shown["text"]: shown["color"]
            for each in panel["fieldConfig"]["defaults"]["mappings"]
            if each["type"] == "value"
            for shown in each["options"].values()
        }
        for panel in (verdict, finding)
    ]
    assert colors[0].items() >= {"pass": "green", "degraded": "orange", "failed": "red", "running": "blue"}.items()
    assert colors[1].items() >= {"none": "green", "cliff": "red", "stall": "red", "step": "orange"}.items()


def test_a_dashboard_in_kiosk_mode_names_its_run() -> None:
    """The choice above is hidden there. Run has a panel for it, and Compare names its runs in every legend."""
    for name in ("layers", "drive"):
        first = load(DIRECTORY / f"{name}.json")["panels"][0]
        assert (first["type"], "$run" in first["title"]) == ("row", True), name


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_axes_of_zeros_are_short(path: Path) -> None:
    """Grafana's axis of zeros ends at 100 of every unit, which for shares is 10000 %."""
    for panel in panels(load(path)):
        if panel["type"] == "timeseries":
            custom = panel["fieldConfig"]["defaults"]["custom"]
            assert ("axisSoftMax" in custom) != ("scaleDistribution" in custom), panel["title"]
            for override in panel["fieldConfig"].get("overrides", []):
                chosen = {each["id"]: each["value"] for each in override["properties"]}
                assert ("unit" in chosen) == ("custom.axisSoftMax" in chosen), panel["title"]
                if chosen.get("unit") == "percentunit":
                    assert chosen["custom.axisSoftMax"] == 0.01, panel["title"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_panel_warns_by_colour_only_where_bad_begins_at_a_value(path: Path) -> None:
    for panel in panels(load(path)):
        steps = panel.get("fieldConfig", {}).get("defaults", {}).get("thresholds", {}).get("steps", [])
        if any(step["color"] == "red" for step in steps):
            assert {step["color"] for step in steps} <= {"red", "green", "transparent"}, panel["title"]
            assert len(steps) == 2, panel["title"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_annotations_have_a_step_that_misses_no_short_event_and_fits_into_an_answer(path: Path) -> None:
    annotations = load(path)["annotations"]["list"]
    assert annotations
    for annotation in annotations:
        assert annotation["target"]["interval"] == annotation["step"] == "12s"
        assert 36 * 3600 / 12 < 11_000
        assert annotation["target"]["expr"] == annotation["expr"]
