"""What goes wrong with a target, as a client of the service sees it, and what is left of it then."""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.service import Service
from testkit.storage_engine import SMALL
from testkit.waiting import wait_until


def order(target: Path, **changes: Any) -> dict[str, Any]:
    workload = {
        "version": 1,
        "name": "small",
        "engine": "storage",
        "window": "500ms",
        "phases": {"soak": "1m", "cool_down": "0s"},
        "load": SMALL | changes,
    }
    return {"workload": workload, "target": {"kind": "directory", "path": str(target)}}


def refusal(service: Service, run_id: str, body: dict[str, Any]) -> tuple[int, str, str]:
    """Status, code and everything that was said; nothing is left of the run."""
    answer = service.client.put(f"/api/v1/runs/{run_id}", json=body)
    assert service.client.get(f"/api/v1/runs/{run_id}").status_code == 404
    problem = answer.json()
    return answer.status_code, problem["code"], " ".join([problem["detail"], *map(str, problem["errors"])])


def windows(service: Service, run_id: str) -> list[dict[str, Any]]:
    return list(service.client.get(f"/api/v1/runs/{run_id}/windows?limit=200").raise_for_status().json()["items"])


def test_a_directory_of_the_runs_name_that_is_not_its_own(tmp_path: Path, service: Service) -> None:
    thesis = tmp_path / "cliffwatch-mine" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("mine")
    status, code, said = refusal(service, "mine", order(tmp_path))
    assert (status, code) == (409, "target_unsafe")
    assert f"{thesis.parent} is there and is not this run's own" in said
    assert thesis.read_text() == "mine"


def test_retention_larger_than_the_volume(tmp_path: Path, service: Service) -> None:
    status, code, said = refusal(service, "large", order(tmp_path, retention_size="900TiB"))
    assert (status, code) == (409, "space_insufficient")
    assert "900.0 TiB would be written to" in said
    assert "must stay free" in said


def test_a_target_that_is_read_only(tmp_path: Path, service: Service) -> None:
    with loop_drive(tmp_path / "image", 32 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, tmp_path / "mount", "-o", "ro") as mount_point:
            status, code, said = refusal(service, "unwritable", order(mount_point))
    assert (status, code) == (409, "target_unsafe")
    assert str(mount_point) in said
    assert "read-only" in said


@pytest.mark.parametrize("keep", [False, True])
def test_a_volume_that_fills_up_under_way(keep: bool, tmp_path: Path, service: Service) -> None:
    run_id = f"full-{keep}".lower()
    with loop_drive(tmp_path / "image", 64 * MIB) as drive:
        command("mkfs.ext4", "-q", "-m", "0", drive.node)
        with mounted(drive.node, tmp_path / "mount") as mount_point:
            body = order(mount_point, retention_size="40MiB", rate="16MB", keep_files=keep)
            service.client.put(f"/api/v1/runs/{run_id}", json=body).raise_for_status()
            wait_until(lambda: len(windows(service, run_id)) >= 1, "a window")
            take_all_space(mount_point / "other-data")
            run = service.wait_for(run_id, "finished")
            left = list((mount_point / f"cliffwatch-{run_id}" / "log").glob("*/*.log"))
    assert run["verdict"] == "failed"
    assert any("the volume is full: give the load a smaller retention" in reason for reason in run["reasons"])
    measured = windows(service, run_id)
    assert measured[0]["counters"]["operations"] > 0
    assert all(after["seq"] == before["seq"] + 1 for before, after in pairwise(measured))
    assert service.client.get(f"/api/v1/runs/{run_id}/report").json()["verdict"]["name"] == "failed"
    assert bool(left) == keep


def take_all_space(path: Path) -> None:
    with path.open("wb") as file:
        for step in range(64 * 16):
            try:
                os.posix_fallocate(file.fileno(), step * MIB // 16, MIB // 16)
            except OSError:
                return


def test_more_partitions_than_file_handles(tmp_path: Path) -> None:
    limited = ("prlimit", "--nofile=1024:1024", "setpriv", "--inh-caps=-sys_resource", "--bounding-set=-sys_resource")
    (tmp_path / "target").mkdir()
    with Service(tmp_path / "state", before=limited) as service:
        body = order(tmp_path / "target", partitions=2_000, retention_size="512MiB")
        service.client.put("/api/v1/runs/many", json=body).raise_for_status()
        run = service.wait_for("many", "finished")
    assert run["verdict"] == "failed"
    assert any("partitions: as many need" in reason and "ulimit -Hn" in reason for reason in run["reasons"])
    assert list((tmp_path / "target").iterdir()) == []
