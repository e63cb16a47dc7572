"""A service that could take no run says so, and what is missing."""

from pathlib import Path

from testkit.small_disk import small_disk
from tests.api.harness import serving

from cliffwatch.model.settings import read_settings


def test_a_full_disk_of_the_journals_is_said(tmp_path: Path) -> None:
    with small_disk(tmp_path / "runs") as disk:
        settings = read_settings(state_directory=tmp_path / "state", runs_directory=disk.path)
        with serving(settings) as api:
            assert api.client.get("/readyz").status_code == 200
            disk.fill()
            unready = api.client.get("/readyz")
            assert (unready.status_code, unready.json()["code"]) == (503, "not_ready")
            assert (
                unready.json()["detail"]
                == f"the disk below {disk.path} is full, and journals are written there; make room"
            )
            disk.free()
            assert api.client.get("/readyz").status_code == 200
