"""Read sar's records of devices as sadf prints them: `sadf -d FILE -- -d`, a line for each device and interval, or
`sadf -j FILE -- -d`, the same as JSON.

A record states its interval's length and end. Latencies are means of reads and writes together, in milliseconds. A
device without requests has a latency of 0, which was not measured.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cliffwatch.analysis.table import END_COLUMN, OLDEST_COLUMN, Row
from cliffwatch.labs.outputs.rows import RATE_COLUMN, BadLineError, Reading, known, went_back

_HEAD = "# hostname;interval;timestamp;"
_NEEDED = ("interval", "timestamp", "DEV", "tps", "await")
_QUEUE = "aqu-sz"
_SERIES = "`sadf -d FILE -- -d` prints the records of devices"
_JSON_SERIES = "`sadf -j FILE -- -d` prints the records of devices"
#: Key of sadf's JSON that iostat's does not have, near its beginning.
_JSON_MARK, _JSON_MARK_LINES = '"file-date"', 12
_JSON_WENT_BACK = (
    "has records whose times go back: the clock was set back; print those before or after by `sadf -s` or `-e`"
)


@dataclass(frozen=True, slots=True)
class _Record:
    """Record of a device: the interval's length and end in seconds, requests per second, mean queue, mean latency in
    milliseconds. `line` is 0 for JSON."""

    line: int
    length: float
    end: float
    device: str
    requests: float
    queue: float
    latency: float


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    beginning = head[:_JSON_MARK_LINES]
    is_json = any('"sysstat"' in line for line in beginning) and any(_JSON_MARK in line for line in beginning)
    return is_json or any(line.startswith(_HEAD) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read sadf's records. Raises BadLineError for other lines, and for records without devices."""
    rest = iter(lines)
    first = next(rest, "")
    records = _of_json("\n".join([first, *rest])) if first.startswith("{") else _of_lines(first, rest)
    rows: dict[float, Row] = {}
    queued: dict[float, float] = defaultdict(float)
    last: tuple[int, float] | None = None
    for each in records:
        if last is not None and each.end < last[1]:
            raise went_back(last, (each.line, each.end)) if each.line else BadLineError(0, _JSON_WENT_BACK)
        zero = next(iter(rows.values())).at if rows else each.end - each.length
        # Lengths are whole seconds, so that one may begin before the end of the one before.
        start = each.end - each.length
        start = start if last is None or each.end == last[1] else max(start, last[1])
        row = rows.setdefault(each.end, Row(start, {}, {END_COLUMN: each.end - zero, RATE_COLUMN: 0.0}))
        last = (each.line, each.end)
        row.numbers[RATE_COLUMN] += each.requests
        queued[each.end] += each.queue
        if each.requests > 0:
            row.numbers[f"{each.device}.mean"] = each.latency / 1000
    zero = next(iter(rows.values())).at if rows else 0.0
    found = [Row(row.at - zero, {}, known(row.numbers)) for row in rows.values()]
    for row, queue in zip(found, queued.values(), strict=True):
        # Devices without a request in their queues have nothing to do, and are not held.
        if row.numbers.get(RATE_COLUMN) == 0 and queue == 0:
            row.numbers[OLDEST_COLUMN] = 0.0
    return Reading(found, remark="Rates of all devices were added up." if found else "")


def _of_lines(first: str, rest: Iterable[str]) -> Iterator[_Record]:
    names: list[str] = []
    for number, line in enumerate([first, *rest], start=1):
        if line.startswith(_HEAD):
            names = line.removeprefix("# ").strip().split(";")
            if missing := [name for name in _NEEDED if name not in names]:
                raise BadLineError(number, f"is of records without {', '.join(missing)}; {_SERIES}")
            continue
        # Lines without a figure say that the machine or the collector was restarted.
        if not names or line.startswith("#") or "RESTART" in line or not line.strip():
            continue
        fields = dict(zip(names, line.strip().split(";"), strict=False))
        try:
            length, requests, latency = (float(fields[name].replace(",", ".")) for name in ("interval", "tps", "await"))
            end = _moment(fields["timestamp"].removesuffix(" UTC"))
            queue, device = float(fields.get(_QUEUE, "0").replace(",", ".")), fields["DEV"]
        except (KeyError, ValueError) as error:
            raise BadLineError(number, f"{line[:60]!r} does not have the fields of the header; {_SERIES}") from error
        yield _Record(number, length, end, device, requests, queue, latency)


def _of_json(text: str) -> Iterator[_Record]:
    try:
        for host in json.loads(text)["sysstat"]["hosts"]:
            for each in host["statistics"]:
                stated = each["timestamp"]
                end, length = _moment(f"{stated['date']} {stated['time']}"), float(stated["interval"])
                if "disk" not in each:
                    raise BadLineError(0, f"has records without devices; {_JSON_SERIES}")
                for disk in each["disk"]:
                    figures = (float(disk["tps"]), float(disk.get(_QUEUE, 0.0)), float(disk["await"]))
                    yield _Record(0, length, end, str(disk["disk-device"]), *figures)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, BadLineError):
            raise
        raise BadLineError(0, f"is no JSON of sadf ({error!r:.80}); {_JSON_SERIES}") from error


def _moment(text: str) -> float:
    """Seconds since the epoch. Times of another zone than UTC differ from it by the same all along."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
