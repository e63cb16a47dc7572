"""Read vegeta's results as `vegeta encode --to json` or `--to csv` writes them: a line for each request.

Requests of an attack are numbered, so that missing ones are known. A status of 200 to 399 is a success, as in vegeta's
own report.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from cliffwatch.labs.outputs.json_lines import json_objects
from cliffwatch.labs.outputs.operations import OperationLog
from cliffwatch.labs.outputs.rows import BadLineError, Reading, require_total

#: Part of every gob stream of results: the name of a field.
_BINARY = "BytesOut"
#: Beginning of a line of JSON, and of CSV: start in nanoseconds since the epoch, status, latency, bytes out and in.
_RESULT = re.compile(r'\{"attack":.*"latency":|\d{18,19},\d{1,3},\d{1,18},\d{1,18},\d{1,18},')
_REPORTED = "Requests      [total,"
_SERIES = "`vegeta encode --to json results.bin` writes a line for each request"
_SUCCESS = range(200, 400)


@dataclass(frozen=True, slots=True)
class _Result:
    line: int
    start: float
    latency: float
    is_success: bool
    attack: str
    number: int


@dataclass(slots=True)
class _Attack:
    """Numbers of an attack's requests that were read."""

    line: int
    first: int
    last: int
    count: int = 0
    firsts: int = 0


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_RESULT.match(line) for line in head) or _BINARY in "".join(head[:1])


def read(lines: Iterable[str]) -> Reading:
    """Read results. Raises BadLineError for other lines, and where requests of an attack are missing."""
    log = OperationLog()
    attacks: dict[str, _Attack] = {}
    for each in _results(lines):
        end = each.start + each.latency
        if each.is_success:
            log.add(each.line, end, each.latency)
        else:
            log.add_failure(each.line, end)
        attack = attacks.setdefault(each.attack, _Attack(each.line, each.number, each.number))
        attack.line, attack.count = each.line, attack.count + 1
        attack.first, attack.last = min(attack.first, each.number), max(attack.last, each.number)
        attack.firsts += each.number == 0
    for attack in attacks.values():
        # Results of several attacks of one name have each number more than once.
        if attack.firsts <= 1:
            require_total(attack.line, "requests", attack.count, attack.last - attack.first + 1)
    return log.reading()


def _results(lines: Iterable[str]) -> Iterator[_Result]:
    rest = iter(lines)
    first = next(rest, "")
    if _BINARY in first or "\0" in first:
        raise BadLineError(1, f"is of vegeta's binary results; {_SERIES}")
    if first.startswith(_REPORTED):
        raise BadLineError(1, f"is of vegeta's report, which is about the whole attack; {_SERIES}")
    if first.startswith("{"):
        yield from (_of_json(*found) for found in json_objects(chain([first], rest), "vegeta"))
        return
    for number, fields in enumerate(csv.reader(chain([first], rest)), start=1):
        if fields:
            yield _of_fields(number, fields)


def _of_json(line: int, found: dict[str, Any]) -> _Result:
    try:
        start, latency = datetime.fromisoformat(found["timestamp"]).timestamp(), int(found["latency"]) / 1e9
        is_success = int(found["code"]) in _SUCCESS and not found["error"]
        return _checked(_Result(line, start, latency, is_success, str(found["attack"]), int(found["seq"])))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadLineError(line, f"is no result of vegeta ({error!r}); {_SERIES}") from error


def _of_fields(line: int, fields: list[str]) -> _Result:
    """Result of a CSV line: start in nanoseconds since the epoch, status, latency in nanoseconds, bytes out, bytes in,
    error, body, attack, number."""
    try:
        start, code, latency = (int(field) for field in fields[:3])
        is_success = code in _SUCCESS and not fields[5]
        return _checked(_Result(line, start / 1e9, latency / 1e9, is_success, fields[7], int(fields[8])))
    except (ValueError, IndexError, OverflowError) as error:
        raise BadLineError(line, f"{','.join(fields)[:60]!r} is no result of vegeta; {_SERIES}") from error


def _checked(result: _Result) -> _Result:
    if not (result.start >= 0 and 0 <= result.latency < result.start):
        raise ValueError(f"{result.latency:g} s from {result.start:g} s")
    return result
