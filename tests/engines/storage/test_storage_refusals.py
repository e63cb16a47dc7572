"""What cannot work is refused before the start, with the field and the remedy; a full volume ends a load in order."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from testkit.loops import command, loop_drive, mounted
from testkit.storage_engine import Outcome, load_of, program, run, running

from cliffwatch.engines.registry import load_of as load_of_workload
from cliffwatch.engines.storage.load import StorageLoad
from cliffwatch.model.workload import parse_workload

MIB = 1024**2


def refusal(outcome: Outcome) -> str:
    assert outcome.status == 2, outcome.error
    assert outcome.windows == []
    assert not outcome.end.restart
    assert outcome.end.message in outcome.error
    return outcome.end.message


def test_a_directory_with_anything_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("mine")
    message = refusal(run(load_of(), tmp_path / "data", 1))
    assert "thesis.txt" in message
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["thesis.txt"]


def test_segments_of_another_load_are_refused(tmp_path: Path) -> None:
    assert run(load_of(), tmp_path / "data", 0.5).status == 0
    assert "another load" in refusal(run(load_of(partitions=4), tmp_path / "data", 0.5))


def test_retention_larger_than_the_volume_is_refused_with_the_arithmetic(tmp_path: Path) -> None:
    message = refusal(run(load_of(retention_size="900TiB"), tmp_path / "data", 1))
    assert message.startswith("retention: ")
    assert str(900 * 1024**4) in message
    assert not (tmp_path / "data" / "log" / "000000" / "00000000000000000000.log").exists()


def test_more_memory_than_allowed_is_refused_with_the_arithmetic(tmp_path: Path) -> None:
    load = load_of(memory_limit="32MiB", buffer_size="64MiB")
    message = refusal(run(load, tmp_path / "data", 1))
    assert message.startswith("memory_bytes: ")
    assert "buffers 67" in message


def test_more_partitions_than_file_handles_are_refused(tmp_path: Path) -> None:
    load = load_of(partitions=2_000, retention_size="512MiB")
    unprivileged = ("prlimit", "--nofile=1024:1024", "setpriv", "--inh-caps=-all", "--bounding-set=-all")
    (tmp_path / "data").mkdir()
    with running(load, tmp_path / "data", 1) as written:
        document = tmp_path / "data.json"
        written.process.kill()
    (tmp_path / "fresh").mkdir()
    content = json.loads(document.read_text()) | {"directory": str(tmp_path / "fresh")}
    document.write_text(json.dumps(content))
    done = subprocess.run(
        [*unprivileged, program(), "storage", "--config", document], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "partitions: " in done.stderr
    assert "ulimit" in done.stderr


def test_an_unwritable_path_is_named(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "image", 32 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, tmp_path / "mount", "-o", "ro") as mount_point:
            outcome = run(load_of(), mount_point, 1)
    assert outcome.status == 1
    assert str(tmp_path / "mount") in outcome.error
    assert "Read-only" in outcome.error


@pytest.mark.parametrize("keep", [False, True])
def test_a_volume_that_fills_up_under_way_fails_the_load_in_order(keep: bool, tmp_path: Path) -> None:
    with loop_drive(tmp_path / "image", 64 * MIB) as drive:
        command("mkfs.ext4", "-q", "-m", "0", drive.node)
        with mounted(drive.node, tmp_path / "mount") as mount_point:
            data = mount_point / "data"
            load = load_of(retention_size="40MiB", rate="16MB", keep_files=keep)
            with running(load, data, 60) as at_work:
                at_work.read_until("window")
                with (mount_point / "other-data").open("wb") as other:
                    for step in range(64 * 16):
                        try:
                            os.posix_fallocate(other.fileno(), step * MIB // 16, MIB // 16)
                        except OSError:
                            break
                outcome = at_work.finish()
            assert outcome.status == 1
            assert "the volume is full" in outcome.end.message
            assert not outcome.end.restart
            assert outcome.windows
            assert (data / "log").exists() == keep


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"style": "pulsar"}, "there is no style 'pulsar'"),
        ({"rate": None}, "either `rate`"),
        ({"records_per_second": 5}, "either `rate`"),
        ({"retention_ratio": 0.5}, "either `retention_size`"),
        ({"retention_size": "1MiB"}, "`retention_size`: 8 logs of two segments"),
        ({"batch_records": 1000}, "`batch_records`"),
        ({"record_size": "1KiB", "record_sizes": [{"size": "1KiB"}]}, "either `record_size`"),
        ({"record_size": "31B"}, "greater than or equal to 32"),
        ({"rate_steps": [{"after": "2s", "ratio": 1}, {"after": "1s", "ratio": 1}]}, "after the one before"),
        ({"style_changes": {"io": "inline"}}, "direct files"),
        ({"style_changes": {"journal": True}}, "goes with `layout: shared`"),
        ({"style_changes": {"index_interval": "4KiB"}}, "indexes go with buffered logs"),
        ({"style_changes": {"threads": 9}}, "at most 8"),
    ],
)
def test_a_load_that_cannot_be_is_refused_by_its_model(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said.replace("(", r"\(")):
        load_of(**changes)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"partitions": 0}, "partitions"),
        ({"start": 1.25}, "start"),
        ({"rate": []}, "rate"),
        ({"nonsense": 1}, "nonsense"),
        ({"buffer_bytes": 16384}, "buffer_bytes"),
        ({"fill": 2}, "fill"),
    ],
)
def test_a_document_that_cannot_be_is_refused_by_the_program(
    changes: dict[str, Any], field: str, tmp_path: Path
) -> None:
    assert field in refusal(run(load_of(), tmp_path / "data", 1, changes=changes))


def test_presets_are_loads() -> None:
    workloads = Path(__file__).parents[3] / "service/cliffwatch/workloads"
    loads = {}
    for name in ("drill", "laptop-broker", "field-report-24h", "field-report-36h"):
        workload = parse_workload((workloads / f"{name}.yaml").read_text())
        loads[name] = load_of_workload(workload)
        assert isinstance(loads[name], StorageLoad)
    report = loads["field-report-36h"]
    assert (report.bytes_per_second, report.partitions, report.retention_ratio) == (1e9, 288, 0.75)
    assert report.mean_record_bytes == 1024
