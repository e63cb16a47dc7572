"""Whatever stands where Prometheus should be: the attempt ends, says why, and leaves a gap."""

from pathlib import Path

import pytest
from testkit.recorded_runs import LOAD_START
from tests.telemetry import hostile_server
from tests.telemetry.filled_runs import make_run
from tests.telemetry.hostile_server import Behaviour, HostileServer

from cliffwatch.telemetry import prometheus
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.collector import collect_telemetry
from cliffwatch.telemetry.reader import read

BEHAVIOURS = [
    (hostile_server.hang, "does not answer"),
    (hostile_server.drip, "no whole answer within"),
    (hostile_server.drip_head, "no whole answer within"),
    (hostile_server.garbage, "does not answer"),
    (hostile_server.slam, "does not answer"),
    (hostile_server.another_server, "not Prometheus"),
    (hostile_server.not_ready, "not ready (503)"),
    (hostile_server.huge, "longer than 1 MiB"),
    (hostile_server.lie, "makes no sense"),
]
_SLOW = (hostile_server.hang, hostile_server.drip, hostile_server.drip_head)


@pytest.mark.parametrize(("behaviour", "words"), BEHAVIOURS, ids=[row[0].__name__ for row in BEHAVIOURS])
def test_an_attempt_ends_with_a_gap_and_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, words: str
) -> None:
    monkeypatch.setattr(prometheus, "ANSWER_LIMIT_BYTES", 1 << 20)
    directory = make_run(tmp_path / "run-1", 30)
    # Those that answer have time to, however busy the machine is.
    seconds = 0.5 if behaviour in _SLOW else 30.0
    with HostileServer(behaviour) as server:
        result = collect_telemetry(directory, PrometheusAddress(server.url), float("inf"), seconds)
    assert words in result.missing
    assert (result.rows, result.parts) == (0, 0)
    telemetry = read(directory)
    assert telemetry is not None
    (gap,) = telemetry.gaps
    assert (gap.start, gap.end, gap.reason) == (LOAD_START, LOAD_START + 300, result.missing)


@pytest.mark.parametrize("url", ["", "localhost", "file:///etc/passwd", "http://[", "http://nowhere.invalid"])
def test_a_url_that_leads_nowhere_is_named(tmp_path: Path, url: str) -> None:
    directory = make_run(tmp_path / "run-1", 30)
    missing = collect_telemetry(directory, PrometheusAddress(url), float("inf"), seconds=5).missing
    assert "is not a URL" in missing or "does not answer" in missing
    assert url in missing
