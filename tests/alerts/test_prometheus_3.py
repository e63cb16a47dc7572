"""What Prometheus of the stack from images reads, by the checker of its own major version."""

import re
import subprocess
from pathlib import Path

import pytest
from testkit.compose.composition import services
from testkit.promtool import MODULE, promtool

from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.stack.configuration import prometheus_configuration

pytestmark = [
    pytest.mark.real(why="promtool of version 3 is built"),
    pytest.mark.alone(why="the first time, a compiler takes every processor for minutes"),
    pytest.mark.timeout(1800),
]


def check(*arguments: str | Path) -> str:
    done = subprocess.run([promtool(), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_of_the_version_that_the_stack_has() -> None:
    version = re.search(r"github.com/prometheus/prometheus v0\.(\d)(\d+)\.(\d+)\b", (MODULE / "go.mod").read_text())
    assert version is not None
    major, minor, patch = (int(part) for part in version.groups())
    assert f"prometheus:v{major}.{minor}.{patch}" in str(services()["prometheus"]["image"])


def test_it_accepts_every_rule() -> None:
    check("check", "rules", "--lint=all", "--lint-fatal", *sorted((ALERTS_DIRECTORY / "rules").glob("*.yaml")))


@pytest.mark.parametrize("path", sorted((ALERTS_DIRECTORY / "tests").glob("*.yaml")), ids=lambda path: path.stem)
def test_alerts_fire_and_stay_silent_as_their_unit_tests_say(path: Path) -> None:
    check("test", "rules", path)


def test_it_accepts_the_configuration(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("cw_token", encoding="utf-8")
    configuration = tmp_path / "prometheus.yaml"
    configuration.write_text(
        prometheus_configuration(
            service_address="127.0.0.1:9899",
            prometheus_address="127.0.0.1:9801",
            alertmanager_address="127.0.0.1:9802",
            exporters={"node": "127.0.0.1:9803", "ebpf": "127.0.0.1:9804", "drive": "127.0.0.1:9805"},
            token_file=token,
            major_version=3,
        ),
        encoding="utf-8",
    )
    assert "SUCCESS" in check("check", "config", configuration)
    check("check", "config", "--syntax-only", ALERTS_DIRECTORY / "prometheus" / "prometheus.yaml")
