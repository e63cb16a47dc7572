"""A bundle holds the run and nothing of the machine, and comes out the same each time."""

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from testkit.recorded_runs import make_journal
from tests.labs.bundle.packed import RUN_ID, bundle_of, finished, members, plain

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.resources import DASHBOARDS_DIRECTORY
from cliffwatch.base.version import VERSION
from cliffwatch.labs.bundle.pack import pack
from cliffwatch.report.build import build

SECRETS = {
    "token": "cw_0123abcd_the-token-of-this-machine",
    "worker.log": "password=the-password-of-a-broker",
    "engine.log": "sasl.password the-password-of-a-broker",
    "worker.json": '{"pid": 1, "command": "the-command-line"}',
    "imported.json": '{"by": "the-importing-user"}',
    ".env": "the-environment",
}


def test_a_bundle_holds_every_file_of_the_run_with_its_sum(tmp_path: Path) -> None:
    directory = finished(tmp_path / RUN_ID)
    found = members(bundle_of(directory))
    manifest = json.loads(found.pop(f"{RUN_ID}/manifest.json"))
    assert manifest["run_id"] == RUN_ID
    assert manifest["verdict"] == "pass"
    assert manifest["cliffwatch_version"] == VERSION
    assert [f"{RUN_ID}/{file['path']}" for file in manifest["files"]] == list(found)
    for file in manifest["files"]:
        content = found[f"{RUN_ID}/{file['path']}"]
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["size_bytes"], file["sha256"])
    for name in ("order.json", "events.jsonl", "windows.jsonl", "latency.hlog", "report.json", "report.html"):
        assert found[f"{RUN_ID}/{name}"] == (directory / name).read_bytes()
    dashboards = {f"{RUN_ID}/dashboards/{path.name}" for path in DASHBOARDS_DIRECTORY.glob("*.json")}
    assert dashboards
    assert dashboards <= found.keys()


def test_the_same_run_makes_the_same_bytes(tmp_path: Path) -> None:
    directory = finished(tmp_path / "a")
    copy = shutil.copytree(directory, tmp_path / "b")
    assert bundle_of(directory) == bundle_of(copy)


def test_nothing_of_the_machine_gets_into_a_bundle(tmp_path: Path) -> None:
    directory = finished(tmp_path / RUN_ID)
    for name, secret in SECRETS.items():
        (directory / name).write_text(secret)
    (tmp_path / "elsewhere").write_text("what a link leads to")
    (directory / "facts.json").unlink()
    (directory / "facts.json").symlink_to(tmp_path / "elsewhere")
    (directory / "telemetry").mkdir()
    (directory / "telemetry" / ".lock").write_text("the-lock")
    everything = b"".join(members(bundle_of(directory)).values())
    for secret in [*SECRETS.values(), "what a link leads to", "the-lock"]:
        assert secret.encode() not in everything


def test_usual_tools_unpack_it_into_one_directory_that_is_a_journal(tmp_path: Path) -> None:
    directory = finished(tmp_path / RUN_ID)
    place = tmp_path / "place"
    with tarfile.open(fileobj=io.BytesIO(plain(bundle_of(directory)))) as archive:
        archive.extractall(place, filter="data")
    assert [path.name for path in place.iterdir()] == [RUN_ID]
    assert build(place / RUN_ID).document == build(directory).document


@pytest.mark.parametrize("name", ["latency.hlog", "facts.json"])
def test_a_directory_in_place_of_a_run_file_is_an_error_of_the_bundle(tmp_path: Path, name: str) -> None:
    directory = finished(tmp_path / RUN_ID)
    (directory / name).unlink(missing_ok=True)
    (directory / name).mkdir()
    with pytest.raises(Problem, match=f"{name} is no file") as refusal:
        bundle_of(directory)
    assert refusal.value.code is Code.JOURNAL_UNREADABLE


def test_a_run_that_goes_on_is_not_packed(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / RUN_ID)
    output = io.BytesIO()
    with pytest.raises(Problem, match="reporting, and only a finished run is packed") as refusal:
        pack(directory, output)
    assert refusal.value.code is Code.WRONG_STATE
    assert output.getvalue() == b""


def test_a_directory_that_is_no_run_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(Problem) as refusal:
        pack(tmp_path, io.BytesIO())
    assert refusal.value.code is Code.JOURNAL_UNREADABLE
