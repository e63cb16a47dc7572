"""What Prometheus is given to scrape of the aging drives."""

from pathlib import Path

import pytest
from tests.api.harness import serving

from cliffwatch.labs.aging import routes
from cliffwatch.labs.aging.lifecycle import AgingDrive
from cliffwatch.model.settings import read_settings


def drive(name: str, device: str | None, url: str | None) -> AgingDrive:
    return AgingDrive(name, f"CW{name}", Path("/state/drives") / name, device, 1 << 30, None, url, False)


def test_drives_that_are_disks_and_are_served_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drives = [
        drive("old", "loop7", "http://127.0.0.1:4007"),
        drive("detached", None, "http://127.0.0.1:4008"),
        drive("dead", "loop9", None),
    ]
    monkeypatch.setattr(routes, "aging_drives", lambda state_directory: drives)
    with serving(read_settings(state_directory=tmp_path / "state")) as api:
        found = api.get("/discovery/drives").json()
    labels = {"job": "drive", "device": "loop7", "__scrape_interval__": "1s", "__scrape_timeout__": "1s"}
    assert found == [{"targets": ["127.0.0.1:4007"], "labels": labels}]
