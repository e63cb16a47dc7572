"""Each preset as a user starts it: by its name, through the service, on a directory and on an aging drive."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.service import Service
from tests.engines.storage.conftest import ROOMY_BYTES

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.labs.aging.lifecycle import AttachRequest, attach, detach

PRESETS = ("drill", "laptop-broker", "field-report-24h", "field-report-36h")
#: Nothing else of a preset is changed. One gigabyte a second makes it short.
SHORT = {"window": "500ms", "warm_up": "0s", "baseline": "1s", "soak": "2s", "cool_down": "0s"}
LOAD_SECONDS = 3
ANOTHER = pytest.mark.real(why="one preset shows the way that all of them go")


@pytest.fixture(scope="module")
def aging_drive(memory: Path) -> Iterator[Path]:
    """Where an aging drive is mounted, with ext4, that takes as long as its flash would."""
    state, clock = memory / "state", SystemClock()
    state.mkdir()
    order = AttachRequest({"capacity": f"{ROOMY_BYTES}B"}, discard=True)
    drive = attach(state, "presets", clock, order, ProcessIdentity.of(os.getpid()))
    assert drive.mount_point is not None
    yield drive.mount_point
    detach(state, "presets", clock, delete=True)


def begin(service: Service, place: Path, workload: str | dict[str, Any]) -> str:
    target = {"kind": "directory", "path": str(place)}
    order = {"workload": workload, "target": target, "durations": SHORT}
    answer = service.client.post("/api/v1/runs", json=order)
    assert answer.status_code == 201, answer.text
    run_id: str = answer.json()["id"]
    return run_id


def assert_it_ran(service: Service, run_id: str) -> None:
    run = service.wait_for(run_id, "finished")
    # How well a drive of a test's does is not the preset's matter.
    assert run["verdict"] in {"pass", "degraded", "invalid"}, run["reasons"]
    windows = items(service, run_id, "windows")
    assert len(windows) == LOAD_SECONDS / 0.5
    assert sum(window["counters"]["operations"] for window in windows) > 0
    verified = detail(items(service, run_id, "events"), "verified")
    assert verified["intact"] > 0
    assert verified["lost"] == verified["duplicated"] == verified["reordered"] == verified["corrupted"] == 0


def items(service: Service, run_id: str, kind: str) -> list[dict[str, Any]]:
    found = service.client.get(f"/api/v1/runs/{run_id}/{kind}?limit=200").raise_for_status().json()
    assert found["next_page"] is None
    return list(found["items"])


def detail(events: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [event["detail"] for event in events if event["name"] == name]
    return dict(found)


@pytest.mark.parametrize("preset", [PRESETS[0], *(pytest.param(preset, marks=ANOTHER) for preset in PRESETS[1:])])
def test_a_preset_runs_on_a_directory_and_on_an_aging_drive(
    preset: str, roomy_directory: Path, aging_drive: Path, service: Service
) -> None:
    places = (roomy_directory, aging_drive)
    for run_id in [begin(service, place, preset) for place in places]:
        assert_it_ran(service, run_id)
    assert [path.name for place in places for path in place.iterdir()] == ["lost+found"] * 2


def test_a_preset_on_a_volume_that_is_too_small_is_refused_and_can_be_made_smaller(
    tmp_path: Path, service: Service
) -> None:
    with loop_drive(tmp_path / "image", 1024 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, tmp_path / "mounted") as mount_point:
            target = {"kind": "directory", "path": str(mount_point)}
            refused = service.client.post("/api/v1/runs", json={"workload": "field-report-36h", "target": target})
            assert (refused.status_code, refused.json()["code"]) == (422, "workload_invalid")
            (fault,) = refused.json()["errors"]
            assert fault["field"] == "load.retention_ratio"
            assert "288 logs of two segments of 128.0 MiB take 72.0 GiB" in fault["message"]
            # As docs/engines/storage.md says.
            document = service.client.get("/api/v1/workloads/field-report-36h").json()["document"]
            document["load"] |= {"rate": "10MB", "style_changes": {"segment_size": "1MiB", "preallocation": "256KiB"}}
            assert_it_ran(service, begin(service, mount_point, document))
