"""The drives' health, asked of a real Prometheus that holds it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from testkit.ports import free_port
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.coordinator.drive_wear import DriveWear
from cliffwatch.model.window import EngineWindow
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.drive_health import DriveHealth, DriveSource, drive_health, write_amplification
from cliffwatch.telemetry.prometheus import QueryFailed

START = 1_790_000_000
NOW = START + 900
STEP = 10
MIB = 1 << 20


def _lines() -> Iterator[str]:
    moments = range(START, NOW + 1, STEP)
    nvme, aging = '{device="nvme0n1",serial="S1"}', '{device="loop2",serial="S2"}'
    gauges = {
        "cliffwatch_drive_up": {nvme: 1.0, '{device="nvme1n1",serial="S3"}': 0.0},
        "cliffwatch_drive_temperature_celsius": {nvme: 41.0, aging: 25.0},
        "cliffwatch_drive_percentage_used_ratio": {nvme: 1.02},
        "cliffwatch_drive_spare_ratio": {nvme: 0.97},
        "cliffwatch_drive_free_blocks_ratio": {aging: 0.08},
        "cliffwatch_drive_cleaning_copied_bytes_total": {aging: 7.0},
    }
    for name, series in gauges.items():
        yield f"# TYPE {name} gauge"
        for labels, value in series.items():
            yield from (f"{name}{labels} {value} {moment}" for moment in moments)
    counters = {
        "cliffwatch_drive_media_errors": {nvme: 0, aging: 0},
        "cliffwatch_drive_host_written_bytes": {aging: 10 * MIB, nvme: 0},
        "cliffwatch_drive_media_written_bytes": {aging: 25 * MIB, nvme: 0},
    }
    for name, rates in counters.items():
        yield f"# TYPE {name} counter"
        for labels, a_second in rates.items():
            yield from (f"{name}_total{labels} {a_second * (moment - START)} {moment}" for moment in moments)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    server = PrometheusServer(tmp_path_factory.mktemp("health"))
    fill(server.data, _lines())
    with server:
        yield server


def test_drives_of_other_hosts_have_the_names_of_their_hosts(prometheus: PrometheusServer) -> None:
    def of_host(labels: Mapping[str, str]) -> str:
        return f"host/{labels['device']}"

    assert set(drive_health(DriveSource(prometheus.address, of_host), NOW)) == {
        "host/loop2",
        "host/nvme0n1",
        "host/nvme1n1",
    }
    assert write_amplification(DriveSource(prometheus.address, of_host), NOW, 600) == {"host/loop2": pytest.approx(2.5)}


def test_each_drive_says_what_it_counts_and_nothing_else(prometheus: PrometheusServer) -> None:
    reported = drive_health(DriveSource(prometheus.address), NOW)
    aging = DriveHealth(temperature_celsius=25.0, free_blocks_ratio=0.08, media_errors=0.0)
    assert reported["loop2"].write_amplification == pytest.approx(2.5)
    assert replace(reported["loop2"], write_amplification=None) == aging
    assert reported["nvme0n1"] == DriveHealth(
        answers=1.0, temperature_celsius=41.0, percentage_used_ratio=1.02, spare_ratio=0.97, media_errors=0.0
    ), "a drive that was not written to has no write amplification"
    assert reported["nvme1n1"] == DriveHealth(answers=0.0)
    assert set(reported) == {"loop2", "nvme0n1", "nvme1n1"}


def test_windows_of_a_run_have_what_its_drives_amplify(prometheus: PrometheusServer) -> None:
    drives = {"loop2": "7:2", "nvme0n1": "259:0"}
    wear = DriveWear(DriveSource(prometheus.address), 'device=~"loop2|nvme0n1"', drives, lambda: float(NOW))
    with wear:
        wear.ask()
    window = EngineWindow(NOW - STEP, NOW, {})
    wear.add_to(window)
    assert window.gauges == {"7:2.write_amplification": 2.5}, "the other one was not written to"


def test_a_drive_that_is_gone_leaves_no_write_amplification_to_the_next_of_its_name(
    prometheus: PrometheusServer,
) -> None:
    # Prometheus repeats a sample for five minutes, and the increase is over ten.
    assert drive_health(DriveSource(prometheus.address), NOW + 420) == {}


def test_drive_health_reported_long_ago_is_unknown_now(prometheus: PrometheusServer) -> None:
    assert drive_health(DriveSource(prometheus.address), NOW + 3600) == {}


def test_without_prometheus_it_says_why() -> None:
    with pytest.raises(QueryFailed, match="does not answer"):
        drive_health(DriveSource(PrometheusAddress(f"http://127.0.0.1:{free_port()}")), NOW)
    with pytest.raises(QueryFailed, match="turned off"):
        drive_health(DriveSource(None), NOW)
