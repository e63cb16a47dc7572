"""Unpack an untrusted bundle as a journal: every file is checked before any is used, or nothing is imported.

The service trusts its journals: it starts a worker for an unfinished run, which writes to the run's target, and kills
processes that worker.json names. So only a finished run is accepted, and only the files that `manifest` allows.
"""

import hashlib
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter, ValidationError

from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.finite_json import NotFiniteError, require_shallow, strict_json
from cliffwatch.base.storable import check_text
from cliffwatch.base.units import format_size
from cliffwatch.journal import EventType, JournalReader, JournalWindow, files
from cliffwatch.journal.checksum import checksum
from cliffwatch.journal.reader import HISTOGRAMS_LIMIT_BYTES, LINE_LIMIT_BYTES, tag_name
from cliffwatch.journal.state import RunStatus, status_of
from cliffwatch.labs.bundle.archive import ArchiveReader
from cliffwatch.labs.bundle.bounds import (
    EVENTS_LIMIT,
    EXPANSION_LIMIT,
    FREE_EXPANSION_BYTES,
    SPARE_WINDOWS,
    WINDOWS_LIMIT,
)
from cliffwatch.labs.bundle.manifest import MANIFEST, MANIFEST_LIMIT_BYTES, Manifest, invalid, is_kept, read_manifest
from cliffwatch.labs.bundle.pack import order_of
from cliffwatch.model.request import Submission
from cliffwatch.model.run_state import RunState
from cliffwatch.model.window import NAMES_LIMITS

#: Disk space that an import leaves free: journals of active runs are on the same disk.
FREE_RESERVE_BYTES = 1024**3
_WINDOWS = TypeAdapter(JournalWindow)


def unpack(source: BinaryIO, directory: Path, accept: Callable[[Manifest], None] = lambda manifest: None) -> Manifest:
    """Unpack a bundle into a new journal `directory`, which must not exist; it is durable when this returns.

    `accept` may refuse the manifest by raising, before anything is written. Raises Problem (bundle_invalid,
    space_insufficient, or what `accept` raises); the caller must then remove the directory, if it was made.
    """
    reader = ArchiveReader(source)
    name, size_bytes = reader.header()
    if size_bytes > MANIFEST_LIMIT_BYTES:
        raise invalid(MANIFEST, f"it has {size_bytes} bytes; it may have {MANIFEST_LIMIT_BYTES}")
    manifest = read_manifest(b"".join(reader.content(size_bytes)))
    if name != f"{manifest.run_id}/{MANIFEST}":
        raise invalid(MANIFEST, "it is not the first file of the archive; give a file as `cliffwatch run bundle` wrote")
    accept(manifest)
    _require_expansion(source, manifest)
    require_space(directory.parent, manifest.size_bytes)
    directory.mkdir(mode=0o700)
    for file in manifest.files:
        if reader.header() != (f"{manifest.run_id}/{file.path}", file.size_bytes):
            raise invalid("archive", f"where {file.path} should come, something else does")
        digest = hashlib.sha256()
        path = directory / file.path if is_kept(file.path) else None
        if path is not None:
            path.parent.mkdir(exist_ok=True)
        with path.open("xb") if path is not None else open(os.devnull, "wb") as copy:  # noqa: PTH123  no Path to open
            for chunk in reader.content(file.size_bytes):
                digest.update(chunk)
                copy.write(chunk)
            copy.flush()
            if path is not None:
                os.fsync(copy.fileno())
        if digest.hexdigest() != file.sha256:
            raise invalid(file.path, "its SHA-256 is not what the manifest says; fetch the bundle again")
    reader.end()
    for made in {directory / Path(file.path).parent for file in manifest.files if is_kept(file.path)}:
        durable.sync_directory(made)
    _check(directory, manifest)
    return manifest


def _require_expansion(source: BinaryIO, manifest: Manifest) -> None:
    if not source.seekable():
        return  # A pipe has no size; the service gives a file.
    position = source.tell()
    packed_bytes = source.seek(0, os.SEEK_END)
    source.seek(position)
    allowed = FREE_EXPANSION_BYTES + EXPANSION_LIMIT * packed_bytes
    if manifest.size_bytes > allowed:
        words = (
            f"{format_size(packed_bytes)} would become {format_size(manifest.size_bytes)}; a bundle of this size may "
            f"become {format_size(allowed)}"
        )
        raise invalid("files", words)


