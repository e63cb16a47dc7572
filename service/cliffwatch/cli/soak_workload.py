"""Workload that `cliffwatch soak` chooses for a target: what it loads, how fast and how long each phase is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import format_length, format_ratio, format_share, format_size

#: Bytes per second that are written to files, a drive or a broker: far less than a SATA SSD takes (about 500 MB), so
#: that a healthy drive has no queue, and enough to write a drive of 1 TB over twice in 36 hours.
RATE, RATE_BYTES = "20MB", 20_000_000
#: The shortest soak; and lengths from which windows are longer than a second.
SHORTEST_SECONDS, _LONG_SECONDS = 120.0, 3600.0
_WARM_UP_SHARE, _WARM_UP_MOST = 0.05, 1800.0
_BASELINE_SHARE, _BASELINE_MOST = 0.2, 5400.0
#: The least that is kept of a directory's files, the share of the free space that is kept at most, and what each
#: partition keeps at least: three segments of 16 MiB.
_MEBIBYTE = 1 << 20
_KEPT_LEAST, _KEPT_SHARE, _PARTITION_BYTES, _PARTITIONS = 64 * _MEBIBYTE, 0.5, 48 * _MEBIBYTE, 24
_RECORD_BYTES, _TRANSACTIONS = 1024, 100
#: Times that a drive may be written over within its warranty of five years: ratings from 0.3 to 3 times a day.
_RATED_TIMES = "550 to 5,500"
#: Writers of a drive, each to a region of its own (MiB): together they write all of it.
_BLOCK_BYTES, _WRITERS, _LEAST_REGION = 16_384, 4, 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """Free bytes of the volume that a directory is on, and bytes of the drives below a target; None if not known."""

    free_bytes: int | None = None
    drive_bytes: int | None = None


def soak_workload(target: Mapping[str, Any], seconds: float, sizes: Sizes) -> dict[str, Any]:
    """Workload document for a target, as a run request has it, whose load lasts this long. Raises Problem for a length
    that is too short, and for a target that nothing can be written to."""
    if seconds < SHORTEST_SECONDS:
        fault = FieldFault("--for", f"{format_length(seconds)} is too short to judge; give at least 2m")
        raise Problem(Code.BAD_REQUEST, "the length is not valid", [fault])
    warm_up = round(min(_WARM_UP_MOST, _WARM_UP_SHARE * seconds))
    baseline = round(min(_BASELINE_MOST, _BASELINE_SHARE * seconds))
    engine, load = _load(target, seconds, sizes)
    return {
        "version": 1,
        "name": f"soak-{target['kind']}-{_written(round(seconds))}",
        "description": f"Chosen by `cliffwatch soak` for {target['kind']} targets.",
        "engine": engine,
        "window": "1s" if seconds < _LONG_SECONDS else "10s",
        "phases": {
            "warm_up": _written(warm_up),
            "baseline": _written(baseline),
            "soak": _written(round(seconds) - warm_up - baseline),
        },
        "load": load,
    }


def _written(seconds: int) -> str:
    """A length as workloads have it: `7m30s`."""
    return format_length(seconds).replace(" ", "")


def _load(target: Mapping[str, Any], seconds: float, sizes: Sizes) -> tuple[str, dict[str, Any]]:
    match target["kind"]:
        case "directory":
            room = _KEPT_SHARE * (sizes.free_bytes or 0)
            kept = max(_KEPT_LEAST, min(room, RATE_BYTES * seconds / 2))
            return "storage", {
                "style": "redpanda",
                "style_changes": {"segment_size": "16MiB", "preallocation": "4MiB"},
                "partitions": max(1, min(_PARTITIONS, int(kept // _PARTITION_BYTES))),
                "rate": RATE,
                "retention_size": f"{kept // _MEBIBYTE:.0f}MiB",
            }
        case "device":
            # At random, since only that makes a drive collect garbage.
            rate = RATE_BYTES // _BLOCK_BYTES // _WRITERS
            region = max(_LEAST_REGION, (sizes.drive_bytes or 0) // _WRITERS // _MEBIBYTE)
            size = f"size={region}m\nnumjobs={_WRITERS}\nrate_iops={rate}\n"
            job = f"[log]\nrw=randwrite\nbs={_BLOCK_BYTES}\ndirect=1\n{size}"
            return "fio", {"job": job}
        case "broker":
            producer = {"rate": RATE_BYTES // _RECORD_BYTES, "record_size": f"{_RECORD_BYTES}B"}
            return "kafka", {"topics": {"partitions": _PARTITIONS}, "producer": producer, "consumer": {}}
        case "postgres":
            return "pgbench", {"rate": _TRANSACTIONS}
        case "synthetic":
            return "synthetic", {}
        case kind:
            remedy = "name a directory, a drive, a broker or a database"
            fault = FieldFault("target", f"{kind} targets are loaded by others; {remedy}")
            raise Problem(Code.BAD_REQUEST, "nothing can be written to this target", [fault])


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """The plan of a soak in five lines: what is written, how long, what of the drives, what will be known, what is in
    the way."""
    total, seconds, drives = plan.get("written_bytes"), float(plan["planned_seconds"]), plan.get("drive_bytes")
    kept = sum(write["size_bytes"] for write in plan.get("writes") or [])
    written = "as much as the target takes" if total is None else f"{format_size(total)} in all"
    where = f"; {format_size(kept)} of it are kept until the end" if plan["target"]["kind"] == "directory" else ""
    objections = [each["message"] for each in plan.get("objections") or [] if each["code"] != "confirmation_missing"]
    return [
        f"writes     {written}{where}",
        f"lasts      {format_length(seconds)}: {plan['lasts']}",
        f"drives     {_wear(total, drives)}",
        f"will show  {_knowledge(plan, total, drives, seconds)}",
        *(f"in the way {each}" for each in objections or ["nothing"]),
    ]


def _wear(total: int | None, drives: int | None) -> str:
    if not drives:
        return "none is watched below this target"
    if total is None:
        return f"{format_size(drives)}; how much of it is written is not known"
    times = total / drives
    share = f"{format_share(times)} of" if times < 1 else format_ratio(times)
    return f"{share} their size ({format_size(drives)}) is written; drives are rated for {_RATED_TIMES} times"


def _knowledge(plan: Mapping[str, Any], total: int | None, drives: int | None, seconds: float) -> str:
    soak = plan["lasts"].rpartition("soak ")[2]
    known = f"whether latency stays healthy for {soak} of soak"
    if not drives:
        return f"{known}; not whether a drive is the reason, since none is watched"
    if total is None:
        return f"{known}; whether the drive is written over depends on how fast the target is"
    if total < drives:
        length = f", which takes --for {_hours(drives, total, seconds)}" if total else ""
        return f"{known}; no cliff that comes once the drive was written over{length}"
    return f"{known}, also once the drive was written over"


def _hours(drives: int, total: int, seconds: float) -> str:
    """Length, in whole hours, after which as much is written as the drives are large."""
    return f"{-(-drives * seconds // (total * 3600)):.0f}h"
