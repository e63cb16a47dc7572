"""Drives of other hosts of a run that a new worker goes on with."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from testkit.ports import free_port

from cliffwatch.coordinator.context import RunContext
from cliffwatch.coordinator.remote_drives import drive_facts, drive_of
from cliffwatch.coordinator.run import _watching, _wear
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.settings import read_settings
from cliffwatch.part.lines import DriveBelow
from cliffwatch.telemetry.drives import RemoteDrive


def test_a_prometheus_that_is_not_known_any_more_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLIFFWATCH_PROMETHEUS_SERVERS", raising=False)
    recorded: list[tuple[str, dict[str, Any]]] = []
    context = SimpleNamespace(
        order=SimpleNamespace(drives=PrometheusDrives(selector='device="sda"', server="staging")),
        settings=read_settings(),
        record_event=lambda _, name, **detail: recorded.append((name, detail)),
    )
    with _watching(cast("RunContext", context), [RemoteDrive("a/sda", "0:1")]) as watched:
        assert watched is None
    ((name, detail),) = recorded
    assert (name, detail["drives"]) == ("drives_missing", ["a/sda"])
    assert "the Prometheus is not known" in detail["reason"]


def test_a_drive_is_the_same_after_a_worker_took_the_run_over() -> None:
    drive = RemoteDrive("b1/nvme0n1", "0:2", "b1:9896", model="Fast", serial="S1", wwn="nvme.1", firmware="F2")
    assert drive_of(drive_facts(drive)) == drive
    before = {name: value for name, value in drive_facts(drive).items() if name != "instance"}
    assert drive_of(before).instance == "", "as an earlier version wrote it"


@pytest.mark.parametrize("is_virtual", [False, True])
def test_write_amplification_is_looked_up_in_real_time_only(monkeypatch: pytest.MonkeyPatch, is_virtual: bool) -> None:
    """The drive below a simulated run's file does something else."""
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", f"http://127.0.0.1:{free_port()}")
    context = SimpleNamespace(
        is_virtual=is_virtual,
        order=SimpleNamespace(drives=None),
        settings=read_settings(),
        run_clock=SimpleNamespace(now=lambda: 0.0),
    )
    with _wear(cast("RunContext", context), [DriveBelow("sda", None, "8:0")]):
        polling = [thread for thread in threading.enumerate() if thread.name == "wear"]
    assert bool(polling) is not is_virtual
