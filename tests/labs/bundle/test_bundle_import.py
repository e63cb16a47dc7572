"""A run of one service becomes one of another, whole or not at all."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from testkit.journals import rewritten
from testkit.recorded_runs import JournalPlan
from testkit.waiting import wait_until
from tests.api.harness import ORDER, WORKLOAD, Api, serving
from tests.labs.bundle.packed import RUN_ID, bundle_of, content_of, finished, forged

from cliffwatch.app.index import rebuild
from cliffwatch.cli.client import ApiClient
from cliffwatch.labs.bundle import routes
from cliffwatch.labs.bundle import unpack as unpacking
from cliffwatch.labs.bundle.imports import PENDING_PREFIX, ImportService
from cliffwatch.model.settings import read_settings


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Api]:
    """The service that bundles are brought to."""
    with serving(read_settings(state_directory=tmp_path / "elsewhere")) as api:
        yield api


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return bundle_of(finished(tmp_path_factory.mktemp("origin") / RUN_ID, verdict="degraded"))


def bring(api: Api, bundle: bytes, scope: str = "operate") -> httpx.Response:
    return api.call("POST", "/runs/import", scope=scope, content=bundle)


def left_over(api: Api) -> list[str]:
    return [path.name for path in api.settings.runs_directory.iterdir() if path.name.startswith(".")]


@pytest.mark.gate(why="smoke of a bundle's way from one service to another")
def test_an_imported_run_is_shown_with_its_state_verdict_windows_and_report(elsewhere: Api, packed: bytes) -> None:
    answer = bring(elsewhere, packed)
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"/api/v1/runs/{RUN_ID}"
    run = elsewhere.get(f"/runs/{RUN_ID}").json()
    assert run == answer.json()
    assert (run["state"], run["verdict"], run["reasons"]) == ("finished", "degraded", ["as it was recorded"])
    assert run["imported_at"] is not None
    assert run["windows"] == 30
    listed = elsewhere.get("/runs").json()["items"]
    assert [(each["id"], each["imported_at"]) for each in listed] == [(RUN_ID, run["imported_at"])]
    assert len(elsewhere.get(f"/runs/{RUN_ID}/windows").json()["items"]) == 30
    assert elsewhere.get(f"/runs/{RUN_ID}/report").json()["run"]["id"] == RUN_ID
    assert "<title>" in elsewhere.get(f"/runs/{RUN_ID}/report.html").text
    assert left_over(elsewhere) == []


def test_the_report_is_made_here_and_not_taken_over(elsewhere: Api, tmp_path: Path) -> None:
    content = content_of(finished(tmp_path / RUN_ID)) | {"report.html": b"<script>steal()</script>"}
    assert bring(elsewhere, forged(content)).status_code == 201
    assert "steal()" not in elsewhere.get(f"/runs/{RUN_ID}/report.html").text


def test_an_imported_run_is_packed_to_the_same_bundle(elsewhere: Api, packed: bytes) -> None:
    bring(elsewhere, packed)
    directory = elsewhere.settings.runs_directory / RUN_ID
    assert json.loads((directory / "imported.json").read_text())["by"] == "operate"
    assert bundle_of(directory) == packed


def test_an_id_that_is_taken_is_a_conflict_and_the_run_that_has_it_stays(elsewhere: Api, packed: bytes) -> None:
    bring(elsewhere, packed)
    before = elsewhere.get(f"/runs/{RUN_ID}").json()
    answer = bring(elsewhere, packed)
    assert answer.status_code == 409
    assert answer.json()["code"] == "conflict"
    assert answer.json()["detail"] == f"there is a run {RUN_ID} already"
    assert elsewhere.get(f"/runs/{RUN_ID}").json() == before
    assert left_over(elsewhere) == []


def test_a_bundle_that_is_refused_leaves_nothing(elsewhere: Api, packed: bytes, tmp_path: Path) -> None:
    content = content_of(finished(tmp_path / RUN_ID))
    for bundle in (b"", packed[:1000], packed[:-5], forged(content | {"../outside": b""})):
        answer = bring(elsewhere, bundle)
        assert (answer.status_code, answer.json()["code"]) == (422, "bundle_invalid")
        assert answer.json()["errors"]
    assert list(elsewhere.settings.runs_directory.iterdir()) == []
    assert elsewhere.get("/runs").json()["items"] == []


def test_a_read_token_may_not_import_a_bundle(elsewhere: Api, packed: bytes) -> None:
    assert bring(elsewhere, packed, scope="read").status_code == 403
    assert list(elsewhere.settings.runs_directory.iterdir()) == []


def test_an_upload_has_a_limit_and_other_requests_keep_theirs(
    elsewhere: Api, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "UPLOAD_LIMIT_BYTES", 10_000)
    answer = bring(elsewhere, packed)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert left_over(elsewhere) == []
    assert elsewhere.call("POST", "/runs", content=b" " * 2_000_000).status_code == 413


def test_an_upload_has_its_limit_whatever_it_calls_itself(
    elsewhere: Api, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What called itself JSON was read into memory whole, up to any size, before anything looked at it."""
    headers = {"Content-Type": "application/json"}
    with monkeypatch.context() as limited:
        limited.setattr(routes, "UPLOAD_LIMIT_BYTES", 10_000)
        answer = elsewhere.post("/runs/import", content=b'{"large": "' + b"x" * 20_000, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert elsewhere.post("/runs/import", content=packed, headers=headers).status_code == 201


def test_an_upload_stops_before_the_disk_is_full(
    elsewhere: Api, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "FREE_RESERVE_BYTES", 1 << 60)
    answer = bring(elsewhere, packed)
    assert (answer.status_code, answer.json()["code"]) == (409, "space_insufficient")
    assert left_over(elsewhere) == []


@pytest.fixture
def few_inodes(tmp_path: Path) -> Iterator[Path]:
    """A disk with room, for a handful of files: what fills up after there was room, when a test wants it to."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g,nr_inodes=6", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("inodes", [1, 4], ids=["as it is received", "as it is unpacked"])
def test_a_disk_that_takes_no_more_is_named_and_nothing_is_left(
    inodes: int, few_inodes: Path, tmp_path: Path, packed: bytes
) -> None:
    subprocess.run(["mount", "-o", f"remount,nr_inodes={inodes}", str(few_inodes)], check=True)
    with serving(read_settings(state_directory=tmp_path / "state", runs_directory=few_inodes)) as api:
        answer = bring(api, packed)
        assert (answer.status_code, answer.json()["code"]) == (409, "space_insufficient")
        assert f"the disk below {few_inodes} takes no more (No space left on device)" in answer.json()["detail"]
        assert list(few_inodes.iterdir()) == []
        assert api.get("/runs").json()["items"] == []


@pytest.mark.parametrize(("trouble", "words"), [("read-only", "Read-only file system"), ("away", "disk/runs")])
def test_a_disk_that_is_not_to_be_written_is_named_and_it_is_tried_again(
    trouble: str, words: str, few_inodes: Path, tmp_path: Path, packed: bytes
) -> None:
    (runs := few_inodes / "runs").mkdir()
    with serving(read_settings(state_directory=tmp_path / "state", runs_directory=runs)) as api:
        if trouble == "away":
            runs.rmdir()
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(few_inodes)], check=True)
        answer = bring(api, packed)
        assert (answer.status_code, answer.json()["code"]) == (503, "journal_unwritable")
        assert words in answer.json()["detail"]


def test_of_those_who_bring_the_same_run_at_once_one_succeeds(elsewhere: Api, packed: bytes) -> None:
    with ThreadPoolExecutor(3) as bringers:
        answers = list(bringers.map(lambda _: bring(elsewhere, packed), range(3)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409]
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"conflict"}
    assert left_over(elsewhere) == []
    assert len(elsewhere.get(f"/runs/{RUN_ID}/windows").json()["items"]) == 30


def test_bundles_are_opened_one_at_a_time(elsewhere: Api, packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)
    really = ImportService.take

    def take(intake: ImportService, bundle: Path, imported_by: str) -> str:
        with pytest.raises(threading.BrokenBarrierError):
            together.wait(0.5)
        together.reset()
        return really(intake, bundle, imported_by)

    monkeypatch.setattr(ImportService, "take", take)
    with ThreadPoolExecutor(2) as bringers:
        answers = list(bringers.map(lambda _: bring(elsewhere, packed), range(2)))
    assert sorted(answer.status_code for answer in answers) == [201, 409]


def test_a_full_disk_keeps_no_half_a_bundle(few_inodes: Path, tmp_path: Path) -> None:
    finished(tmp_path / "here" / "runs" / RUN_ID, JournalPlan(windows=3))
    subprocess.run(["mount", "-o", "remount,size=4k", str(few_inodes)], check=True)
    packing = cliffwatch(tmp_path / "here", "run", "bundle", RUN_ID, "--to", str(few_inodes / "run.tar.zst"))
    assert packing.returncode == 2
    assert "run.tar.zst cannot be written: No space left on device" in packing.stderr
    assert list(few_inodes.iterdir()) == []


def test_an_imported_run_survives_that_the_index_is_made_again(elsewhere: Api, packed: bytes) -> None:
    bring(elsewhere, packed)
    before = elsewhere.get(f"/runs/{RUN_ID}").json()
    with elsewhere.services.database.session() as session:
        report = rebuild(session, elsewhere.settings.runs_directory)
    assert report.faults == {}
    assert elsewhere.get(f"/runs/{RUN_ID}").json() == before


def test_versions_of_workloads_elsewhere_do_not_displace_those_here(elsewhere: Api, tmp_path: Path) -> None:
    """Each service counts the versions of its workloads for itself."""
    directory = finished(tmp_path / RUN_ID)
    first, rest = (directory / "events.jsonl").read_bytes().split(b"\n", 1)
    event = rewritten(first, detail={"workload_version": 1, "target_key": "x", "request_digest": "0"})
    (directory / "events.jsonl").write_bytes(event + rest)
    mine = WORKLOAD | {"name": "steady-append"}
    assert elsewhere.put("/workloads/steady-append", mine).status_code == 201
    assert bring(elsewhere, bundle_of(directory)).status_code == 201
    assert elsewhere.get(f"/runs/{RUN_ID}").json()["workload"] == {"name": "steady-append", "version": None}
    with elsewhere.services.database.session() as session:
        rebuild(session, elsewhere.settings.runs_directory)
    kept = elsewhere.get("/workloads/steady-append").json()
    assert kept["version"] == 1
    assert kept["document"]["phases"]["soak"] == "1m"


def test_runs_of_this_service_are_not_marked(elsewhere: Api) -> None:
    assert elsewhere.put("/runs/own", ORDER).json()["imported_at"] is None


@contextmanager
def unpacking_at_a_snails_pace(runs: Path, bundle: bytes) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that unpacks, held up in the middle by a bundle that comes through a pipe and does not end."""
    runs.mkdir(parents=True)
    pipe = runs.parent / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "cliffwatch.labs.bundle", str(pipe), str(runs), f"{PENDING_PREFIX}0123"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with pipe.open("wb") as feed:
            feed.write(bundle[: len(bundle) * 3 // 4])
            feed.flush()
            wait_until((runs / f"{PENDING_PREFIX}0123").exists, "the beginning of a run")
            yield process
            process.kill()
            process.wait()
    finally:
        process.kill()
        process.wait()


def test_a_kill_in_the_middle_leaves_no_run_and_the_next_start_removes_what_is_left(
    tmp_path: Path, packed: bytes
) -> None:
    settings = read_settings(state_directory=tmp_path / "state")
    # More than the buffers on the way hold.
    content = content_of(finished(tmp_path / RUN_ID))
    large = forged(content | {"telemetry/part-000001.parquet": random.Random(1).randbytes(4_000_000)})
    with unpacking_at_a_snails_pace(settings.runs_directory, large) as process:
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert (settings.runs_directory / f"{PENDING_PREFIX}0123").is_dir()
    (settings.runs_directory / f"{PENDING_PREFIX}4567.tar.zst").write_bytes(packed[:100])
    with serving(settings) as api:
        assert api.get("/runs").json()["items"] == []
        assert list(settings.runs_directory.iterdir()) == []
        assert bring(api, packed).status_code == 201


def test_a_kill_between_the_name_and_the_index_leaves_the_run_whole(tmp_path: Path, packed: bytes) -> None:
    with serving(read_settings(state_directory=tmp_path / "first")) as api:
        bring(api, packed)
        run = api.get(f"/runs/{RUN_ID}").json()
        made = api.settings.runs_directory / RUN_ID
    settings = read_settings(state_directory=tmp_path / "second")
    # As if the process had ended right after the rename: a journal that no table knows.
    shutil.copytree(made, settings.runs_directory / RUN_ID)
    with serving(settings) as api:
        found = api.get(f"/runs/{RUN_ID}").json()
    assert found["imported_at"] == run["imported_at"]
    assert found["verdict"] == "degraded"


def cliffwatch(state: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
    environment = kept | {"CLIFFWATCH_STATE_DIRECTORY": str(state)} | variables
    command = [sys.executable, "-m", "cliffwatch.cli.main", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_command_line_packs_here_and_imports_there(elsewhere: Api, tmp_path: Path) -> None:
    finished(tmp_path / "here" / "runs" / RUN_ID, JournalPlan(windows=3))
    file = tmp_path / "run.tar.zst"
    packing = cliffwatch(tmp_path / "here", "run", "bundle", RUN_ID, "--to", str(file), "--output", "json")
    assert packing.returncode == 0, packing.stderr
    assert json.loads(packing.stdout)["file"] == str(file)
    assert [path.name for path in tmp_path.glob("*run.tar*")] == ["run.tar.zst"]
    url = str(elsewhere.client.base_url)
    there = {"CLIFFWATCH_URL": url, "CLIFFWATCH_TOKEN": elsewhere.tokens["operate"]}
    importing = cliffwatch(tmp_path / "there", "run", "import", str(file), **there)
    assert importing.returncode == 0, importing.stderr
    assert f"imported {RUN_ID} (verdict pass)" in importing.stderr
    shown = cliffwatch(tmp_path / "there", "run", "show", RUN_ID, **there)
    assert "imported" in shown.stdout
    again = cliffwatch(tmp_path / "there", "run", "import", str(file), **there)
    assert again.returncode == 2
    assert f"there is a run {RUN_ID} already" in again.stderr


def test_a_refusal_leaves_no_file_behind(tmp_path: Path) -> None:
    empty = tmp_path / "state" / "runs" / "empty"
    empty.mkdir(parents=True)
    done = cliffwatch(tmp_path / "state", "run", "bundle", str(empty), "--to", str(tmp_path / "run.tar.zst"))
    assert done.returncode == 2
    assert "is no journal: there is no order.json in it; name a run" in done.stderr
    assert list(tmp_path.glob("*tar*")) == list(tmp_path.glob(".*")) == []


def test_a_file_that_is_not_there_is_named(elsewhere: Api, tmp_path: Path) -> None:
    there = {"CLIFFWATCH_URL": str(elsewhere.client.base_url), "CLIFFWATCH_TOKEN": elsewhere.tokens["operate"]}
    done = cliffwatch(tmp_path, "run", "import", str(tmp_path / "none.tar.zst"), **there)
    assert done.returncode == 2
    assert "none.tar.zst cannot be read" in done.stderr


def test_the_client_streams_what_it_sends(elsewhere: Api, packed: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.tar.zst").write_bytes(packed)
    client = ApiClient(str(elsewhere.client.base_url), elsewhere.tokens["operate"])
    with client, (tmp_path / "run.tar.zst").open("rb") as content:
        assert client.upload("/runs/import", content)["id"] == RUN_ID
