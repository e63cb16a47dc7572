"""TLS and SASL against a real broker."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testkit.kafka_broker import HOST, Cluster, start_cluster
from testkit.kafka_load import configuration, run, write_file
from testkit.ports import free_ports
from tests.engines.kafka.checking import check

PASSWORD = "broker-password"
RIGHT = "secret"
PROTOCOLS = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,BOTH:SASL_SSL"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A broker and where its listeners are."""

    cluster: Cluster
    plain_sasl: str
    tls: str
    tls_sasl: str
    directory: Path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("guarded")
    make_certificates(directory)
    plain_sasl, tls, tls_sasl, controller = free_ports(4)
    listeners = f"PLAINTEXT://{HOST}:{{port}},SASL://{HOST}:{plain_sasl},TLS://{HOST}:{tls},BOTH://{HOST}:{tls_sasl}"
    module = "org.apache.kafka.common.security"
    plain = f'{module}.plain.PlainLoginModule required user_soak="secret";'
    settings = {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listener.security.protocol.map": PROTOCOLS,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(directory / "broker.p12"),
        "ssl.keystore.password": PASSWORD,
    }
    for listener in ("sasl", "both"):
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = (
                f"{module}.scram.ScramLoginModule required;"
            )
    users = [f"SCRAM-SHA-{bits}=[name=soak,password=secret]" for bits in (256, 512)]
    cluster = start_cluster(directory / "broker", settings=settings, scram=users)
    yield Guarded(cluster, f"{HOST}:{plain_sasl}", f"{HOST}:{tls}", f"{HOST}:{tls_sasl}", directory)
    cluster.stop()


def make_certificates(directory: Path) -> None:
    """An authority, a broker's certificate for 127.0.0.1 by it, and an authority that is a stranger."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)

    for name in ("authority", "stranger"):
        openssl(
            *f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem".split()
        )
    request = "req -newkey rsa:2048 -nodes -subj /CN=broker -keyout broker.key -out broker.csr"
    openssl(*request.split())
    write_file(directory, "names", f"subjectAltName=IP:{HOST}\n")
    signed = "-CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -extfile names -out broker.pem"
    openssl("x509", "-req", "-in", "broker.csr", *signed.split())
    openssl(*f"pkcs12 -export -in broker.pem -inkey broker.key -passout pass:{PASSWORD} -out broker.p12".split())


def sasl(guarded: Guarded, mechanism: str, password: str = RIGHT) -> dict[str, Any]:
    path = write_file(guarded.directory, f"password-{password}", password + "\n")
    return {"mechanism": mechanism, "username": "soak", "password_file": path}


def tls(guarded: Guarded, authority: str = "authority") -> dict[str, Any]:
    return {"ca_file": str(guarded.directory / f"{authority}.pem")}


def assert_carried_out(bootstrap: str, security: dict[str, Any]) -> None:
    outcome = run(configuration(bootstrap, seconds=1, security=security))
    assert outcome.end == {"type": "end", "status": "completed"}
    assert outcome.verification["read"] == outcome.verification["acknowledged"] == 1000


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_passwords_are_proven(guarded: Guarded, mechanism: str) -> None:
    assert_carried_out(guarded.plain_sasl, {"sasl": sasl(guarded, mechanism)})


def test_connections_are_encrypted(guarded: Guarded) -> None:
    assert_carried_out(guarded.tls, {"tls": tls(guarded)})
    assert_carried_out(guarded.tls_sasl, {"tls": tls(guarded), "sasl": sasl(guarded, "SCRAM-SHA-512")})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_refused_by_the_brokers_own_word(guarded: Guarded, mechanism: str) -> None:
    security = {"sasl": sasl(guarded, mechanism, "wrong")}
    outcome = run(configuration(guarded.plain_sasl, security=security))
    assert (outcome.status, outcome.windows) == (1, [])
    assert "SASL_AUTHENTICATION_FAILED" in outcome.end["message"]
    assert "wrong" not in outcome.end["message"]


def test_a_broker_that_another_authority_vouches_for_is_not_trusted(guarded: Guarded) -> None:
    outcome = run(configuration(guarded.tls, security={"tls": tls(guarded, "stranger")}))
    assert (outcome.status, outcome.windows) == (1, [])
    assert "certificate" in outcome.end["message"]


def test_brokers_are_asked_as_the_load_would_connect(guarded: Guarded) -> None:
    right = {"tls": tls(guarded), "sasl": sasl(guarded, "SCRAM-SHA-256")}
    answered = check(guarded.tls_sasl, security=right)
    assert ([server["fault"] for server in answered["servers"]], answered["faults"]) == ([None], [])
    wrong = right | {"sasl": sasl(guarded, "SCRAM-SHA-256", "wrong")}
    assert "SASL_AUTHENTICATION_FAILED" in check(guarded.tls_sasl, security=wrong)["servers"][0]["fault"]
    stranger = right | {"tls": tls(guarded, "stranger")}
    assert "certificate" in check(guarded.tls_sasl, security=stranger)["servers"][0]["fault"]
    # Without TLS where the broker wants it.
    assert check(guarded.tls)["servers"][0]["fault"]
