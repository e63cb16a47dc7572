"""Bundles: a damaged one is refused, a forged one makes a run that can be shown and never one that is executed."""

import io
import json
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from hypothesis import strategies as st
from tests.fuzz.damage import restructured, spoiled
from tests.fuzz.explore import bounded, explore, holds
from tests.fuzz.journals import bodies, journal, journal_files, resealed
from tests.labs.bundle.packed import compressed, content_of, forged, plain

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.finite_json import require_shallow
from cliffwatch.journal import JournalReader, files
from cliffwatch.journal.state import status_of
from cliffwatch.labs.bundle.manifest import read_manifest
from cliffwatch.labs.bundle.pack import pack
from cliffwatch.labs.bundle.unpack import unpack
from cliffwatch.model.run_state import RunState
from cliffwatch.report.build import build

VERDICT = {"verdict": "degraded"}


@cache
def bundle() -> bytes:
    with journal() as directory:
        output = io.BytesIO()
        pack(directory, output)
        return output.getvalue()


@cache
def content() -> Mapping[str, bytes]:
    with journal() as directory:
        return content_of(directory)


@cache
def without_dashboards() -> Mapping[str, bytes]:
    """What is a journal's own, so that each example is small."""
    return {path: body for path, body in content().items() if "/" not in path}


def opened(packed: bytes, shown: bool = False) -> dict[str, bytes] | None:
    """The files of the journal that a bundle becomes; None when it was refused."""
    place = Path(tempfile.mkdtemp(prefix="cliffwatch-fuzz-"))
    try:
        with bounded():
            try:
                unpack(io.BytesIO(packed), place / "run")
            except Problem as problem:
                assert problem.code is Code.BUNDLE_INVALID, problem
                return None
            require_harmless(place / "run")
            if shown:
                build(place / "run")
        return {path.name: path.read_bytes() for path in (place / "run").iterdir() if path.is_file()}
    finally:
        shutil.rmtree(place)


def require_harmless(directory: Path) -> None:
    """What the service takes for granted of a run that is over."""
    reader = JournalReader(directory)
    events = [stored.event for stored in reader.events()]
    status = status_of(events)
    assert status is not None
    assert status.state is RunState.FINISHED
    assert not (directory / files.WORKER).exists()
    for event in events:
        require_shallow(event.detail)
        json.dumps(event.detail, allow_nan=False, ensure_ascii=False).encode()
    for window in reader.windows():
        json.dumps(window.counters | window.gauges, allow_nan=False)


PACKED = spoiled(st.just(bundle()))
ARCHIVE = spoiled(st.just(plain(bundle()))).map(compressed)


@holds(examples=40, packed=PACKED | ARCHIVE)
def test_a_damaged_bundle_is_refused_or_the_same(packed: bytes) -> None:
    found = opened(packed)
    kept = {name: body for name, body in journal_files().items() if name not in {files.WORKER}}
    assert found is None or found == kept


def lines_with(name: str) -> st.SearchStrategy[bytes]:
    written = journal_files()[name].splitlines(keepends=True)
    found = bodies(name)

    def put(place: int, text: str) -> bytes:
        line = resealed(text).encode("utf-8", "surrogatepass")
        return b"".join([*written[:place], line, *written[place + 1 :]])

    return st.one_of([st.builds(put, st.just(at), restructured(st.just(body))) for at, body in enumerate(found)])


def documents(name: str) -> st.SearchStrategy[bytes]:
    changed = restructured(st.just(json.loads(journal_files()[name])))
    return changed.map(lambda text: text.encode("utf-8", "surrogatepass"))


FORGED = st.one_of(
    st.tuples(st.just(files.EVENTS), lines_with(files.EVENTS)),
    st.tuples(st.just(files.WINDOWS), lines_with(files.WINDOWS)),
    st.tuples(st.just(files.ORDER), documents(files.ORDER)),
    st.tuples(st.just(files.FACTS), documents(files.FACTS)),
    st.tuples(st.just(files.LATENCY), spoiled(st.just(journal_files()[files.LATENCY]))),
)


@holds(examples=25, changed=FORGED)
def test_a_forged_bundle_is_refused_or_harmless(changed: tuple[str, bytes]) -> None:
    name, body = changed
    opened(forged({**without_dashboards(), name: body}, manifest=VERDICT), shown=True)


MANIFEST = {
    "format": "cliffwatch-bundle",
    "format_version": 1,
    "cliffwatch_version": "0",
    "run_id": "run-1",
    "verdict": "pass",
    "files": [
        {"path": path, "size_bytes": 1, "sha256": "0" * 64} for path in (files.ORDER, files.EVENTS, files.WINDOWS)
    ],
}


@holds(examples=100, text=restructured(st.just(MANIFEST)))
def test_a_manifest_is_whole_or_refused(text: str) -> None:
    with bounded():
        try:
            manifest = read_manifest(text.encode("utf-8", "surrogatepass"))
        except Problem as problem:
            assert problem.code is Code.BUNDLE_INVALID
            assert problem.faults
            return
        assert read_manifest(manifest.to_bytes()) == manifest
        assert all(".." not in file.path and not file.path.startswith("/") for file in manifest.files)


def test_a_bundle_becomes_the_journal_that_it_was_made_of() -> None:
    found = opened(bundle(), shown=True)
    assert found == {name: body for name, body in journal_files().items() if name != files.WORKER}
    assert opened(forged(without_dashboards(), manifest=VERDICT)) is not None


@pytest.mark.real(why="damage at random")
def test_bundles_at_random() -> None:
    explore(
        test_a_damaged_bundle_is_refused_or_the_same,
        test_a_forged_bundle_is_refused_or_harmless,
        test_a_manifest_is_whole_or_refused,
    )
