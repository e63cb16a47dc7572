"""Links between dashboards lead somewhere, and hand over only what is known on both sides."""

import re
from pathlib import Path

import pytest
import yaml
from tests.dashboards.documents import DIRECTORY, PATHS, links, load, variable_names

from cliffwatch.base.resources import ALERTS_DIRECTORY

BY_UID = {load(path)["uid"]: load(path) for path in PATHS}
#: Pages of the service, as its routes have them.
PAGES = re.compile(
    r"\$\{service\}(/runs/\$\{__data\.fields\.run_id\}(/report)?"
    r"|/runbooks/\$\{__data\.fields\.alertname\}\?run_id=\$\{__data\.fields\.run_id\})"
)
#: What every dashboard about a part of the stack can choose.
SHARED = {"datasource", "run", "instance", "device"}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_link_leads_to_a_dashboard_and_hands_over_variables_that_it_has(path: Path) -> None:
    document = load(path)
    here = variable_names(document)
    for where, url, panel in links(document):
        if url.startswith("${service}/"):
            assert "service" in here, where
            assert PAGES.fullmatch(url), where
            continue
        matched = re.fullmatch(r"/d/([\w-]+)\?(.+)", url)
        assert matched, where
        there = variable_names(BY_UID[matched[1]])
        handed_over = set(re.findall(r"\$\{(\w+):queryparam\}", url))
        assert "datasource" in handed_over, where
        assert handed_over <= here & there, where
        assert set(re.findall(r"var-(\w+)=", url)) <= there, where
        plain = set(re.findall(r"\$\{(\w+)\}", url)) - {"__url_time_range"}
        assert plain <= here, where
        if panel is None:
            assert "__" not in url, where


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_labels_and_fields_of_data_links_are_in_the_queries_of_their_panel(path: Path) -> None:
    for where, url, panel in links(load(path)):
        if panel is None:
            continue
        asked = " ".join(target["expr"] for target in panel["targets"])
        for label in re.findall(r"\$\{__field\.labels\.(\w+)\}", url):
            for target in panel["targets"]:
                assert re.search(rf"by \([^)]*\b{label}\b", target["expr"]), f"{where}: {target['expr']}"
        (columns,) = [
            each["options"]["renameByName"] for each in panel.get("transformations", []) if each["id"] == "organize"
        ] or [{}]
        for field in re.findall(r"\$\{__data\.fields\.(\w+)", url):
            if field in columns.values():
                continue
            assert re.search(rf"by \([^)]*\b{field}\b", asked), where


def test_every_dashboard_leads_to_every_other() -> None:
    for uid, document in BY_UID.items():
        reached = {
            found for _, url, panel in links(document) if panel is None for found in re.findall(r"/d/([\w-]+)", url)
        }
        assert reached - {uid} == set(BY_UID) - {uid}


def test_the_links_that_questions_follow_are_there() -> None:
    """From a row of a run to the run, from a run's lines to its drives, from a past run to others."""
    found = {
        (path.stem, url.split("?")[0].removeprefix("/d/cliffwatch-"))
        for path in PATHS
        for _, url, panel in links(load(path))
        if panel is not None
    }
    assert ("runs", "${service}/runs/${__data.fields.run_id}/report") in found
    assert ("runs", "${service}/runbooks/${__data.fields.alertname}") in found
    wanted = {("runs", "run"), ("runs", "layers"), ("runs", "compare"), ("compare", "run"), ("layers", "drive")}
    assert wanted | {("watcher", "run")} <= found


def test_a_run_with_all_its_drives_is_not_handed_to_a_dashboard_of_one_drive() -> None:
    for document in BY_UID.values():
        for where, url, panel in links(document):
            if panel is None and "/d/cliffwatch-drive?" in url:
                assert not {"device", "instance"} & set(re.findall(r"\$\{(\w+):queryparam\}", url)), where


def test_a_run_is_compared_over_its_own_length() -> None:
    """The comparison cannot choose its time by itself: the link to it does."""
    of_runs = [url for _, url, panel in links(BY_UID["cliffwatch-runs"]) if panel and "/d/cliffwatch-compare?" in url]
    assert len(of_runs) == 2
    assert all(url.endswith("&from=946684800000&to=${__data.fields.Until.numeric}") for url in of_runs)


def test_dashboards_share_their_variables() -> None:
    for name in ("run", "layers", "drive"):
        assert variable_names(load(DIRECTORY / f"{name}.json")) >= SHARED
    for path in PATHS:
        assert "datasource" in variable_names(load(path))


def test_a_comparison_is_entered_and_left_without_the_time_of_the_other_side() -> None:
    for document in BY_UID.values():
        for link in document["links"]:
            crosses = ("cliffwatch-compare" in link["url"]) != (document["uid"] == "cliffwatch-compare")
            assert link["keepTime"] is not (crosses or document["uid"] == "cliffwatch-compare")


def test_each_alert_leads_to_a_dashboard_with_what_it_is_about_chosen() -> None:
    for path in sorted((ALERTS_DIRECTORY / "rules").glob("*.yaml")):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in (rule for rule in group["rules"] if "alert" in rule):
                uid, _, choices = rule["annotations"]["dashboard_url"].removeprefix("/d/").partition("?")
                # Only an alert about a drive of another host has the label.
                choices, hosts = re.subn(
                    r"\{\{ with \$labels\.device_instance \}\}&var-instance=.*?\{\{ end \}\}", "", choices
                )
                assert not hosts or "instance" in variable_names(BY_UID[uid]), rule["alert"]
                chosen = dict(re.findall(r"var-(\w+)=\{\{ \$labels\.(\w+) \}\}", choices))
                assert chosen.keys() <= variable_names(BY_UID[uid]), rule["alert"]
                assert choices.count("=") == len(chosen), rule["alert"]
                assert uid not in ("cliffwatch-run", "cliffwatch-layers", "cliffwatch-drive") or "run" in chosen
