"""A real Prometheus for tests: filled with the past by promtool, started and killed at will."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
from testkit.network_namespace import OtherHost
from testkit.ports import free_port
from testkit.waiting import wait_until

from cliffwatch.telemetry.address import PrometheusAddress

PATIENCE_SECONDS = 30.0


def fill(data: Path, lines: Iterable[str]) -> None:
    """Put samples in OpenMetrics (`name{labels} value seconds`, each family's after its `# TYPE`) into `data`."""
    source = data.with_suffix(".openmetrics")
    with source.open("w") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=64h", "-q"]
    subprocess.run([*command, str(source), str(data)], check=True)
    source.unlink()


class PrometheusServer:
    """One on a port of its own, which it keeps when it is started again; with `other`, on that host."""

    def __init__(self, directory: Path, other: OtherHost | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._host, self._prefix = ("127.0.0.1", ()) if other is None else (other.address, other.prefix)
        self.url = f"http://{self._host}:{self.port}"
        self.data = directory / "data"
        self._configuration = directory / "prometheus.yaml"
        self._configuration.write_text("{}")
        self._more: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> PrometheusAddress:
        return PrometheusAddress(self.url)

    def configure(self, configuration: dict[str, Any]) -> None:
        """From its next start on; JSON is YAML."""
        self._configuration.write_text(json.dumps(configuration))

    def scrape(self, job: str, port: int) -> None:
        """From its next start on, ask a port of 127.0.0.1 once a second."""
        self._configuration.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: {job}, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
        )

    def record(self, **series: str) -> None:
        """From its next start on, after `scrape`: compute series from PromQL once a second."""
        rules = self._configuration.with_name("rules.yaml")
        recorded = [{"record": name, "expr": expression} for name, expression in series.items()]
        rules.write_text(json.dumps({"groups": [{"name": "recorded", "interval": "1s", "rules": recorded}]}))
        with self._configuration.open("a") as file:
            file.write(f"rule_files: ['{rules}']\n")

    def enable(self, feature: str) -> None:
        """From its next start on, with a feature that is off by default."""
        self._more.append(f"--enable-feature={feature}")

    def guard(self, web_configuration: Path) -> None:
        """From its next start on, serve TLS and ask for a password, as the file says."""
        self.url = self.url.replace("http:", "https:")
        self._more.append(f"--web.config.file={web_configuration}")

    def __enter__(self) -> "PrometheusServer":
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        options = [
            f"--config.file={self._configuration}",
            f"--storage.tsdb.path={self.data}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={self._host}:{self.port}",
            "--log.level=error",
        ]
        self._process = subprocess.Popen([*self._prefix, "prometheus", *options, *self._more])
        wait_until(self._is_ready, "Prometheus")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def has(self, query: str) -> bool:
        """Whether PromQL finds anything now."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, trust_env=False)
        return bool(answer.raise_for_status().json()["data"]["result"])

    def _is_ready(self) -> bool:
        try:
            url = f"{self.url}/-/ready"
            answer = httpx.get(url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False)  # noqa: S501
            return answer.is_success or answer.status_code == 401
        except httpx.TransportError:
            return False
