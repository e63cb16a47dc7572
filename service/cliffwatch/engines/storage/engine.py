"""The engine that runs `cliffwatch-load storage`."""

import json
import math
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.programs import LOAD, ask, find_program, require_program, version_of
from cliffwatch.base.units import format_duration, format_share, format_size
from cliffwatch.engines.contract import EngineContext, EngineFacts, JsonLines, Launch, Probe, Translator
from cliffwatch.engines.storage.document import document_of
from cliffwatch.engines.storage.load import StorageLoad
from cliffwatch.model.plan import LoadPlan, PlannedWrite

DOCUMENT_FILE = "storage.json"
#: Directories that the engine makes in the run's directory, besides its marker.
LOG_DIRECTORY = "log"
JOURNAL_DIRECTORY = "journal"
#: Most bytes that a broker's journal holds and that are not yet in the log.
_UNCHECKED_BYTES = 64 * 1024**2
_STAT_BLOCK_BYTES = 512


class StorageEngine:
    """Engine that writes the document of `cliffwatch-load storage` and starts it; it prints the contract's lines."""

    name = "storage"
    load_model = StorageLoad
    target_kinds = frozenset({"directory"})
    latencies = ("append", "append_service", "sync", "write", "read", "read_service", "end_to_end")
    stop_signal = signal.SIGTERM
    reads_history = False

    def is_virtual(self, load: StorageLoad) -> bool:
        return False

    def plan(self, load: StorageLoad, context: EngineContext) -> LoadPlan:
        """Plan of the load. Raises Problem(workload_invalid) when the retention is too small for the segments."""
        _require_room_for_segments(load, context)
        style = load.effective_style
        return LoadPlan(
            writes=_writes(load, context),
            command=(LOAD, "storage", "--config", str(context.scratch / DOCUMENT_FILE)),
            direct=style.direct,
            written_bytes=_written_bytes(load, context),
            notes=_notes(load, context),
        )

    def probe(self, load: StorageLoad, context: EngineContext) -> Probe:
        return Probe()

    def prepare(self, load: StorageLoad, context: EngineContext) -> Launch | None:
        """Process that makes the partitions' directories, and fills the share `fill_ratio` of the retention."""
        return Launch([*_command(load, context), "--prepare"], directory=context.entry)

    def launch(self, load: StorageLoad, context: EngineContext) -> Launch:
        return Launch(_command(load, context), directory=context.entry)

    def translator(self, load: StorageLoad, context: EngineContext) -> Translator:
        return JsonLines()

    def clear(self, load: StorageLoad, context: EngineContext) -> None:
        return None

    def facts(self, load: StorageLoad, context: EngineContext) -> EngineFacts:
        program = find_program(LOAD, context.state_directory)
        if program is None:
            return EngineFacts()
        try:
            versions = {LOAD: version_of(program)}
        except Problem:
            return EngineFacts()
        found = _try_io(load, context)
        if found is None:
            return EngineFacts(versions)
        return EngineFacts(versions, {"io": found.io}, () if found.reason is None else (found.reason,))


@dataclass(frozen=True, slots=True)
class _Io:
    """I/O method for files on this target, and why it is not the requested one."""

    io: str
    reason: str | None


def _try_io(load: StorageLoad, context: EngineContext) -> _Io | None:
    """Run the program to find its I/O method on this target. None if there is no program, if it refuses the load or
    does not answer: starting the load reports each of these."""
    program = find_program(LOAD, context.state_directory)
    if program is None:
        return None
    document = json.dumps(document_of(load, context))
    try:
        done = ask(program, "storage", "--config", "/dev/stdin", "--try-io", standard_input=document)
    except Problem:
        return None
    return _Io(**json.loads(done.stdout)) if done.returncode == 0 else None


def _command(load: StorageLoad, context: EngineContext) -> list[str]:
    program = require_program(LOAD, context.state_directory)
    document = context.scratch / DOCUMENT_FILE
    document.write_text(json.dumps(document_of(load, context), indent=2) + "\n")
    return [str(program), "storage", "--config", str(document)]


def _volume_bytes(path: Path) -> int:
    """Size in bytes of the volume that `path` is on, or will be."""
    while not path.exists():
        path = path.parent
    volume = os.statvfs(path)
    return volume.f_blocks * volume.f_frsize


def _retention_bytes(load: StorageLoad, context: EngineContext) -> int:
    if load.retention_size is not None:
        return load.retention_size
    assert load.retention_ratio is not None, "validated"
    return int(_volume_bytes(context.path) * load.retention_ratio)


def _require_room_for_segments(load: StorageLoad, context: EngineContext) -> None:
    """Check a retention given as a share of the volume, whose size is known only here, against the segments."""
    if load.retention_ratio is None or (kept_bytes := _retention_bytes(load, context)) >= load.least_retention_bytes:
        return
    volume_bytes = math.ceil(load.least_retention_bytes / load.retention_ratio)
    message = (
        f"{load.segments_phrase} take {format_size(load.least_retention_bytes)}, and "
        f"{format_share(load.retention_ratio)} of the volume are {format_size(kept_bytes)}; "
        f"take a volume of {format_size(volume_bytes)} or more, smaller segments "
        "(`style_changes.segment_size`) or fewer partitions"
    )
    fault = FieldFault("load.retention_ratio", message)
    raise Problem(Code.WORKLOAD_INVALID, "the workload does not fit on the volume", [fault])


def _writes(load: StorageLoad, context: EngineContext) -> tuple[PlannedWrite, ...]:
    """Planned writes: all segments of all partitions as one, less what an earlier engine of this run wrote."""
    style = load.effective_style
    log = context.path / LOG_DIRECTORY
    size_bytes = max(0, _retention_bytes(load, context) - _bytes_below(log))
    writes = [PlannedWrite(log / "segments", size_bytes)]
    if style.journal:
        journal_bytes = 2 * style.journal_segment_size + _UNCHECKED_BYTES
        writes.append(PlannedWrite(context.path / JOURNAL_DIRECTORY / "segments", journal_bytes))
    return tuple(writes)


def _bytes_below(directory: Path) -> int:
    return sum(path.lstat().st_blocks * _STAT_BLOCK_BYTES for path in directory.rglob("*"))


def _written_bytes(load: StorageLoad, context: EngineContext) -> int:
    filled = 0 if context.resumed else load.fill_ratio * _retention_bytes(load, context)
    appended = load.bytes_within(context.stop - context.begun)
    return round((filled + appended) * (2 if load.effective_style.journal else 1))


def _notes(load: StorageLoad, context: EngineContext) -> tuple[str, ...]:
    retention_bytes = _retention_bytes(load, context)
    style = load.effective_style
    notes = []
    unfilled = retention_bytes * (1 - load.fill_ratio)
    full_after = unfilled / load.bytes_per_second
    if full_after > context.stop - context.begun:
        notes.append(
            f"at {format_size(load.bytes_per_second)} a second the {format_size(retention_bytes)} that are kept are "
            f"full after {format_duration(round(full_after))}, later than the load ends: nothing is deleted"
        )
    if not style.direct:
        notes.append("I/O goes through the page cache: the drive sees writes later")
    if (found := _try_io(load, context)) is not None and found.reason is not None:
        notes.append(found.reason)
    if load.payload_randomness < 1:
        notes.append("part of the payload can be compressed: a drive that compresses will look better than it is")
    return tuple(notes)
