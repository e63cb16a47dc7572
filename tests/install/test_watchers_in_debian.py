"""The Debian package of the watchers does on a bare Debian what docs/broker-hosts.md says, and nothing leaves loopback
before the host's owner says so."""

import subprocess
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from testkit.debian import Debian, debian
from tests.install.installed import lines_of

pytestmark = [pytest.mark.timeout(1200)]
PAGE = "broker-hosts.md"
#: By bcrypt, of the password "not-for-logs".
HASHED = "$2b$04$MfLwbxXYmA8ajGsUlMuSa.38F9IPdzxgfcO4G1rgbUydW3WPINdu2"


@pytest.fixture(scope="module")
def package() -> Path:
    done = subprocess.run([ROOT / "setup" / "deb"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def machine(request: pytest.FixtureRequest, package: Path, tmp_path_factory: pytest.TempPathFactory) -> Debian:
    its = debian(request.param, tmp_path_factory.mktemp(request.param))
    its.write(f"srv/{package.name}", package.read_bytes())
    lines = [
        "apt-get -qq update",
        "apt-get -qq install --yes --no-install-recommends systemd systemd-sysv dbus curl openssl hostname iproute2",
        "cd /srv",
        # Recommended, so that it comes without being asked for.
        "apt-get -qq install --yes ./cliffwatch-watchers_*.deb",
        *lines_of("Let Prometheus in", PAGE)[2:3],
        "htpasswd -nbBC 10 prometheus not-for-logs | grep '^prometheus:[$]2y[$]10[$]'",
    ]
    done = its.run("\n".join(lines))
    assert done.returncode == 0, done.stdout
    return its


#: Fails at the first line that does not hold, and prints it with the units' journal.
UNDER_SYSTEMD = r"""
trap 'echo "failed: $BASH_COMMAND"; journalctl --no-pager --lines 60' ERR
listening() { ss --no-header --listening --tcp --numeric | awk '{ print $4 }' | sort; }
answers() {
    for _ in {1..300}; do if curl --silent --fail --max-time 5 "$@"; then return; fi; sleep 0.2; done
    return 1
}

for unit in cliffwatch-block-exporter cliffwatch-drive-exporter cliffwatch-gateway; do
    [[ $(systemctl is-enabled $unit) == enabled ]]
done
answers http://127.0.0.1:9895/metrics | grep '^process_cpu_seconds_total'
answers http://127.0.0.1:9435/metrics | grep '^ebpf_exporter_enabled_configs'
grep '^CapEff:.*0000000000000000$' "/proc/$(systemctl show --property=MainPID --value cliffwatch-block-exporter)/status"
[[ $(systemctl is-active cliffwatch-gateway) == inactive ]]
(systemctl status cliffwatch-gateway || true) | grep 'ConditionPathExists=/etc/cliffwatch/gateway.yaml was not met'

CERTIFICATE
cat > /etc/cliffwatch/gateway.yaml <<'END'
tls_server_config:
  cert_file: gateway.crt
  key_file: gateway.key
basic_auth_users:
  prometheus: HASHED
END
echo 'ARGS="--web.listen-address=127.0.0.1:9100"' > /etc/default/prometheus-node-exporter
RESTART
address=https://$(hostname):9896
grep --quiet "$(hostname)" /etc/hosts || echo "127.0.0.1 $(hostname)" >> /etc/hosts
say=(--cacert /etc/cliffwatch/gateway.crt --user prometheus:not-for-logs)
answers "${say[@]}" "$address/node" | grep '^node_'
answers "${say[@]}" "$address/drive" | grep '^process_cpu_seconds_total'
answers "${say[@]}" "$address/block" | grep '^ebpf_exporter_enabled_configs'
refused=$(curl --silent --output /dev/null --write-out '%{http_code}' "${say[@]:0:2}" "$address/node")
[[ $refused == 401 ]]
listening > /srv/listening

cd /srv
apt-get -qq install --yes --reinstall ./cliffwatch-watchers_*.deb
answers "${say[@]}" "$address/drive" | grep '^process_cpu_seconds_total'
apt-get -qq remove --yes cliffwatch-watchers
[[ $(listening) != *9895* && $(listening) != *9896* ]]
apt-get -qq purge --yes cliffwatch-watchers
[[ -e /etc/cliffwatch/gateway.key && ! -e /usr/lib/cliffwatch-watchers ]]
[[ -z $(find /etc/systemd -name 'cliffwatch*') ]]
echo over
"""


def test_watchers_are_kept_running_and_reached_with_a_password_only(machine: Debian) -> None:
    lines = lines_of("Let Prometheus in", PAGE)
    certificate = [line for line in lines if line.startswith(("install ", "openssl "))]
    restart = [line for line in lines if line.startswith("systemctl ")]
    assert (len(certificate), len(restart)) == (2, 2)
    script = UNDER_SYSTEMD.replace("CERTIFICATE", "\n".join(certificate)).replace("HASHED", HASHED)
    done = machine.boot(script.replace("RESTART", "\n".join(restart)), as_machine=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "over"), done.stdout[-4000:]
    listening = machine.upper.joinpath("srv/listening").read_text().split()
    assert [address for address in listening if not address.startswith("127.")] == ["*:9896"]
    assert {"127.0.0.1:9100", "127.0.0.1:9435", "127.0.0.1:9895"} <= set(listening)


def test_the_package_names_no_path_of_this_machine(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--raw-extract", package, tmp_path / "raw"], check=True)
    places = {str(ROOT).encode(), str(Path.home()).encode() + b"/"}
    named = [
        path.relative_to(tmp_path)
        for path in tmp_path.rglob("*")
        if path.is_file() and any(place in path.read_bytes() for place in places)
    ]
    assert named == []


def test_the_same_sources_give_the_same_package(package: Path) -> None:
    first = package.read_bytes()
    subprocess.run([ROOT / "setup" / "deb"], stdout=subprocess.DEVNULL, check=True)
    assert package.read_bytes() == first
