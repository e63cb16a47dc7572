"""The rules by promtool, and what belongs to each alert: a runbook, texts, unit tests, metrics that exist."""

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from tests.alerts.watchers import program

from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.coordinator.metrics import RunCollector, WorkerFigures
from cliffwatch.model.settings import Settings

RULES = sorted((ALERTS_DIRECTORY / "rules").glob("*.yaml"))
UNIT_TESTS = sorted((ALERTS_DIRECTORY / "tests").glob("*.yaml"))
LONG = pytest.mark.real(why="rules for each second of up to an hour and a half; the rules of runs are quick")
RUNBOOKS = ALERTS_DIRECTORY / "runbooks"
DOCUMENTS = ALERTS_DIRECTORY.parent / "docs"
METRICS_PAGE, TRIAGE = DOCUMENTS / "metrics.md", DOCUMENTS / "triage.md"
#: Grafana, which docker-compose.yml starts, and a Prometheus of the reader's.
OTHER_PORTS = frozenset({9894, 9090})
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
#: What an expression holds besides metrics: functions, keywords, label names.
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_IGNORED = re.compile(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_WORDS = frozenset({"and", "or", "unless", "bool", "by", "without", "on", "group_left"})


@cache
def rules() -> list[dict[str, Any]]:
    return [
        rule
        for path in RULES
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def metrics_in(expression: str) -> set[str]:
    """Names in a PromQL expression that are neither words of the language nor functions."""
    bare = _IGNORED.sub(" ", expression)
    names = {match[0] for match in _NAME.finditer(bare) if not bare[match.end() :].lstrip().startswith("(")}
    return {name for name in names - _WORDS if not re.fullmatch(r"e|inf|nan", name, re.IGNORECASE)}


@cache
def documented() -> frozenset[str]:
    page = METRICS_PAGE.read_text(encoding="utf-8")
    return frozenset(re.findall(r"^\| `([a-zA-Z0-9_:]+)` \|", page, re.MULTILINE))


def is_documented(name: str) -> bool:
    return name in documented() or re.sub(r"_(bucket|sum|count)$", "", name) in documented()


def test_promtool_accepts_every_rule_and_finds_none_twice() -> None:
    done = subprocess.run(
        [program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *map(str, RULES)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem == "run" else LONG) for path in UNIT_TESTS],
    ids=lambda path: path.stem,
)
def test_alerts_fire_and_stay_silent_as_their_unit_tests_say(path: Path) -> None:
    done = subprocess.run([program("promtool"), "test", "rules", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_unit_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    expected: dict[str, set[bool]] = {}
    for path in UNIT_TESTS:
        for scene in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            for check in scene.get("alert_rule_test", []):
                expected.setdefault(check["alertname"], set()).add(bool(check["exp_alerts"]))
    for alert in alerts():
        wanted = {True} if alert["alert"] == "CliffwatchWatchdog" else {True, False}
        assert expected.get(alert["alert"]) == wanted, alert["alert"]


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_each_alert_says_what_it_means_to_a_person_and_to_the_routing(alert: dict[str, Any]) -> None:
    name, annotations = alert["alert"], alert["annotations"]
    assert re.fullmatch(r"Cliffwatch([A-Z][a-z0-9]+)+", name)
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert alert["labels"]["layer"] in {"run", "client", "device", "watcher"}
    assert annotations["summary"].endswith(".")
    # What differs between alerts of one group would be in no notification's subject.
    assert "{{" not in re.sub(r"\{\{ \$labels\.(run_id|verdict) \}\}", "", annotations["summary"])
    assert annotations["description"].endswith(".")
    assert annotations["runbook_url"] == f"/runbooks/{name}"
    assert annotations["dashboard_url"].startswith("/d/cliffwatch-")


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.iterdir()} == {alert["alert"] for alert in alerts()}


def test_the_page_for_3_am_has_each_alert_with_its_runbook_by_layer() -> None:
    rows = re.findall(r"^\| (\w+) \| \[(\w+)\]\(\.\./alerts/runbooks/(\w+)\.md\) \|", TRIAGE.read_text(), re.MULTILINE)
    assert [name for _, name, runbook in rows if name != runbook] == []
    layers: dict[str, set[str]] = {}
    for alert in alerts():
        layers.setdefault(alert["alert"], set()).add(alert["labels"]["layer"])
    assert {name: {layer} for layer, name, _ in rows} == layers
    assert len(rows) == len(layers)


def test_pages_name_the_ports_that_the_watchers_have() -> None:
    """Of a command that is typed as it stands, the port is that of the settings' defaults."""
    known = {int(field.default) for name, field in Settings.model_fields.items() if name.endswith("_port")}
    pages = [*RUNBOOKS.iterdir(), *DOCUMENTS.rglob("*.md"), DOCUMENTS.parent / "README.md"]
    named = {
        (path.name, int(port))
        for path in pages
        for port in re.findall(r"http://127\.0\.0\.1:(\d+)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert {each for each in named if each[1] not in known | OTHER_PORTS} == set()


@pytest.mark.parametrize("path", sorted(RUNBOOKS.iterdir()), ids=lambda path: path.stem)
def test_a_runbook_has_its_four_sections_and_none_is_empty(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.stem}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    assert all(part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:])


def test_rules_use_only_metrics_that_are_documented() -> None:
    unknown = {name for rule in rules() for name in metrics_in(str(rule["expr"])) if not is_documented(name)}
    assert not unknown


def test_runbooks_query_only_metrics_that_are_documented() -> None:
    for path in RUNBOOKS.iterdir():
        for expression in re.findall(r"--data-urlencode 'query=([^']*)'", path.read_text(encoding="utf-8")):
            unknown = {name for name in metrics_in(expression) if not is_documented(name)}
            # What Prometheus adds about each scrape is separate from what the rules use.
            assert unknown <= {"scrape_samples_scraped"}, path.stem


def test_recorded_series_of_the_rules_are_exactly_the_documented_ones() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    assert recorded == {name for name in documented() if ":" in name}


def test_every_metric_of_a_worker_is_documented_with_its_type() -> None:
    figures = WorkerFigures(run_id="r", workload="w", engine="e", target="t", start=0.0, window_seconds=1.0)
    registry = CollectorRegistry()
    registry.register(RunCollector(figures))
    page = METRICS_PAGE.read_text(encoding="utf-8")
    section = page.split("## A run: its worker")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.MULTILINE))
    found = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in registry.collect()}
    assert rows == found


def test_every_metric_of_the_probe_is_documented() -> None:
    configuration = ALERTS_DIRECTORY.parent / "exporters" / "ebpf" / "block.yaml"
    metrics = yaml.safe_load(configuration.read_text(encoding="utf-8"))["metrics"]
    names = {f"ebpf_exporter_{metric['name']}" for kind in metrics.values() for metric in kind}
    assert names == {name for name in documented() if name.startswith("ebpf_exporter_")}


def test_short_and_long_windows_are_judged_by_the_same_rules_over_other_ranges() -> None:
    recording = yaml.safe_load((ALERTS_DIRECTORY / "rules" / "recording.yaml").read_text(encoding="utf-8"))
    short, long = (
        [
            (
                rule["record"],
                re.sub(r"\[\w+\]|\b(40|120|720|3600)\b|short|long|(?<=\) )(<|>=)(?= 5$)", "", rule["expr"].strip()),
            )
            for rule in group["rules"]
        ]
        for group in recording["groups"]
    )
    assert short == long
