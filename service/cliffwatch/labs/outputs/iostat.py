"""Read iostat with extended statistics and times: `iostat -x -t`, as text or with `-o JSON`.

A report has the mean latency of reads and writes of each device in milliseconds, over the time since the one before;
the first one is since boot and is left out. A device without requests has a latency of 0, which was not measured.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cliffwatch.analysis.table import OLDEST_COLUMN
from cliffwatch.labs.outputs.rows import RATE_COLUMN, BadLineError, Progress, Reading, known, rows_of_intervals

_HEAD = re.compile(r"Device:? .*\br/s\b")
_TITLE = re.compile(r"Linux \S+ \(.*\) +\S+ +_\w+_")
#: A time as `S_TIME_FORMAT=ISO` has it, and as English locales do.
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}\s*$")
_ENGLISH = re.compile(r"\d\d/\d\d/\d{2,4} \d\d:\d\d:\d\d [AP]M\s*$")
_TIMES = "ask for `S_TIME_FORMAT=ISO iostat -x -t 1`, whose reports have times that can be read"
_WAYS = {"read": ("r/s", "r_await"), "write": ("w/s", "w_await")}
_QUEUES = ("aqu-sz", "avgqu-sz")


@dataclass(slots=True)
class _Report:
    """Report: the line it begins at, its time in seconds since the epoch, figures of each device by column."""

    line: int
    at: float
    devices: dict[str, dict[str, float]] = field(default_factory=dict)


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    is_json = any('"sysstat"' in line for line in head[:3]) and any('"disk_device"' in line for line in head)
    return is_json or any(_HEAD.match(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read iostat's reports. Raises BadLineError for reports without times or latencies, and for other lines."""
    rest = iter(lines)
    first = next((line for line in rest if line.strip()), "")
    reports = list(_of_json("\n".join([first, *rest])) if first.startswith("{") else _of_text(first, rest))
    said = [Progress(each.line, each.at, _numbers(each)) for each in reports[1:]]
    rows = rows_of_intervals(said)
    devices = sorted({name for each in reports for name in each.devices})
    remark = f"The first report is since boot and was left out; rates of {', '.join(devices[:5])} were added up."
    return Reading(rows, remark=remark if rows else "")


def _of_text(first: str, lines: Iterable[str]) -> Iterator[_Report]:
    report: _Report | None = None
    names: list[str] = []
    for number, line in enumerate([first, *lines], start=1):
        if _ISO.match(line) or _ENGLISH.match(line):
            if report is not None:
                yield report
            report, names = _Report(number, _moment(number, line.strip())), []
        elif _HEAD.match(line):
            if report is None:
                raise BadLineError(number, f"is of a report without a time; {_TIMES}")
            names = line.replace("Device:", "Device").split()
        elif not line.strip():
            names = []
        elif names and report is not None:
            device, *values = line.split()
            try:
                found = dict(zip(names[1:], (float(value.replace(",", ".")) for value in values), strict=True))
            except ValueError as error:
                what = f"{line[:60]!r} does not have the {len(names)} fields of the header"
                raise BadLineError(number, f"{what}; remove it if it was cut off") from error
            report.devices[device] = found
    if report is not None:
        yield report


def _of_json(text: str) -> Iterator[_Report]:
    try:
        for host in json.loads(text)["sysstat"]["hosts"]:
            for each in host["statistics"]:
                if "timestamp" not in each:
                    raise BadLineError(0, f"has a report without a time; {_TIMES}")
                devices = {
                    str(disk["disk_device"]): {key: float(disk[key]) for key in disk if key != "disk_device"}
                    for disk in each["disk"]
                }
                yield _Report(0, _moment(0, str(each["timestamp"])), devices)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, BadLineError):
            raise
        message = f"is no JSON of iostat ({error!r:.80}); interrupt iostat with Ctrl-C, so that it ends the file"
        raise BadLineError(0, message) from error


def _moment(number: int, text: str) -> float:
    try:
        if _ISO.match(text):
            return datetime.fromisoformat(text).timestamp()
        year = "%Y" if len(text.split(" ")[0]) > len("01/02/26") else "%y"
        return datetime.strptime(f"{text} +0000", f"%m/%d/{year} %I:%M:%S %p %z").timestamp()
    except ValueError as error:
        raise BadLineError(number, f"has the time {text!r:.40}; {_TIMES}") from error


def _numbers(report: _Report) -> dict[str, float]:
    numbers = {RATE_COLUMN: 0.0}
    for device, figures in report.devices.items():
        for way, (rate, latency) in _WAYS.items():
            if rate not in figures or latency not in figures:
                raise BadLineError(report.line, f"has no {rate} or {latency} of {device}; {_TIMES}")
            numbers[RATE_COLUMN] += figures[rate]
            if figures[rate] > 0:
                numbers[f"{device}.{way}.mean"] = figures[latency] / 1000
    queued = sum(figures.get(name, 0.0) for figures in report.devices.values() for name in _QUEUES)
    # Devices without a request in their queues have nothing to do, and are not held.
    is_idle = numbers[RATE_COLUMN] == 0 and queued == 0
    return known(numbers) | ({OLDEST_COLUMN: 0.0} if is_idle else {})
