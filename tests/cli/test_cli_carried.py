"""Rules and dashboards for a Prometheus, a Grafana and a Kubernetes of the user's own."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cliffwatch.base.resources import ALERTS_DIRECTORY, DASHBOARDS_DIRECTORY
from cliffwatch.cli.main import app


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def with_links_to(address: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for annotations in (rule["annotations"] for rule in rules if "annotations" in rule):
        annotations["runbook_url"] = address + annotations["runbook_url"]
    return rules


def alerts_of(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [rule for group in groups for rule in group["rules"]]


def own_rules() -> list[dict[str, Any]]:
    paths = sorted((ALERTS_DIRECTORY / "rules").glob("*.yaml"))
    return [rule for path in paths for rule in alerts_of(yaml.safe_load(path.read_text())["groups"])]


def test_the_rules_are_one_file_that_prometheus_takes(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    said = json.loads(printed("rules", "export", "--to", str(file), "--output", "json"))
    assert said == {"file": str(file), "format": "yaml"}
    found = alerts_of(yaml.safe_load(file.read_text())["groups"])
    assert found == with_links_to("http://127.0.0.1:9899", own_rules())
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["flag", "setting"])
def test_links_of_rules_lead_to_the_service_as_people_reach_it(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://soaks.example.org"
    flags = ("--url", f"{address}/") if how == "flag" else ()
    if how == "setting":
        monkeypatch.setenv("CLIFFWATCH_PUBLIC_URL", f"{address}/")
    document = yaml.safe_load(printed(*flags, "rules", "export"))
    assert alerts_of(document["groups"]) == with_links_to(address, own_rules())


def test_an_operator_gets_the_same_rules_with_the_labels_that_it_looks_for() -> None:
    document = yaml.safe_load(printed("rules", "export", "--for-operator", "--label", "release=prometheus"))
    assert (document["apiVersion"], document["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert document["metadata"]["labels"] == {"app.kubernetes.io/name": "cliffwatch", "release": "prometheus"}
    assert alerts_of(document["spec"]["groups"]) == with_links_to("http://127.0.0.1:9899", own_rules())


def test_the_dashboards_are_files_or_config_maps(tmp_path: Path) -> None:
    own = {f"cliffwatch-{path.name}": json.loads(path.read_text()) for path in DASHBOARDS_DIRECTORY.glob("*.json")}
    printed("dashboards", "export", "--to", str(tmp_path / "made"))
    assert {path.name: json.loads(path.read_text()) for path in (tmp_path / "made").iterdir()} == own
    maps = list(yaml.safe_load_all(printed("dashboards", "export", "--for-operator")))
    assert {each["kind"] for each in maps} == {"ConfigMap"}
    assert {each["metadata"]["labels"]["grafana_dashboard"] for each in maps} == {"1"}
    assert {name: json.loads(text) for each in maps for name, text in each["data"].items()} == own
    # What the API server takes of one object is a MiB.
    assert all(len(yaml.safe_dump(each)) < 2**20 for each in maps)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rules", "export", "--label", "a=b"), "add --for-operator"),
        (("rules", "export", "--for-operator", "--label", "=b"), "'=b': write NAME=VALUE"),
        (("rules", "export", "--for-operator", "--label", "a"), "'a': write NAME=VALUE"),
        (("dashboards", "export"), "--to: name the directory"),
        (("dashboards", "export", "--to", "/nowhere/at/all"), "/nowhere/at/all"),
    ],
)
def test_an_export_that_cannot_be_written_is_refused_with_the_reason(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code != 0
    assert said in f"{done.output} {done.exception}"
