"""Pack a finished run's journal into a bundle. The same journal always makes the same bytes."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.regular_files import reading
from cliffwatch.base.resources import DASHBOARDS_DIRECTORY
from cliffwatch.base.version import VERSION
from cliffwatch.journal import JournalReader, files
from cliffwatch.journal.state import RunStatus, status_of
from cliffwatch.labs.bundle.archive import CHUNK_BYTES, ArchiveWriter
from cliffwatch.labs.bundle.manifest import DASHBOARDS, JOURNAL_FILES, MANIFEST, REPORT_FILES, BundledFile, Manifest
from cliffwatch.model.order import RunOrder
from cliffwatch.model.run_state import RunState
from cliffwatch.telemetry import parts

#: File name suffix of a bundle.
ENDING = ".tar.zst"


def pack(directory: Path, output: BinaryIO, dashboards: Path = DASHBOARDS_DIRECTORY) -> Manifest:
    """Write the bundle of the run whose journal is in `directory` to `output`, which stays open; returns its manifest.

    Raises Problem: wrong_state for a run that is not finished, journal_unreadable if its order.json is invalid or a
    file changes while it is packed.
    """
    run_id, status = _finished(directory)
    assert status.verdict is not None, "a finished run has one"
    sources = _sources(directory, dashboards)
    manifest = Manifest(
        cliffwatch_version=VERSION,
        run_id=run_id,
        verdict=status.verdict,
        files=[_describe(name, path) for name, path in sources.items()],
    )
    content = manifest.to_bytes()
    writer = ArchiveWriter(output, modified=int(status.since))
    try:
        writer.add(f"{run_id}/{MANIFEST}", len(content), iter([content]))
        for file in manifest.files:
            writer.add(f"{run_id}/{file.path}", file.size_bytes, _checked(sources[file.path], file))
    except ValueError as error:
        raise Problem(Code.JOURNAL_UNREADABLE, f"{error}; pack it again") from error
    writer.close()
    return manifest


def order_of(reader: JournalReader) -> RunOrder:
    """Run request from a journal's order.json; the directory may have any name. Raises Problem(journal_unreadable)."""
    try:
        return RunOrder.model_validate(reader.document(files.ORDER))
    except ValidationError as error:
        detail = f"{reader.directory / files.ORDER} does not hold an order"
        raise Problem(Code.JOURNAL_UNREADABLE, detail, faults_of(error)) from error


def _finished(directory: Path) -> tuple[str, RunStatus]:
    reader = JournalReader(directory)
    run_id = order_of(reader).run_id
    status = status_of(stored.event for stored in reader.events())
    if status is None or status.state is not RunState.FINISHED:
        state = "of no state that can be read" if status is None else status.state.value
        raise Problem(
            Code.WRONG_STATE,
            f"run {run_id} is {state}, and only a finished run is packed; wait for it or stop it. "
            f"`cliffwatch run export` gives the windows that there are",
        )
    return run_id, status


def _sources(directory: Path, dashboards: Path) -> dict[str, Path]:
    """Source files by their path in the bundle. No link is followed: a bundle holds the run's own files."""
    found = {name: directory / name for name in (*JOURNAL_FILES, *REPORT_FILES)}
    home = directory / parts.DIRECTORY
    if home.is_dir():
        for name in [parts.INDEX, *parts.part_names(home)]:
            found[f"{parts.DIRECTORY}/{name}"] = home / name
    for path in sorted(dashboards.glob("*.json")):
        found[f"{DASHBOARDS}/{path.name}"] = path
    odd = [str(path) for path in found.values() if path.exists() and not path.is_symlink() and not path.is_file()]
    if odd:
        words = f"{' and '.join(odd)} is no file, and the bundle would lack what was there; put the run's own file back"
        raise Problem(Code.JOURNAL_UNREADABLE, words)
    return {name: path for name, path in found.items() if path.is_file() and not path.is_symlink()}


def _describe(name: str, path: Path) -> BundledFile:
    digest = hashlib.sha256()
    size_bytes = 0
    for chunk in _chunks(path):
        digest.update(chunk)
        size_bytes += len(chunk)
    return BundledFile(path=name, size_bytes=size_bytes, sha256=digest.hexdigest())


def _checked(path: Path, file: BundledFile) -> Iterator[bytes]:
    """Content of the file in chunks; raises ValueError when its SHA-256 is no longer that of the manifest."""
    digest = hashlib.sha256()
    for chunk in _chunks(path):
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != file.sha256:
        raise ValueError(f"{file.path} changed while it was packed")


def _chunks(path: Path) -> Iterator[bytes]:
    with reading(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
