"""What is rendered for Prometheus and Alertmanager, by their own checkers."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.alerts.watchers import program

from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.stack.channels import Channel, ChannelKind, Occasion
from cliffwatch.stack.configuration import alertmanager_configuration, prometheus_configuration
from cliffwatch.stack.receivers import receivers_of

ALERTMANAGER = ALERTS_DIRECTORY / "alertmanager" / "alertmanager.yaml"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("cw_token")
    return path


def rendered(token_file: Path, **changes: Any) -> str:
    given: dict[str, Any] = {
        "service_address": "127.0.0.1:9899",
        "prometheus_address": "127.0.0.1:9801",
        "alertmanager_address": "127.0.0.1:9802",
        "exporters": {"node": "127.0.0.1:9803", "ebpf": "127.0.0.1:9804", "drive": "127.0.0.1:9805"},
        "token_file": token_file,
    }
    return prometheus_configuration(**(given | changes))


def check_prometheus(text: str, directory: Path) -> str:
    path = directory / "prometheus.yaml"
    path.write_text(text)
    done = subprocess.run([program("promtool"), "check", "config", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_alertmanager(text: str, directory: Path) -> None:
    path = directory / "alertmanager.yaml"
    path.write_text(text)
    done = subprocess.run([program("amtool"), "check-config", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("interval_seconds", [0.5, 1.0, 5.0, 30.0])
def test_promtool_accepts_the_configuration_and_finds_every_rule_file(
    interval_seconds: float, tmp_path: Path, token_file: Path
) -> None:
    output = check_prometheus(rendered(token_file, scrape_interval_seconds=interval_seconds), tmp_path)
    for path in (ALERTS_DIRECTORY / "rules").glob("*.yaml"):
        assert path.name in output


def test_from_version_3_on_a_format_is_assumed_where_a_target_does_not_say_it(token_file: Path) -> None:
    for version, assumed in ((2, None), (3, "PrometheusText0.0.4")):
        jobs = yaml.safe_load(rendered(token_file, major_version=version))["scrape_configs"]
        assert {job.get("fallback_scrape_protocol") for job in jobs} == {assumed}


def test_the_limits_that_an_alert_names_are_those_of_the_jobs() -> None:
    configuration = yaml.safe_load((ALERTS_DIRECTORY / "prometheus" / "prometheus.yaml").read_text())
    limits = {job["job_name"]: job["sample_limit"] for job in configuration["scrape_configs"] if "sample_limit" in job}
    others = {"ebpf": 50_000, "aging-drive": 5_000, "cliffwatch-worker": 5_000}
    assert limits == dict.fromkeys(limits, 20_000) | others


def test_each_job_has_the_target_that_was_given(token_file: Path) -> None:
    document = yaml.safe_load(rendered(token_file))
    jobs = {job["job_name"]: job for job in document["scrape_configs"]}
    assert jobs["ebpf"]["static_configs"] == [{"targets": ["127.0.0.1:9804"], "labels": {"instance": "local"}}]
    assert jobs["cliffwatch-service"]["static_configs"] == [{"targets": ["127.0.0.1:9899"]}]
    (workers,) = jobs["cliffwatch-worker"]["http_sd_configs"]
    assert workers["url"] == "http://127.0.0.1:9899/api/v1/discovery/workers"
    assert workers["authorization"]["credentials_file"] == str(token_file)
    (targets,) = jobs["workload"]["http_sd_configs"]
    assert targets["url"] == "http://127.0.0.1:9899/api/v1/discovery/targets"
    (drives,) = jobs["aging-drive"]["http_sd_configs"]
    assert drives["url"] == "http://127.0.0.1:9899/api/v1/discovery/drives"
    assert document["alerting"]["alertmanagers"][0]["static_configs"] == [{"targets": ["127.0.0.1:9802"]}]


def test_absent_exporters_and_alertmanager_are_left_out_of_the_configuration(tmp_path: Path, token_file: Path) -> None:
    text = rendered(token_file, exporters={"node": "127.0.0.1:9803"}, alertmanager_address=None)
    check_prometheus(text, tmp_path)
    document = yaml.safe_load(text)
    names = [job["job_name"] for job in document["scrape_configs"]]
    assert names == ["cliffwatch-worker", "workload", "node", "aging-drive", "cliffwatch-service", "prometheus"]
    assert "alerting" not in document


def test_another_host_names_its_exporters_and_its_workers_alike(token_file: Path) -> None:
    document = yaml.safe_load(rendered(token_file, host="rack-7"))
    jobs = {job["job_name"]: job for job in document["scrape_configs"]}
    assert jobs["node"]["static_configs"][0]["labels"] == {"instance": "rack-7"}
    assert jobs["cliffwatch-worker"]["relabel_configs"][0]["replacement"] == "rack-7"
    assert jobs["aging-drive"]["relabel_configs"][0]["replacement"] == "rack-7"


def test_an_exporter_that_no_job_is_for_is_refused(token_file: Path) -> None:
    with pytest.raises(ValueError, match="nvme: exporters are node, ebpf, drive"):
        rendered(token_file, exporters={"nvme": "127.0.0.1:1"})


def test_amtool_accepts_the_configuration_and_it_posts_to_the_webhook(tmp_path: Path, token_file: Path) -> None:
    text = alertmanager_configuration("http://127.0.0.1:9/api/v1/alerts", token_file)
    check_alertmanager(text, tmp_path)
    receivers = {receiver["name"]: receiver for receiver in yaml.safe_load(text)["receivers"]}
    (webhook,) = receivers["cliffwatch"]["webhook_configs"]
    assert webhook["url"] == "http://127.0.0.1:9/api/v1/alerts"
    assert webhook["send_resolved"] is True
    assert webhook["http_config"]["authorization"] == {"type": "Bearer", "credentials_file": str(token_file)}


def test_the_files_are_valid_as_they_stand(tmp_path: Path) -> None:
    check_alertmanager(ALERTMANAGER.read_text(encoding="utf-8"), tmp_path)
    syntax_only = [program("promtool"), "check", "config", "--syntax-only"]
    subprocess.run([*syntax_only, str(ALERTS_DIRECTORY / "prometheus" / "prometheus.yaml")], check=True)


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("alertname=CliffwatchLatencyCliff layer=client", "pager,team,cliffwatch"),
        ("alertname=CliffwatchLoadStalled layer=client", "pager,team,cliffwatch"),
        ("alertname=CliffwatchLatencyStep layer=client", "team,cliffwatch"),
        ("alertname=CliffwatchDriveSlowsDown layer=device", "team,cliffwatch"),
        ("alertname=CliffwatchRunInterrupted layer=run", "pager,cliffwatch"),
        ("alertname=CliffwatchExporterDown layer=watcher", "pager,cliffwatch"),
        ("alertname=CliffwatchRunFinished layer=run verdict=pass", "team/ends,none"),
        ("alertname=CliffwatchRunFinished layer=run verdict=failed", "pager/ends,team/ends,none"),
        ("alertname=CliffwatchRunWarmingUp layer=run", "none"),
        ("alertname=CliffwatchWatchdog layer=watcher", "cliffwatch"),
        ("alertname=CliffwatchNotificationTest channel=team", "team/ends,none"),
        ("alertname=CliffwatchNotificationTest channel=gone", "none"),
    ],
)
def test_each_alert_goes_to_the_channels_that_asked_for_it(labels: str, receivers: str, tmp_path: Path) -> None:
    pager = Channel(
        name="pager",
        kind=ChannelKind.PAGERDUTY,
        url_file=Path("/k"),
        occasions=(Occasion.CLIFF, Occasion.TROUBLE, Occasion.INVALID),
    )
    team = Channel(name="team", kind=ChannelKind.EMAIL, url_file=Path("/m"), occasions=tuple(Occasion)[1::2])
    assert team.occasions == (Occasion.DEGRADATION, Occasion.FINISHED)
    secrets = {pager: "abc", team: "smtps://a%40b.test:p@mail.test/?from=a@b.test&to=c@d.test"}
    text = alertmanager_configuration("http://127.0.0.1:9/", tmp_path, channels=secrets, public_url="https://cw.test")
    check_alertmanager(text, tmp_path)
    routed = [program("amtool"), "config", "routes", "test", f"--config.file={tmp_path / 'alertmanager.yaml'}"]
    assert subprocess.check_output([*routed, *labels.split(), "run_id=a"], text=True).strip() == receivers


def test_the_file_that_is_rendered_holds_no_secret() -> None:
    text = ALERTMANAGER.read_text(encoding="utf-8")
    assert not re.search(r"^[ #]*(api_url|routing_key|service_key|auth_password):", text, re.MULTILINE)


def test_a_notification_links_to_the_runbook_on_the_services_pages() -> None:
    channel = Channel(name="team", kind=ChannelKind.SLACK, url_file=Path("/s"), occasions=(Occasion.CLIFF,))
    alerts, _ = receivers_of({channel: "https://hooks.example.org/x"}, "https://soaks.example.org")
    text = alerts["slack_configs"][0]["text"]
    path = "{{ .CommonAnnotations.runbook_url }}{{ with .CommonLabels.run_id }}?run_id={{ . }}{{ end }}"
    assert f"what to do: https://soaks.example.org{path}" in text
