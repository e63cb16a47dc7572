"""Finished runs, packed, and bundles that no packer would write."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal

from cliffwatch.journal import EventLog
from cliffwatch.journal.state import change_state
from cliffwatch.labs.bundle.manifest import FORMAT, FORMAT_VERSION
from cliffwatch.labs.bundle.pack import pack
from cliffwatch.model.run_state import RunState
from cliffwatch.report.build import build, write

RUN_ID = "run-1"


def finished(directory: Path, plan: JournalPlan | None = None, verdict: str = "pass") -> Path:
    """A journal of a run that came to its end, with its report."""
    make_journal(directory, plan)
    write(directory, build(directory))
    detail = {"verdict": verdict, "reasons": ["as it was recorded"]}
    change_state(EventLog(directory), RunState.FINISHED, LOAD_START + 310, detail)
    return directory


def bundle_of(directory: Path) -> bytes:
    output = io.BytesIO()
    pack(directory, output)
    return output.getvalue()


def members(bundle: bytes) -> dict[str, bytes]:
    """What the usual tools see in it, by name."""
    with tarfile.open(fileobj=io.BytesIO(plain(bundle))) as archive:
        found = {entry.name: archive.extractfile(entry) for entry in archive}
        return {name: file.read() for name, file in found.items() if file is not None}


def plain(bundle: bytes) -> bytes:
    stream = pa.CompressedInputStream(pa.BufferReader(bundle), "zstd")
    found = bytearray()
    while chunk := stream.read(1 << 20):
        found += chunk
    return bytes(found)


def compressed(archive: bytes) -> bytes:
    output = pa.BufferOutputStream()
    with pa.CompressedOutputStream(output, "zstd") as stream:
        stream.write(archive)
    return bytes(output.getvalue())


def content_of(directory: Path) -> dict[str, bytes]:
    """What a bundle of the journal holds besides its manifest, by path."""
    return {
        name.partition("/")[2]: content
        for name, content in members(bundle_of(directory)).items()
        if not name.endswith("/manifest.json")
    }


def forged(
    content: Mapping[str, bytes],
    *,
    run_id: str = RUN_ID,
    manifest: Mapping[str, Any] | None = None,
    entry: Callable[[tarfile.TarInfo], None] = lambda entry: None,
) -> bytes:
    """A bundle with an honest manifest of whatever content, except for what `manifest` and `entry` change."""
    listed = [
        {"path": path, "size_bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        for path, body in content.items()
    ]
    about: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "cliffwatch_version": "0",
        "files": listed,
    }
    about |= {"run_id": run_id, "verdict": "pass", **(manifest or {})}
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.USTAR_FORMAT, bufsize=512) as archive:
        for path, body in {"manifest.json": json.dumps(about).encode(), **content}.items():
            member = tarfile.TarInfo(f"{run_id}/{path}")
            member.size = len(body)
            entry(member)
            archive.addfile(member, io.BytesIO(body))
    end = output.getvalue().rstrip(b"\0")
    padded = end + b"\0" * (-len(end) % 512)
    return compressed(padded + b"\0" * 1024)
