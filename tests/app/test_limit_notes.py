"""A limit on write amplification is said to be of no use before a run, and not only at its end."""

import time
from pathlib import Path

from testkit.loops import LoopDrive, command, loop_drive, mounted
from testkit.ports import free_port
from tests.telemetry.prometheus_server import PrometheusServer, fill

from cliffwatch.app.limit_notes import notes_on_limits
from cliffwatch.gate import Examination, examine
from cliffwatch.model.target import DirectoryTarget
from cliffwatch.model.workload import Workload
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.drive_health import DriveSource

LIMITS = ["write amplification <= 2", "p99 <= 1s"]


def _notes(examination: Examination, url: str | None) -> list[str]:
    load = {"engine": "synthetic", "phases": {"soak": "1m"}, "load": {}}
    workload = Workload.model_validate({"version": 1, "name": "w", "limits": LIMITS, **load})
    drives = [drive.name for drive in examination.drives]
    source = DriveSource(None if url is None else PrometheusAddress(url))
    return notes_on_limits(workload, drives, source, time.time())


def _counter(drive: LoopDrive) -> list[str]:
    name, now = "cliffwatch_drive_media_written_bytes", int(time.time())
    samples = [f'{name}_total{{device="{drive.node.name}"}} {at} {at}' for at in range(now - 60, now + 60, 10)]
    return [f"# TYPE {name} counter", *samples]


def test_a_limit_is_judged_only_where_a_drive_reports_the_bytes_of_its_media(tmp_path: Path) -> None:
    prometheus = PrometheusServer(tmp_path / "prometheus")
    with loop_drive(tmp_path / "one.img") as one, loop_drive(tmp_path / "two.img") as two:
        fill(prometheus.data, _counter(one))
        found = []
        for drive in (one, two):
            command("mkfs.ext4", "-q", drive.node)
            with mounted(drive.node, tmp_path / "volume") as place:
                found.append(examine(DirectoryTarget(path=str(place)), "run"))
        with prometheus:
            assert _notes(found[0], prometheus.url) == []
            (note,) = _notes(found[1], prometheus.url)
        assert note.startswith(
            f'the limit "write amplification <= 2" cannot be judged, since {two.node.name} reports no bytes written to '
            "its media: the run would be invalid; leave the limit out, or see that "
        )
        (note,) = _notes(found[0], f"http://127.0.0.1:{free_port()}")
        assert f"if it stays unknown which bytes {one.node.name} writes to its media: the run would be invalid" in note
        assert "does not answer" in note