def require_space(directory: Path, size_bytes: int) -> None:
    """Check that FREE_RESERVE_BYTES remain free after writing `size_bytes`. Raises Problem(space_insufficient)."""
    free = shutil.disk_usage(directory).free
    if free < size_bytes + FREE_RESERVE_BYTES:
        raise Problem(
            Code.SPACE_INSUFFICIENT,
            f"the bundle needs {size_bytes} bytes and {FREE_RESERVE_BYTES} have to stay free below {directory}, where "
            f"{free} are; make room, or set CLIFFWATCH_RUNS_DIRECTORY to a larger disk",
        )


def disk_problem(directory: Path, error: OSError) -> Problem:
    """Problem for a failed write: other processes may fill the disk after its space was checked."""
    if durable.is_full(error):
        return Problem(
            Code.SPACE_INSUFFICIENT,
            f"the disk below {directory} takes no more ({error.strerror}); make room, of inodes too, or set "
            f"CLIFFWATCH_RUNS_DIRECTORY to a larger disk",
        )
    code = Code.JOURNAL_UNWRITABLE if durable.takes_nothing(error) or not directory.is_dir() else Code.INTERNAL
    return Problem(code, f"the bundle cannot be unpacked below {directory}: {error.strerror or error}")


def _check(directory: Path, manifest: Manifest) -> None:
    """Check that the service can show this run and never has to execute it. Raises Problem(bundle_invalid)."""
    reader = JournalReader(directory)
    for name in (files.ORDER, files.FACTS):
        _check_document(directory / name)
    try:
        order = order_of(reader)
    except Problem as problem:
        # Paths of this machine mean nothing to the client that sent the bundle.
        raise Problem(Code.BUNDLE_INVALID, f"{files.ORDER} does not hold an order", problem.faults) from problem
    if order.run_id != manifest.run_id:
        raise invalid(files.ORDER, f"it is of run {order.run_id}, and the bundle is of {manifest.run_id}")
    _check_moment(files.ORDER, order.created_at)
    _check_lines(directory / files.EVENTS, _check_event, EVENTS_LIMIT)
    planned = math.ceil(order.workload.phases.load_seconds / order.workload.window)
    windows_limit = min(WINDOWS_LIMIT, planned + SPARE_WINDOWS)
    _check_lines(directory / files.WINDOWS, _Windows(directory / files.LATENCY).check, windows_limit)
    _check_lines(directory / files.LATENCY, lambda place, body: None, 10 * WINDOWS_LIMIT)
    status = _status(reader)
    if status is None or status.state is not RunState.FINISHED:
        state = "of no state that can be read" if status is None else status.state.value
        raise invalid(files.EVENTS, f"the run is {state}; only a finished run is taken")
    if status.verdict is not manifest.verdict:
        raise invalid(files.EVENTS, f"the run's verdict is {status.verdict}, and not {manifest.verdict}")
    first = next(stored.event for stored in reader.events() if stored.event.type is EventType.STATE)
    try:
        Submission.from_detail(first.detail, str(order.target))
    except ValueError as error:
        raise invalid(files.EVENTS, str(error)) from error
    moments = (status.since, status.created_at, status.started_at, status.load_start, status.load_stop)
    for moment in moments:
        _check_moment(files.EVENTS, moment or 0.0)


def _status(reader: JournalReader) -> RunStatus | None:
    faults: list[str] = []
    status = status_of((stored.event for stored in reader.events()), faults)
    if faults:
        raise invalid(files.EVENTS, faults[0][:200])
    return status


def _check_document(path: Path) -> None:
    """Refuse a JSON document with NaN, infinities, deep nesting or text that cannot be stored. Malformed JSON passes,
    since its readers handle it. Raises Problem(bundle_invalid)."""
    try:
        _check_values(path.name, strict_json(path.read_bytes()))
    except FileNotFoundError:
        return
    except NotFiniteError as error:
        raise invalid(path.name, str(error)) from error
    except ValueError:
        return


