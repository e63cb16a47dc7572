"""A bundle is not trusted: it becomes just the journal that its manifest names, or it is refused with the reason."""

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit.recorded_runs import make_journal
from tests.labs.bundle.packed import RUN_ID, bundle_of, compressed, content_of, finished, forged, plain

from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.bundle import manifest as manifests
from cliffwatch.labs.bundle import unpack as unpacking
from cliffwatch.labs.bundle.manifest import FORMAT_VERSION
from cliffwatch.labs.bundle.unpack import unpack

KEPT = {"order.json", "workload.yaml", "facts.json", "events.jsonl", "windows.jsonl", "latency.hlog"}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the bundle of an honest run holds."""
    return content_of(finished(tmp_path_factory.mktemp("honest") / RUN_ID))


def refusal(bundle: bytes, tmp_path: Path) -> str:
    """Why the bundle is refused. Nothing may have been made beside the directory that it was to become."""
    place = tmp_path / "place"
    place.mkdir()
    before = set(tmp_path.rglob("*"))
    with pytest.raises(Problem) as refused:
        unpack(io.BytesIO(bundle), place / "journal")
    assert refused.value.code is Code.BUNDLE_INVALID
    made = set(tmp_path.rglob("*")) - before
    assert all(path == place / "journal" or place / "journal" in path.parents for path in made)
    assert not any(path.is_symlink() for path in made)
    return str(refused.value)


def test_an_honest_bundle_becomes_the_journal_it_was(tmp_path: Path, content: dict[str, bytes]) -> None:
    unpack(io.BytesIO(forged(content)), tmp_path / "journal")
    assert {path.name: path.read_bytes() for path in (tmp_path / "journal").iterdir()} == {
        name: body for name, body in content.items() if name in KEPT
    }


def test_telemetry_comes_with_it(tmp_path: Path, content: dict[str, bytes]) -> None:
    more = content | {"telemetry/index.json": b"{}", "telemetry/part-000001.parquet": b"PAR1"}
    unpack(io.BytesIO(forged(more)), tmp_path / "journal")
    assert (tmp_path / "journal" / "telemetry" / "part-000001.parquet").read_bytes() == b"PAR1"


@pytest.mark.parametrize(
    "path",
    [
        "../../outside",
        "/etc/cron.d/outside",
        "telemetry/../../outside",
        "telemetry/part-000001.parquet/../../../outside",
        "worker.json",
        "worker.lock",
        "imported.json",
        "engine/job.fio",
        "order.json\n",
        "",
        ".",
    ],
)
def test_no_file_gets_where_it_does_not_belong(path: str, tmp_path: Path, content: dict[str, bytes]) -> None:
    assert "a bundle holds no file" in refusal(forged(content | {path: b"x"}), tmp_path)


@pytest.mark.parametrize("run_id", ["..", "../outside", "/tmp/outside", ".hidden", "a/b", "", "a\n", "A" * 300])
def test_no_run_gets_a_name_that_is_a_path(run_id: str, tmp_path: Path, content: dict[str, bytes]) -> None:
    bundle = forged(content, run_id="run-1", manifest={"run_id": run_id})
    assert "run_id" in refusal(bundle, tmp_path)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_links_devices_and_directories_are_refused(kind: bytes, tmp_path: Path, content: dict[str, bytes]) -> None:
    def become(entry: tarfile.TarInfo) -> None:
        if entry.name.endswith("/facts.json"):
            entry.type, entry.linkname, entry.size = kind, "/etc/passwd", 0

    words = refusal(forged(content | {"facts.json": b""}, entry=become), tmp_path)
    assert "is not a regular file" in words


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.GNUTYPE_SPARSE])
def test_extended_headers_are_not_even_read(kind: bytes, tmp_path: Path, content: dict[str, bytes]) -> None:
    def become(entry: tarfile.TarInfo) -> None:
        if entry.name.endswith("/order.json"):
            entry.type = kind

    assert "is not a regular file" in refusal(forged(content, entry=become), tmp_path)


def test_a_member_under_another_name_than_the_manifests_is_refused(tmp_path: Path, content: dict[str, bytes]) -> None:
    def become(entry: tarfile.TarInfo) -> None:
        entry.name = entry.name.replace("facts.json", "../../outside")

    assert "where facts.json should come, something else does" in refusal(forged(content, entry=become), tmp_path)


def test_a_changed_byte_is_seen(tmp_path: Path, content: dict[str, bytes]) -> None:
    archive = plain(forged(content))
    changed = archive.replace(b'"steady-append"', b'"steady-appenD"', 1)
    assert changed != archive
    assert "SHA-256" in refusal(compressed(changed), tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_bundle_that_is_cut_off_is_refused(share: float, tmp_path: Path, content: dict[str, bytes]) -> None:
    bundle = forged(content)
    assert "archive" in refusal(bundle[: int(len(bundle) * share)], tmp_path)


def test_a_tar_that_ends_early_or_goes_on_is_refused(tmp_path: Path, content: dict[str, bytes]) -> None:
    archive = plain(forged(content))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert "cut off" in refusal(compressed(archive[:-1536]), tmp_path / "a")
    assert "something follows" in refusal(compressed(archive + b"x" * 512), tmp_path / "b")


def test_a_file_that_is_no_archive_is_refused_as_a_bundle(tmp_path: Path) -> None:
    for number, stranger in enumerate([b"", b"PK\x03\x04", b"x" * 10_000, compressed(b"x" * 10_000), compressed(b"")]):
        (tmp_path / str(number)).mkdir()
        assert "archive" in refusal(stranger, tmp_path / str(number))


def test_a_newer_format_says_which_program_opens_it(tmp_path: Path, content: dict[str, bytes]) -> None:
    newer = {"format_version": FORMAT_VERSION + 1, "cliffwatch_version": "9.1", "something": "new"}
    words = refusal(forged(content, manifest=newer), tmp_path)
    assert f"format_version: {FORMAT_VERSION + 1} is not known here" in words
    assert "open it with Cliffwatch 9.1" in words


@pytest.mark.parametrize("version", [True, "1", 1.0, None])
def test_a_format_version_that_is_no_whole_number_is_refused(
    tmp_path: Path, content: dict[str, bytes], version: object
) -> None:
    words = refusal(forged(content, manifest={"format_version": version}), tmp_path)
    assert f"format_version: '{version}' is not a whole number" in words


def test_a_bundle_over_the_unpacked_limit_is_refused_before_anything_is_written(
    tmp_path: Path, content: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "UNPACKED_LIMIT_BYTES", 1000)
    assert "more than a bundle may unpack to" in refusal(forged(content), tmp_path)
    assert list((tmp_path / "place").iterdir()) == []


def test_a_member_larger_than_the_manifest_says_is_refused(tmp_path: Path, content: dict[str, bytes]) -> None:
    files = [{"path": path, "size_bytes": 1, "sha256": "0" * 64} for path in content]
    assert "where order.json should come" in refusal(forged(content, manifest={"files": files}), tmp_path)


def test_an_import_leaves_room_for_the_runs_that_go_on(
    tmp_path: Path, content: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "FREE_RESERVE_BYTES", 1 << 60)
    with pytest.raises(Problem, match="make room") as refused:
        unpack(io.BytesIO(forged(content)), tmp_path / "journal")
    assert refused.value.code is Code.SPACE_INSUFFICIENT
    assert not (tmp_path / "journal").exists()


def test_a_run_that_would_be_executed_is_refused(tmp_path: Path) -> None:
    """A worker would be started for it, and would write to the target that the bundle names."""
    directory = make_journal(tmp_path / RUN_ID)
    names = sorted(path.name for path in directory.iterdir() if path.name in KEPT)
    going_on = {name: (directory / name).read_bytes() for name in names}
    assert "the run is reporting; only a finished run is taken" in refusal(forged(going_on), tmp_path)


Change = Callable[[dict[str, Any]], None]


def _set(**fields: Any) -> Change:
    return lambda body: body.update(fields)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("order.json", _set(run_id="another"), "it is of run another"),
        ("order.json", _set(created_at=1e300), "is no time"),
        ("order.json", _set(created_by="half \ud800 a character"), "surrogate"),
        ("order.json", _set(workload=7), "does not hold an order"),
        ("events.jsonl", _set(at=1e300), "is no time"),
        ("events.jsonl", _set(at=float("nan")), "NaN is not a JSON number"),
        ("events.jsonl", _set(detail={"text": "a \0 in it"}), "NUL"),
        ("events.jsonl", _set(crc32=None, detail={"replaced_durations": 5}), "replaced_durations: 5 is no mapping"),
        ("events.jsonl", _set(crc32=None, detail={"workload_version": 10**30}), "is no version"),
        ("windows.jsonl", _set(latency={"publish": 5}), "is no window"),
        ("windows.jsonl", _set(seq=2**63 - 1), "seq, start and end do not make an interval"),
        ("windows.jsonl", _set(gauges={"debt": float("inf")}), "Infinity is not a JSON number"),
    ],
)
def test_a_bundle_with_an_invalid_journal_value_is_refused(
    name: str, change: Change, words: str, tmp_path: Path, content: dict[str, bytes]
) -> None:
    first, *rest = content[name].splitlines() if name.endswith("l") else [content[name]]
    body = json.loads(first)
    change(body)
    if body.get("crc32", "") is None:
        del body["crc32"]
    changed = b"\n".join([json.dumps(body).encode(), *rest]) + b"\n"
    assert words in refusal(forged(content | {name: changed}), tmp_path)


def test_a_verdict_that_the_run_does_not_have_is_refused(tmp_path: Path, content: dict[str, bytes]) -> None:
    assert "verdict" in refusal(forged(content, manifest={"verdict": "failed"}), tmp_path)


def test_a_directory_that_is_there_is_left_alone(tmp_path: Path, content: dict[str, bytes]) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "order.json").write_text("mine")
    with pytest.raises(FileExistsError):
        unpack(io.BytesIO(forged(content)), tmp_path / "journal")
    assert os.listdir(tmp_path / "journal") == ["order.json"]  # noqa: PTH208  names are what is compared


def test_packed_bundles_and_forged_ones_are_the_same_to_it(tmp_path: Path) -> None:
    """What these tests forge is what `pack` writes, but for the lie that each is about."""
    directory = finished(tmp_path / RUN_ID)
    unpack(io.BytesIO(bundle_of(directory)), tmp_path / "journal")
    assert {path.name for path in (tmp_path / "journal").iterdir()} == KEPT
