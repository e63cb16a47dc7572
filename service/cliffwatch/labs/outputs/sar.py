"""Read sar's records of devices as `sadf -d FILE -- -d` prints them: a line for each device and interval.

A line states its interval's length and end. Latencies are means of reads and writes together, in milliseconds. A device
without requests has a latency of 0, which was not measured.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from cliffwatch.analysis.table import END_COLUMN, OLDEST_COLUMN, Row
from cliffwatch.labs.outputs.rows import RATE_COLUMN, BadLineError, Reading, known, went_back

_HEAD = "# hostname;interval;timestamp;"
_NEEDED = ("interval", "timestamp", "DEV", "tps", "await")
_QUEUE = "aqu-sz"
_SERIES = "`sadf -d FILE -- -d` prints the records of devices"


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(line.startswith(_HEAD) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read sadf's lines. Raises BadLineError for other lines, and for records without devices."""
    names: list[str] = []
    rows: dict[float, Row] = {}
    queued: dict[float, float] = defaultdict(float)
    last: tuple[int, float] | None = None
    for number, line in enumerate(lines, start=1):
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
            end = datetime.fromisoformat(fields["timestamp"].removesuffix(" UTC")).replace(tzinfo=UTC).timestamp()
            queue, device = float(fields.get(_QUEUE, "0").replace(",", ".")), fields["DEV"]
        except (KeyError, ValueError) as error:
            raise BadLineError(number, f"{line[:60]!r} does not have the fields of the header; {_SERIES}") from error
        if last is not None and end < last[1]:
            raise went_back(last, (number, end))
        zero = next(iter(rows.values())).at if rows else end - length
        # Lengths are whole seconds, so that one may begin before the end of the one before.
        start = end - length if last is None or end == last[1] else max(end - length, last[1])
        row = rows.setdefault(end, Row(start, {}, {END_COLUMN: end - zero, RATE_COLUMN: 0.0}))
        last = (number, end)
        row.numbers[RATE_COLUMN] += requests
        queued[end] += queue
        if requests > 0:
            row.numbers[f"{device}.mean"] = latency / 1000
    zero = next(iter(rows.values())).at if rows else 0.0
    found = [Row(row.at - zero, {}, known(row.numbers)) for row in rows.values()]
    for row, queue in zip(found, queued.values(), strict=True):
        # Devices without a request in their queues have nothing to do, and are not held.
        if row.numbers.get(RATE_COLUMN) == 0 and queue == 0:
            row.numbers[OLDEST_COLUMN] = 0.0
    return Reading(found, remark="Rates of all devices were added up." if found else "")
