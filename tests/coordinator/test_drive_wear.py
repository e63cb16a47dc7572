"""Write amplification in windows: what of a drive's counters is new enough, and enough, for a ratio."""

import logging

import pytest
from testkit.ports import free_port

from cliffwatch.coordinator.drive_wear import BYTES_LEAST, DriveWear
from cliffwatch.model.window import EngineWindow
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.drive_health import BytesWritten, DriveSource

NOW = 10_000.0


def gauges(wear: DriveWear, end: float = NOW) -> dict[str, float]:
    window = EngineWindow(end - 10, end, {})
    wear.add_to(window)
    return window.gauges


def watching(numbers: dict[str, str], source: DriveSource | None = None) -> DriveWear:
    return DriveWear(source or DriveSource(None), "", numbers, lambda: NOW)


def counted(amplification: float, *moments: float, bytes_per_second: float = 100e6) -> dict[float, BytesWritten]:
    return {
        NOW - ago: BytesWritten(host, amplification * host)
        for ago in moments
        if (host := bytes_per_second * (NOW - ago))
    }


def test_a_run_with_one_drive_has_one_gauge() -> None:
    wear = watching({"nvme0n1": "259:0"})
    wear.add({"nvme0n1": counted(2.5, 95, 80, 65, 50, 35, 20, 5), "sda": counted(9.0, 80, 5)})
    assert gauges(wear) == {"device_write_amplification": 2.5}


def test_of_several_drives_each_has_its_own_and_all_have_one_together() -> None:
    wear = watching({"nvme0n1": "259:0", "nvme1n1": "259:1"})
    wear.add({"nvme0n1": counted(1.0, 70, 5), "nvme1n1": counted(3.0, 70, 5)})
    assert gauges(wear) == {
        "device_write_amplification": 2.0,
        "259:0.write_amplification": 1.0,
        "259:1.write_amplification": 3.0,
    }
    wear = watching({"nvme0n1": "259:0", "nvme1n1": "259:1"})
    wear.add({"nvme1n1": counted(3.0, 70, 5)})
    assert gauges(wear) == {"259:1.write_amplification": 3.0}, "what one drive does not report, all together do not"


def test_later_windows_see_what_was_scraped_by_then() -> None:
    wear = watching({"sda": "8:0"})
    before = counted(1.0, 200, 140, 80)
    total = before[NOW - 80]
    wear.add({"sda": before | {NOW - 20: BytesWritten(total.host + 6e9, total.media + 12e9)}})
    assert gauges(wear, NOW - 75) == {"device_write_amplification": 1.0}
    assert gauges(wear, NOW - 15) == {"device_write_amplification": 2.0}


def test_write_amplification_of_slow_writes_covers_a_longer_span() -> None:
    """For half a minute where that is enough, as far back as that takes where it is not."""
    wear = watching({"sda": "8:0"})
    slow = {NOW - 120: BytesWritten(0, 0), NOW - 60: BytesWritten(200e6, 300e6), NOW - 5: BytesWritten(400e6, 1200e6)}
    wear.add({"sda": slow})
    assert gauges(wear) == {"device_write_amplification": 3.0}
    wear.add({"sda": {moment: BytesWritten(10 * each.host, 10 * each.media) for moment, each in slow.items()}})
    assert gauges(wear) == {"device_write_amplification": 4.5}


@pytest.mark.parametrize(
    "scrapes",
    [
        {},
        counted(2.0, 5),
        counted(2.0, 40, 30, 15),
        counted(2.0, 300, 5),
        counted(2.0, 150, 90),
        counted(2.0, 70, 5, bytes_per_second=0.9 * BYTES_LEAST / 65),
        {NOW - 70: BytesWritten(9e12, 18e12), NOW - 5: BytesWritten(1e9, 2e9)},
        {NOW - 70: BytesWritten(1e12, 2e12), NOW - 5: BytesWritten(2e12, 2e12)},
    ],
    ids=[
        "never",
        "once",
        "for-less-than-half-a-minute",
        "too-far-apart",
        "too-long-ago",
        "little",
        "reset",
        "no-media",
    ],
)
def test_write_amplification_is_absent_without_enough_recent_counters(scrapes: dict[float, BytesWritten]) -> None:
    wear = watching({"sda": "8:0"})
    wear.add({"sda": scrapes})
    assert gauges(wear) == {}


def test_a_prometheus_that_does_not_answer_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    wear = watching({"sda": "8:0"}, DriveSource(PrometheusAddress(f"http://127.0.0.1:{free_port()}")))
    with caplog.at_level(logging.WARNING), wear:
        for _ in range(3):
            wear.ask()
    (record,) = caplog.records
    assert record.getMessage().startswith("windows have no write amplification: Prometheus at")
    assert gauges(wear) == {}


def test_without_a_prometheus_or_a_drive_nothing_is_asked() -> None:
    for wear in (watching({"sda": "8:0"}), watching({}, DriveSource(PrometheusAddress("http://127.0.0.1:1")))):
        with wear:
            assert gauges(wear) == {}
