"""The JSON document that configures `cliffwatch-load storage`."""

from typing import Any

from cliffwatch.engines.contract import EngineContext
from cliffwatch.engines.storage.load import StorageLoad
from cliffwatch.engines.storage.style import Style


def document_of(load: StorageLoad, context: EngineContext) -> dict[str, Any]:
    """The document of a load, with times and paths. The directory is `.` if the program is started in it."""
    style = load.effective_style
    return {
        "directory": str(context.path) if context.descriptor is None else ".",
        "window_seconds": context.window_seconds,
        "start": context.start,
        "stop": context.stop,
        "begun": context.begun,
        "partitions": load.partitions,
        "producers": load.producers,
        "record": {
            "sizes": [{"bytes": size, "weight": weight} for size, weight in load.sizes],
            "randomness": load.payload_randomness,
        },
        "batch_records": load.batch_records,
        "rate": _steps(load),
        "burst_seconds": load.burst_limit,
        "threads": style.threads,
        "io": style.io,
        "buffer_bytes": load.buffer_size,
        "memory_bytes": load.memory_limit,
        "log": _log(style),
        "journal": _journal(style),
        "retention": _retention(load),
        "fill": load.fill_ratio,
        "trim_interval_seconds": load.discard_interval,
        "readers": {
            "tailing": load.tailing_consumers,
            "catch_up_bytes_per_second": float(load.catch_up_rate),
            "read_bytes": load.read_size,
        },
        "verify": {"bytes": load.verify_size, "seconds": load.verify_time},
        "keep_files": load.keep_files,
    }


def _steps(load: StorageLoad) -> list[dict[str, float]]:
    records = load.bytes_per_second / load.mean_record_bytes
    later = [{"after_seconds": step.after, "per_second": records * step.ratio} for step in load.rate_steps]
    return [{"after_seconds": 0.0, "per_second": records}, *later]


def _log(style: Style) -> dict[str, Any]:
    return {
        "layout": style.layout,
        "direct": style.direct,
        "chunk_bytes": style.chunk_size,
        "preallocate_bytes": style.preallocation,
        "acknowledge": style.acknowledge,
        "coalesce": style.coalesce,
        "sync_on_roll": style.sync_on_roll,
        "snapshot_bytes": style.snapshot_size,
        "offset_checkpoint_seconds": style.offset_checkpoint_interval or None,
        "start_checkpoint": style.start_checkpoint,
        "background_threads": style.background_threads,
        "segment_bytes": style.segment_size,
        "segment_jitter": style.segment_jitter,
        "index_interval_bytes": style.index_interval,
        "checkpoint_seconds": style.checkpoint_interval,
    }


def _journal(style: Style) -> dict[str, Any] | None:
    if not style.journal:
        return None
    return {
        "direct": style.journal_direct,
        "segment_bytes": style.journal_segment_size,
        "preallocate_bytes": style.journal_preallocation,
        "group_seconds": style.journal_group_wait,
        "group_bytes": style.journal_group_size,
    }


def _retention(load: StorageLoad) -> dict[str, float]:
    if load.retention_size is not None:
        return {"bytes": load.retention_size}
    assert load.retention_ratio is not None, "validated"
    return {"share": load.retention_ratio}
