"""What nvme-cli's JSON means, in every way that its versions write it."""

import json
from typing import Any

import pytest
from cliffwatch_drive_exporter.commands import DriveError, Reason
from cliffwatch_drive_exporter.logs import (
    Abilities,
    Media,
    SmartHealth,
    abilities,
    endurance_group_media,
    fdp_media,
    health,
    ocp_media,
)
from tests.exporters.drive.exporter import DRIVES


def answer(drive: str, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DRIVES / drive / f"{name}.json").read_text())
    return document


def test_health_is_in_base_units() -> None:
    assert health(answer("ocp", "smart-log")) == SmartHealth(431_700_211 * 512_000, 41.0, 1.0, 0.07, 0)
    worn = health(answer("another-makers-page", "smart-log"))
    assert worn.percentage_used_ratio == 1.04
    assert worn.spare_ratio == 0.71
    assert worn.media_errors == 17


def test_values_a_drive_does_not_report_are_unknown_and_not_zero() -> None:
    assert health(answer("cloud", "smart-log")).temperature_celsius is None
    assert health(answer("reports-no-writes", "smart-log")).host_written_bytes is None
    assert health({"data_units_written": 5}) == SmartHealth(2_560_000, None, None, None, None)


@pytest.mark.parametrize("written", [431700211, "431700211", "431,700,211", 431700211.0, {"value": 431700211}])
def test_large_numbers_are_read_however_a_version_writes_them(written: object) -> None:
    assert health({"data_units_written": written}).host_written_bytes == 431_700_211 * 512_000


@pytest.mark.parametrize("written", [-1, "many", True, [1], None])
def test_a_malformed_count_in_a_drive_log_is_unknown(written: object) -> None:
    assert health({"data_units_written": written}).host_written_bytes is None


def test_each_log_counts_media_bytes_in_its_own_unit() -> None:
    assert ocp_media(answer("ocp", "ocp-smart-add-log")) == Media(int(431_700_211 * 512_000 * 2.6), 0.03)
    assert ocp_media(answer("ocp-newer-names", "ocp-smart-add-log")).free_blocks_ratio == 0.61
    assert fdp_media(answer("fdp", "fdp-stats")) == Media(int(77_001_400 * 512_000 * 1.02))
    assert endurance_group_media(answer("endurance-group", "endurance-log")) == Media(199_339 * 10**9)


def test_the_high_word_counts() -> None:
    document = answer("ocp", "ocp-smart-add-log")
    document["Physical media units written"] = {"hi": 2, "lo": 5}
    assert ocp_media(document).written_bytes == 2 * 2**64 + 5


@pytest.mark.parametrize(
    ("drive", "expected"),
    [
        ("ocp", Abilities(0, False)),
        ("fdp", Abilities(1, True)),
        ("endurance-group", Abilities(1, False)),
        ("two-groups", Abilities(2, False)),
    ],
)
def test_a_controller_says_what_it_has(drive: str, expected: Abilities) -> None:
    assert abilities(answer(drive, "id-ctrl")) == expected


def test_groups_count_only_where_the_controller_says_that_it_has_them() -> None:
    assert abilities({"ctratt": 0, "endgidmax": 1}).endurance_groups == 0


@pytest.mark.parametrize(
    ("read", "document"),
    [
        (health, {}),
        (ocp_media, answer("another-makers-page", "ocp-smart-add-log")),
        (ocp_media, {}),
        (ocp_media, {"Physical media units written": {"lo": 5}}),
        (ocp_media, {"Physical media units written": 5}),
        (fdp_media, {"hbmw": 5}),
        (endurance_group_media, {}),
        (endurance_group_media, {"media_units_written": "0"}),
    ],
)
def test_a_different_or_malformed_drive_log_is_refused(read: Any, document: dict[str, Any]) -> None:
    with pytest.raises(DriveError) as raised:
        read(document)
    assert raised.value.reason is Reason.OUTPUT


def test_a_log_of_zeros_is_of_a_drive_that_reports_nothing() -> None:
    names = ("data_units_written", "temperature", "avail_spare", "percent_used", "media_errors", "power_cycles")
    assert health(dict.fromkeys(names, 0)) == SmartHealth(None, None, None, None, None)
    assert health(dict.fromkeys(names, 0) | {"temperature": 300}).spare_ratio == 0.0
