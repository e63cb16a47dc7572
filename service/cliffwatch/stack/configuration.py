"""The configurations of Prometheus and Alertmanager, made from the files below alerts/: pure functions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.base.units import format_duration
from cliffwatch.stack.channels import Channel
from cliffwatch.stack.receivers import receivers_of, routes_of

#: Path of the service's API to which Alertmanager sends notifications.
WEBHOOK_PATH = "/api/v1/alerts"
DISCOVERY_PATHS = {
    "cliffwatch-worker": "/api/v1/discovery/workers",
    "workload": "/api/v1/discovery/targets",
    "aging-drive": "/api/v1/discovery/drives",
}
#: Jobs whose series are about one host's devices; their `instance` is the host's name, not an address.
EXPORTERS = ("node", "ebpf", "drive")
#: First major version of Prometheus that refuses an answer without a Content-Type.
ASKS_FOR_FORMAT = 3
#: Upper limit of the timeout of a scrape, however long the interval is.
LONGEST_SCRAPE_SECONDS = 10.0


def alertmanager_configuration(
    webhook_url: str,
    token_file: Path,
    *,
    channels: Mapping[Channel, str] | None = None,
    public_url: str = "",
    alerts_directory: Path = ALERTS_DIRECTORY,
) -> str:
    """Alertmanager's configuration as YAML.

    Notifications go to `webhook_url`, with the token in `token_file`, and to `channels` (channel → secret), with links
    to the pages at `public_url`.
    """
    document = _load(alerts_directory / "alertmanager" / "alertmanager.yaml")
    for receiver in document["receivers"]:
        if receiver["name"] == "cliffwatch":
            (webhook,) = receiver["webhook_configs"]
            webhook["url"] = webhook_url
            webhook["http_config"]["authorization"]["credentials_file"] = str(token_file)
    document["route"]["routes"][:0] = routes_of(channels or {})
    document["receivers"] += receivers_of(channels or {}, public_url)
    return _dump(document)


def prometheus_configuration(
    *,
    service_address: str,
    prometheus_address: str,
    token_file: Path,
    alertmanager_address: str | None = None,
    exporters: Mapping[str, str] | None = None,
    scrape_interval_seconds: float = 5.0,
    host: str = "local",
    alerts_directory: Path = ALERTS_DIRECTORY,
    alerts_seen_at: Path | None = None,
    major_version: int = 2,
) -> str:
    """Prometheus' configuration as YAML.

    Addresses are `host:port`. `exporters` maps a job (`node`, `ebpf`, `drive`) to its address; a job without an address
    is left out, and does not count as down. `token_file` holds the token for the service's discovery. `host` is the
    value of the label `instance` of exporters, and of the label `host` of workers for which discovery has no host. The
    evaluation interval of rules equals the scrape interval. `alerts_seen_at` is the path of `alerts_directory` as a
    Prometheus in a container sees it. From `major_version` 3 on, a fallback scrape protocol is set, since Prometheus
    would refuse a target that answers without a Content-Type. Raises ValueError for an unknown job in `exporters`.
    """
    exporters = exporters or {}
    if unknown := sorted(set(exporters) - set(EXPORTERS)):
        raise ValueError(f"{', '.join(unknown)}: exporters are {', '.join(EXPORTERS)}")
    document = _load(alerts_directory / "prometheus" / "prometheus.yaml")
    document["global"] = {
        "scrape_interval": format_duration(scrape_interval_seconds),
        "scrape_timeout": format_duration(min(scrape_interval_seconds, LONGEST_SCRAPE_SECONDS)),
        "evaluation_interval": format_duration(scrape_interval_seconds),
    }
    document["rule_files"] = [str((alerts_seen_at or alerts_directory) / "rules" / "*.yaml")]
    addresses = {
        **exporters,
        "cliffwatch-service": service_address,
        "prometheus": prometheus_address,
        **({"alertmanager": alertmanager_address} if alertmanager_address else {}),
    }
    jobs = [_job(job, addresses, service_address, token_file, host) for job in document["scrape_configs"]]
    assumed = {"fallback_scrape_protocol": "PrometheusText0.0.4"} if major_version >= ASKS_FOR_FORMAT else {}
    document["scrape_configs"] = [job | assumed for job in jobs if job is not None]
    if alertmanager_address:
        document["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [alertmanager_address]
    else:
        del document["alerting"]
    return _dump(document)


def _job(
    job: dict[str, Any], addresses: Mapping[str, str], service_address: str, token_file: Path, host: str
) -> dict[str, Any] | None:
    """The scrape job with its targets, or its service discovery, filled in; None when it has no address."""
    name = job["job_name"]
    if path := DISCOVERY_PATHS.get(name):
        (discovery,) = job["http_sd_configs"]
        discovery["url"] = f"http://{service_address}{path}"
        discovery["authorization"]["credentials_file"] = str(token_file)
        for rule in job.get("relabel_configs", []):
            if rule["target_label"] in ("host", "instance"):
                rule["replacement"] = host
        return job
    if name not in addresses:
        return None
    (targets,) = job["static_configs"]
    targets["targets"] = [addresses[name]]
    if name in EXPORTERS:
        targets["labels"] = {"instance": host}
    return job


def _load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def _dump(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=120)
