"""A drive that hangs keeps no client from the service, and is named by whatever would need it."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from testkit.emulated import EmulatedDrive, emulated_drive, file_system
from testkit.service import Service
from testkit.waiting import wait_until

from cliffwatch.base.questions import PATIENCE_SECONDS

WORKLOAD = {
    "version": 1,
    "name": "short",
    "engine": "synthetic",
    "window": "1s",
    "phases": {"soak": "2s", "cool_down": "0s"},
    "load": {"operations_per_second": 100},
}
FIO = {"job": "[w]\nrw=write\nbs=16k\nsize=1m\ndirect=1\nrate_iops=100\n"}
#: More than the service answers at once.
VISITORS = 60


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[EmulatedDrive]:
    with emulated_drive(tmp_path / "drive", "--capacity=256MiB", "--timing=off") as drive:
        yield drive


def test_the_service_goes_on_beside_a_drive_that_hangs(drive: EmulatedDrive, tmp_path: Path) -> None:
    with file_system(drive.node, tmp_path / "mount") as place, Service(tmp_path / "state") as service:
        assert spoken_of(service, drive)["code"] == "mounted"
        os.kill(drive.pid, signal.SIGSTOP)
        try:
            check_hung(service, drive, place)
        finally:
            os.kill(drive.pid, signal.SIGCONT)
        wait_until(lambda: spoken_of(service, drive)["code"] == "mounted", "the drive's answer")
        accepted = submit(service, {"kind": "directory", "path": str(place)})
        assert accepted.status_code == 201, accepted.text
        service.client.post(f"/api/v1/runs/{accepted.json()['id']}/stop").raise_for_status()


def check_hung(service: Service, drive: EmulatedDrive, place: Path) -> None:
    """Many look at the drives at once; who wants a run elsewhere gets it."""
    begun = time.monotonic()
    with ThreadPoolExecutor(VISITORS) as visitors:
        listed = [visitors.submit(service.client.get, "/api/v1/drives") for _ in range(VISITORS)]
        assert {each.result().status_code for each in listed} == {200}
    assert time.monotonic() - begun < 6 * PATIENCE_SECONDS
    said = spoken_of(service, drive)
    assert said["code"] == "silent"
    assert f"{drive.node.name} has not answered for" in said["message"]
    refused = submit(service, {"kind": "directory", "path": str(place)})
    assert (refused.status_code, refused.json()["code"]) == (503, "target_silent"), refused.text
    assert "has not answered for 5 s" in refused.json()["errors"][0]["message"]
    elsewhere = submit(service, {"kind": "synthetic", "name": "elsewhere"})
    assert elsewhere.status_code == 201
    run = f"/api/v1/runs/{elsewhere.json()['id']}"
    wait_until(lambda: service.client.get(run).json()["state"] == "finished", "the end of a run elsewhere")
    assert len(service.client.get("/api/v1/runs").json()["items"]) == 1


def submit(service: Service, target: dict[str, str]) -> httpx.Response:
    changes = {"engine": "fio", "load": FIO} if target["kind"] == "directory" else {}
    return service.client.post("/api/v1/runs", json={"workload": WORKLOAD | changes, "target": target})


def spoken_of(service: Service, drive: EmulatedDrive) -> dict[str, str]:
    """The first thing that speaks against the drive."""
    listed = service.client.get("/api/v1/drives").json()["items"]
    first: dict[str, str] = next(each for each in listed if each["name"] == drive.node.name)["objections"][0]
    return first
