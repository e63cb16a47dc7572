"""For how long a cloud's volume was over its limits, from what each version of nvme-cli gives."""

import json
from pathlib import Path

import pytest
from cliffwatch_drive_exporter.commands import DriveError
from cliffwatch_drive_exporter.controllers import Controller
from cliffwatch_drive_exporter.limits import has_limits, limits_of_page, limits_of_stats
from tests.exporters.drive.exporter import DRIVES, Machine, running

#: As the answers have it, in microseconds; the page's order of limits.
EBS = {"volume_iops": 83.25, "volume_throughput": 0.0, "instance_iops": 0.0, "instance_throughput": 1.5}
INSTANCE = {"volume_iops": 0.0, "volume_throughput": 0.0, "instance_iops": 0.25, "instance_throughput": 2.0}


@pytest.mark.parametrize(
    ("answers", "limits", "asked"),
    [
        ("ebs", EBS, ["amzn-stats"] * 2),
        ("ebs-older-nvme-cli", EBS, ["amzn-stats", "get-log", "get-log"]),
        ("instance-storage", INSTANCE, ["amzn-stats", "get-log", "get-log"]),
    ],
)
def test_the_time_over_each_limit_is_exposed_in_seconds(
    machine: Machine, answers: str, limits: dict[str, float], asked: list[str]
) -> None:
    machine.add(0, "VOLUME", answers)
    name = "cliffwatch_drive_limit_exceeded_seconds_total"
    with running(machine) as exporter:
        found = exporter.wait(lambda found: any(each.startswith(name) for each in found), "the limits")
    assert {each: value for each, value in found.items() if each.startswith(name)} == {
        f'{name}{{device="nvme0n1",limit="{limit}",serial="VOLUME"}}': pytest.approx(value)
        for limit, value in limits.items()
    }
    assert [each for each in machine.asked(0) if each in ("amzn-stats", "get-log")][: len(asked)] == asked


def test_a_volume_that_counts_none_has_no_series_and_is_asked_once(machine: Machine) -> None:
    answers = machine.add(0, "VOLUME", "ebs")
    (answers / "amzn-stats.json").unlink()
    with running(machine) as exporter:
        polls = 'cliffwatch_drive_polls_total{device="nvme0n1",serial="VOLUME"}'
        found = exporter.wait(lambda found: found.get(polls, 0) >= 2, "another poll")
    assert not [each for each in found if "limit_exceeded" in each]
    assert machine.asked(0).count("amzn-stats") == machine.asked(0).count("get-log") == 1


def test_only_amazons_volumes_are_asked() -> None:
    for model, has in (("Amazon Elastic Block Store", True), ("Amazon EC2 NVMe Instance Storage", True), ("", False)):
        assert has_limits(Controller("nvme0", "nvme0n1", "", model)) is has


def test_other_names_of_an_instances_counters_are_the_same() -> None:
    named = {"ec2_instance_performance_exceeded_iops": 42, "instance_store_volume_performance_exceeded_tp": "7"}
    assert limits_of_stats(named) == {"instance_iops": pytest.approx(42e-6), "instance_throughput": pytest.approx(7e-6)}


@pytest.mark.parametrize("page", [b"", bytes(95), bytes(4096), b"\x10\xb5\x23\x3d" + bytes(4092)])
def test_a_page_of_another_format_is_refused(page: bytes) -> None:
    with pytest.raises(DriveError, match="page D0h has"):
        limits_of_page(page)


def test_statistics_without_a_limit_are_refused() -> None:
    stats = json.loads(Path(DRIVES / "ebs" / "amzn-stats.json").read_text())
    with pytest.raises(DriveError, match="no time over a limit"):
        limits_of_stats({name: value for name, value in stats.items() if "exceeded" not in name})
