"""The gateway: exporters on loopback are given to other hosts by TLS and with a password, and not otherwise."""

import base64
import http.server
import os
import re
import signal
import ssl
import subprocess
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from testkit.checkout import ROOT
from testkit.ports import free_port
from testkit.waiting import wait_until
from tests.telemetry.prometheus_server import PrometheusServer

PASSWORD = "not-for-logs"
#: By bcrypt, as Prometheus' file has it.
HASHED = "$2b$04$MfLwbxXYmA8ajGsUlMuSa.38F9IPdzxgfcO4G1rgbUydW3WPINdu2"


@pytest.fixture(scope="session")
def program() -> Path:
    state = Path(os.environ.get("STATE") or ROOT / ".cliffwatch")
    subprocess.run(["make", "-s", "-C", ROOT / "exporters" / "gateway", f"STATE={state}"], check=True)
    return state / "gateway" / "cliffwatch-gateway"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for loopback, in a directory with its key."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=here"
    words = [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1"]
    path = tmp_path / "gateway.crt"
    subprocess.run([*words, "-keyout", tmp_path / "gateway.key", "-out", path], check=True, capture_output=True)
    return path


def configuration(users: str = f"basic_auth_users: {{prometheus: '{HASHED}'}}") -> str:
    return f"tls_server_config: {{cert_file: gateway.crt, key_file: gateway.key}}\n{users}\n"


@contextmanager
def exporter() -> Iterator[tuple[int, list[dict[str, str]]]]:
    """An exporter's port on loopback, and headers and query of each request."""
    asked: list[dict[str, str]] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            asked.append(dict(self.headers) | {"query": query})
            self.send_response(200 if path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(b"node_disk_writes_completed_total 7\n")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that listens on `port`, and the file of its certificate."""

    port: int
    certificate: Path

    def get(self, path: str, password: str | None = PASSWORD, scheme: str = "https") -> tuple[int, str]:
        """Status and text of the answer. Raises URLError where the connection fails."""
        request = urllib.request.Request(f"{scheme}://127.0.0.1:{self.port}{path}")  # noqa: S310 # one of two schemes
        if password is not None:
            word = base64.b64encode(f"prometheus:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {word}")
        trusted = ssl.create_default_context(cafile=self.certificate)
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trusted))
        try:
            with opener.open(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@contextmanager
def gateway(program: Path, certificate: Path, text: str, *exporters: str) -> Iterator[Gateway]:
    file = certificate.with_name("gateway.yaml")
    file.write_text(text)
    port = free_port()
    words = [f"--web.listen-address=127.0.0.1:{port}", f"--web.config.file={file}", *exporters]
    process = subprocess.Popen([program, *words], stderr=subprocess.PIPE, text=True)
    its = Gateway(port, certificate)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                its.get("/")
                break
            except urllib.error.URLError:
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield its
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def test_the_gateway_serves_exporters_only_over_tls_and_with_the_password(program: Path, certificate: Path) -> None:
    with (
        exporter() as (port, asked),
        gateway(program, certificate, configuration(), f"--exporter=node=127.0.0.1:{port}") as its,
    ):
        assert its.get("/node") == (200, "node_disk_writes_completed_total 7\n")
        assert not [headers for headers in asked if "Authorization" in headers], "the password went on"
        assert its.get("/node?collect[]=diskstats")[0] == 200
        assert asked[-1]["query"] == "collect[]=diskstats"
        count = len(asked)
        assert its.get("/node", password=None)[0] == 401
        assert its.get("/node", password="wrong")[0] == 401
        assert its.get("/block")[0] == 404
        assert its.get("/node/..")[0] == 404
        assert its.get("/node", scheme="http")[0] == 400
        assert len(asked) == count


def test_a_prometheus_scrapes_all_three_as_the_page_says(program: Path, certificate: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "broker-hosts.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^    (scrape_configs:\n(?:    .*\n)+)", page, re.MULTILINE)
    (node,) = yaml.safe_load(textwrap.dedent(f"    {shown}"))["scrape_configs"]
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    server = PrometheusServer(tmp_path / "prometheus")
    with exporter() as (port, _):
        ways = [f"--exporter={name}=127.0.0.1:{port}" for name in ("node", "block", "drive")]
        with gateway(program, certificate, configuration(), *ways) as its:
            node["tls_config"]["ca_file"] = str(certificate)
            node["basic_auth"]["password_file"] = str(tmp_path / "password")
            node["scrape_interval"] = "1s"
            node["static_configs"] = [{"targets": [f"127.0.0.1:{its.port}"]}]
            others = [
                node | {"job_name": name, "metrics_path": path}
                for name, path in (("ebpf", "/block"), ("drive", "/drive"))
            ]
            jobs = [node, *others]
            server.configure({"scrape_configs": jobs})
            with server:
                wait_until(
                    lambda: server.has('count(up{job=~"node|ebpf|drive"} == 1) == 3'), "three targets that are up"
                )
                assert server.has(f'node_disk_writes_completed_total{{job="node",instance="127.0.0.1:{its.port}"}}')


def test_an_exporter_that_is_away_is_named(program: Path, certificate: Path) -> None:
    with gateway(program, certificate, configuration(), f"--exporter=drive=127.0.0.1:{free_port()}") as its:
        status, text = its.get("/drive")
        assert status == 502
        assert "the exporter drive does not answer" in text
        assert "connection refused" in text


def test_it_stops_answering_once_its_file_protects_nothing(program: Path, certificate: Path) -> None:
    with (
        exporter() as (port, asked),
        gateway(program, certificate, configuration(), f"--exporter=node=127.0.0.1:{port}") as its,
    ):
        file = certificate.with_name("gateway.yaml")
        file.write_text(configuration(users=""))
        status, text = its.get("/node", password=None)
        assert status == 503
        assert "there are no basic_auth_users" in text
        assert asked == []
        file.write_text(configuration())
        assert its.get("/node")[0] == 200


def test_a_client_certificate_does_instead_of_a_password(program: Path, certificate: Path) -> None:
    text = (
        "tls_server_config: {cert_file: gateway.crt, key_file: gateway.key, client_ca_file: gateway.crt, "
        "client_auth_type: RequireAndVerifyClientCert}\n"
    )
    file = certificate.with_name("gateway.yaml")
    file.write_text(text)
    port = free_port()
    words = [f"--web.listen-address=127.0.0.1:{port}", f"--web.config.file={file}", "--exporter=node=127.0.0.1:1"]
    process = subprocess.Popen([program, *words], stderr=subprocess.PIPE, text=True)
    try:
        url = f"https://127.0.0.1:{port}/node"
        curl = [
            "curl",
            "--silent",
            "--retry-connrefused",
            "--retry",
            "50",
            "--retry-delay",
            "1",
            "--cacert",
            str(certificate),
        ]
        known = ["--cert", str(certificate), "--key", str(certificate.with_name("gateway.key"))]
        answer = subprocess.run([*curl, *known, url], capture_output=True, text=True, check=True)
        assert "the exporter node does not answer" in answer.stdout
        assert subprocess.run([*curl, url], capture_output=True, check=False).returncode != 0
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (configuration(users=""), [], "there are no basic_auth_users"),
        (f"basic_auth_users: {{prometheus: '{HASHED}'}}", [], "there is no tls_server_config"),
        (configuration().replace("gateway.key", "none.key"), [], "none.key"),
        (configuration() + "nonsense: 1\n", [], "nonsense"),
        ("tls_server_config: [", [], "gateway.yaml"),
        (configuration(), ["--exporter=node=10.0.0.1:9100"], "10.0.0.1 is not on loopback"),
        (configuration(), ["--exporter=node"], "write NAME=127.0.0.1:PORT"),
        (configuration(), ["node=127.0.0.1:9100"], "is no flag"),
    ],
)
def test_an_unprotected_or_invalid_gateway_configuration_is_refused(
    program: Path, certificate: Path, text: str, words: list[str], said: str
) -> None:
    file = certificate.with_name("gateway.yaml")
    file.write_text(text)
    given = [f"--web.config.file={file}", *(words or ["--exporter=node=127.0.0.1:1"])]
    done = subprocess.run(
        [program, f"--web.listen-address=127.0.0.1:{free_port()}", *given],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--exporter=node=127.0.0.1:1"], "--web.config.file is required"),
        (["--web.config.file=/none.yaml"], "there is no --exporter"),
        (["--web.config.file=/none.yaml", "--exporter=node=127.0.0.1:1"], "no such file"),
    ],
)
def test_it_does_not_start_without_a_file_or_an_exporter(program: Path, words: list[str], said: str) -> None:
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2
    assert said in done.stderr
