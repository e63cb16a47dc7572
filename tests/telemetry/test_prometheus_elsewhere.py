"""Prometheus servers by name: their file, and a real one that asks for TLS and a password, or for a token."""

import http.server
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.telemetry.filled_runs import WRITES, counter
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.base.errors import Problem
from cliffwatch.model.settings import read_settings
from cliffwatch.telemetry.address import PrometheusAddress, address_of, read_addresses
from cliffwatch.telemetry.prometheus import Prometheus, QueryFailed

PASSWORD = "not-for-logs"
#: By bcrypt, as Prometheus' file has it.
HASHED = "$2b$04$MfLwbxXYmA8ajGsUlMuSa.38F9IPdzxgfcO4G1rgbUydW3WPINdu2"


def test_servers_are_read_by_name_and_a_name_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "servers.yaml"
    file.write_text(
        "staging:\n  url: https://prometheus.example.org/base\n  bearer_token_file: /t\n  ca_file: /c\n"
        "lab:\n  url: http://10.0.0.1:9090\n  username: me\n  password_file: /p\n"
    )
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_SERVERS", str(file))
    settings = read_settings()
    staging = PrometheusAddress("https://prometheus.example.org/base", bearer_token_file="/t", ca_file="/c")
    assert address_of(settings, "staging") == staging
    assert address_of(settings, "lab") == PrometheusAddress("http://10.0.0.1:9090", username="me", password_file="/p")
    assert address_of(settings) == PrometheusAddress("http://127.0.0.1:9890")
    with pytest.raises(Problem) as refused:
        address_of(settings, "stagign")
    (fault,) = refused.value.faults
    assert fault.field == "drives.server"
    assert "has lab, staging" in fault.message
    assert "did you mean 'staging'?" in fault.message
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_SERVERS", "")
    with pytest.raises(Problem) as refused:
        address_of(read_settings(), "staging")
    assert "set CLIFFWATCH_PROMETHEUS_SERVERS to a file" in refused.value.faults[0].message


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("a: {url: prometheus.example.org}", "a.url", "write an address such as https://"),
        ("a: {url: 'https://me:secret@host'}", "a.url", "instead of a user in the address"),
        ("a: {url: 'http://h', username: me}", "a", "belong together"),
        ("a: {url: 'http://h', username: me, password_file: /p, bearer_token_file: /t}", "a", "give either"),
        ("a: {url: 'http://h', token: secret}", "a.token", ""),
        ("a: {url: 'http://h', ca_file: ca.pem}", "a.ca_file", ""),
        ("A b: {url: 'http://h'}", "A b", ""),
        ("a: [", "CLIFFWATCH_PROMETHEUS_SERVERS", "servers.yaml"),
        ("- a", "", ""),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_its_field(tmp_path: Path, text: str, field: str, said: str) -> None:
    file = tmp_path / "servers.yaml"
    file.write_text(text)
    with pytest.raises(Problem) as refused:
        read_addresses(file)
    (fault,) = refused.value.faults
    assert fault.field.startswith(field)
    assert said in fault.message
    assert "secret" not in f"{refused.value} {fault.message}"
    with pytest.raises(Problem) as refused:
        read_addresses(tmp_path / "none.yaml")
    assert "none.yaml" in refused.value.faults[0].message


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[PrometheusServer, Path, Path]]:
    """A Prometheus with TLS and a password; the file of its authority, and that of the password."""
    certificate, key, password = tmp_path / "server.pem", tmp_path / "server.key", tmp_path / "password"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=here -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    password.write_text(f"{PASSWORD}\n")
    web = tmp_path / "web.yaml"
    web.write_text(
        f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\nbasic_auth_users: {{me: '{HASHED}'}}\n"
    )
    server = PrometheusServer(tmp_path / "prometheus")
    fill(server.data, counter(WRITES, [time.time() - 10], [1.0]))
    server.guard(web)
    with server:
        yield server, certificate, password


def version_of(address: PrometheusAddress) -> int:
    prometheus = Prometheus(address, time.monotonic() + 20)
    try:
        return prometheus.major_version()
    finally:
        prometheus.close()


def test_a_prometheus_that_asks_for_tls_and_a_password(
    guarded: tuple[PrometheusServer, Path, Path], tmp_path: Path
) -> None:
    server, certificate, password = guarded
    access = {"username": "me", "password_file": str(password), "ca_file": str(certificate)}
    assert version_of(PrometheusAddress(server.url, **access)) >= 2
    wrong = tmp_path / "wrong"
    wrong.write_text("another")
    changes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"password_file": str(wrong)}, "does not accept who asks (401)"),
        ({"ca_file": None}, "CERTIFICATE_VERIFY_FAILED"),
        ({"ca_file": None, "url": server.url.replace("https", "HTTPS")}, "CERTIFICATE_VERIFY_FAILED"),
        ({"password_file": str(tmp_path / "none")}, f"{tmp_path / 'none'}: No such file"),
        ({"ca_file": str(wrong)}, str(wrong)),
    )
    for changed, said in changes:
        with pytest.raises(QueryFailed) as failed:
            version_of(PrometheusAddress(**{"url": server.url, **access, **changed}))
        assert said in str(failed.value)
        assert "another" not in str(failed.value)


@contextmanager
def token_keeper(token: str) -> Iterator[str]:
    """What a proxy before a Prometheus does: it lets through who has the token."""

    class Keeper(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            accepted = self.headers["Authorization"] == f"Bearer {token}"
            self.send_response(200 if accepted else 403)
            self.end_headers()
            self.wfile.write(b'{"status": "success", "data": {"version": "3.1.0"}}' if accepted else b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Keeper) as keeper:
        thread = threading.Thread(target=keeper.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{keeper.server_port}"
        keeper.shutdown()
        thread.join()


def test_a_token_is_read_from_its_file_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with token_keeper("one") as url:
        address = PrometheusAddress(url, bearer_token_file=str(file))
        file.write_text("old")
        with pytest.raises(QueryFailed, match="403"):
            version_of(address)
        file.write_text("one\n")
        assert version_of(address) == 3