def _check_lines(path: Path, check: Callable[[str, dict[str, Any]], None], limit: int) -> None:
    """Check each line of a journal file. A line that is not a JSON object passes: crash damage, which readers skip."""
    if not path.exists():
        return
    with path.open("rb") as file:
        lines = iter(lambda: file.readline(LINE_LIMIT_BYTES + 1), b"")
        for number, line in enumerate(lines, start=1):
            if number > limit:
                raise invalid(path.name, f"it has more than {limit} lines")
            if len(line) > LINE_LIMIT_BYTES:
                raise invalid(f"{path.name} line {number}", f"it has more than {format_size(LINE_LIMIT_BYTES)}")
            try:
                body = strict_json(line)
            except NotFiniteError as error:
                raise invalid(f"{path.name} line {number}", str(error)) from error
            except ValueError:
                continue
            if isinstance(body, dict):
                _check_values(f"{path.name} line {number}", body)
                check(f"{path.name} line {number}", body)


def _check_event(place: str, body: dict[str, Any]) -> None:
    """Check that an event's time can be serialised: the event is listed together with those of other runs."""
    if isinstance(body.get("at"), int | float):
        _check_moment(place, body["at"])


class _Windows:
    """Check of windows: valid types, each after the previous one, each with its own histograms.

    The list of runs draws windows with code that relies on this. And if many windows named the same histogram, a small
    bundle would make the reader decode one histogram for each of them.
    """

    def __init__(self, latency: Path) -> None:
        self._latency = latency
        self._last: JournalWindow | None = None
        self._names: dict[str, set[str]] = {kind: set() for kind in NAMES_LIMITS}

    def check(self, place: str, body: dict[str, Any]) -> None:
        try:
            window = _WINDOWS.validate_python(body)
        except ValidationError as error:
            raise Problem(Code.BUNDLE_INVALID, f"{place} is no window", faults_of(error)[:20]) from error
        for kind, limit in NAMES_LIMITS.items():
            self._names[kind].update(getattr(window, kind))
            if len(self._names[kind]) > limit:
                raise invalid(place, f"up to here the run has more than {limit} names of {kind}")
        try:
            JournalWindow.from_line(window.to_line())
        except ValueError as error:
            # Readers would skip this window, and the report would lack it.
            raise invalid(place, str(error)) from error
        last, self._last = self._last, window
        if last is not None:
            _check_order(place, window, last)
        self._check_histograms(place, window)

    def _check_histograms(self, place: str, window: JournalWindow) -> None:
        """Check a window's histograms: at most one for each of its latencies, since a worker writes no more. Missing
        ones are harmless damage."""
        start, end = window.latency_range
        if end - start > HISTOGRAMS_LIMIT_BYTES:
            allowed = format_size(HISTOGRAMS_LIMIT_BYTES)
            raise invalid(place, f"its latency_range has {format_size(end - start)}; it may have {allowed}")
        if not self._latency.exists() or end > self._latency.stat().st_size:
            return
        with self._latency.open("rb") as file:
            file.seek(start)
            lines = file.read(end - start)
        if window.latency_crc32 not in (None, checksum(lines)):
            return  # Wrong checksum: readers decode none of these histograms.
        left = dict.fromkeys(window.latency)
        for line in lines.decode("ascii", "replace").splitlines():
            name = tag_name(line.partition(",")[0])
            if name not in left:
                raise invalid(place, f"its latency_range holds {name[:40]!r}, which it has not, or twice")
            del left[name]


def _check_order(place: str, window: JournalWindow, last: JournalWindow) -> None:
    if window.seq <= last.seq:
        raise invalid(place, f"its seq, {window.seq}, does not come after that of the one before it, {last.seq}")
    if window.start < last.end - 1e-6:
        raise invalid(place, "it begins before the one before it ended")
    if window.latency_range[0] < last.latency_range[1]:
        raise invalid(place, "its latency_range names histograms of the one before it")


def _check_values(place: str, body: Any) -> None:
    try:
        require_shallow(body)
        check_text(body)
    except ValueError as error:
        raise invalid(place, str(error)) from error


def _check_moment(place: str, moment: float) -> None:
    if not 0 <= moment <= files.LAST_MOMENT:
        raise invalid(place, f"{moment!r:.40} is no time, in seconds since 1970")
