"""Read warp's operations, unpacked from the `.csv.zst` that it writes: a line for each request, separated by tabs.

Columns are known by the header. Operations are numbered, so that missing ones are known; one with an error failed.
"""

import csv
from collections.abc import Iterable, Sequence
from datetime import datetime

from cliffwatch.labs.outputs.operations import OperationLog
from cliffwatch.labs.outputs.rows import BadLineError, Reading, require_total

_HEAD = "idx\tthread\top\t"
_SEGMENTS = "index\top\thost\tduration_s\t"
_NEEDED = ("idx", "op", "error", "start", "end", "duration_ns")
_SERIES = "`warp … --full` writes a line for each operation into a .csv.zst, which `zstd -d` unpacks"
#: Most that a duration may differ from the distance of its times.
_TOLERANCE_SECONDS = 0.01


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(line.startswith((_HEAD, _SEGMENTS)) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read operations. Raises BadLineError for other lines, and where operations are missing."""
    log = OperationLog()
    places: dict[str, int] = {}
    numbers: list[int] = []
    # An error may hold line ends, within quotes.
    reader = csv.reader((line for line in lines if not line.startswith("#")), delimiter="\t", strict=True)
    try:
        for fields in reader:
            line = reader.line_num
            if fields[:3] == _HEAD.split("\t")[:3]:
                places = _places(line, fields)
            elif "\t".join(fields[:4]) == _SEGMENTS.rstrip("\t"):
                raise BadLineError(line, f"is of warp's segments, which have means only; {_SERIES}")
            elif places and fields:
                numbers.append(_add(log, line, fields, places))
    except csv.Error as error:
        raise BadLineError(reader.line_num, f"cannot be read ({error}); {_SERIES}") from error
    if numbers:
        require_total(reader.line_num, "operations", len(numbers), max(numbers) - min(numbers) + 1)
    return log.reading()


def _places(line: int, names: list[str]) -> dict[str, int]:
    if missing := [name for name in _NEEDED if name not in names]:
        raise BadLineError(line, f"is a header without {', '.join(missing)}; {_SERIES}")
    return {name: place for place, name in enumerate(names)}


def _add(log: OperationLog, line: int, fields: list[str], places: dict[str, int]) -> int:
    """Add the operation of a line to the log; returns its number. Raises BadLineError."""
    try:
        if len(fields) != len(places):
            raise ValueError(f"{len(fields)} fields in place of {len(places)}")
        number, latency = int(fields[places["idx"]]), int(fields[places["duration_ns"]]) / 1e9
        start, end = (datetime.fromisoformat(fields[places[name]]).timestamp() for name in ("start", "end"))
        if latency < 0 or start < 0 or abs(end - start - latency) > _TOLERANCE_SECONDS:
            raise ValueError(f"{latency:g} s from {start:.9g} s to {end:.9g} s")
    except (ValueError, OverflowError) as error:
        what = f"{' '.join(fields)[:60]!r} is no operation of warp ({error!r:.80})"
        raise BadLineError(line, f"{what}; {_SERIES}") from error
    if fields[places["error"]]:
        log.add_failure(line, end)
    else:
        log.add(line, end, latency, fields[places["op"]].lower())
    return number
