"""Records that an engine prints, line by line: windows, events and its end.

Engines print one JSON object per line on stdout (the engine contract in ARCHITECTURE.md). Adapters for programs with
another output format produce the same records.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from cliffwatch.base.clock import LAST_MOMENT
from cliffwatch.base.histogram import Histogram

#: How late or early a bound may be (relative to the window) and still count as the nearest grid line.
ALIGNMENT_TOLERANCE = 0.5
#: Most names of each kind in a run's windows. Engines have some ten latencies; counters and gauges exist per drive.
NAMES_LIMITS = {"latency": 64, "counters": 2000, "gauges": 2000}
_NAME_LENGTH = 200
#: The gauge that distinguishes a stall from a load that has nothing to do.
OLDEST_OUTSTANDING = "oldest_outstanding_seconds"
#: Gauges of drives of other hosts: age of their scrapes at the window's end, and time between the two scrapes whose
#: difference its counters are.
DRIVES_AGE, DRIVES_SPAN = "drives_age_seconds", "drives_span_seconds"
#: Gauges of a load that others make: the number of series that its counts come from, the age of the oldest last sample
#: at the window's end, and the longest time between the two samples that an increase lies between.
OBSERVED_SERIES = "observed_series"
OBSERVED_AGE, OBSERVED_SPAN = "observed_age_seconds", "observed_span_seconds"
#: Gauges with the operations a second that an engine is to make; the first that exists is used.
_REQUESTED = ("requested_operations_per_second", "target_rate")
#: Event of a run's first engine with the grid line on which its load began (`start`): reported when it was not ready
#: for the planned line, or when it begins within its first window, which is then short for that reason.
BEGUN = "begun"
#: Event of an engine that reads what a program prints: from now on no line reports a measurement, and no window comes.
#: The remedy of the usual cause follows.
NOTHING_PRINTED = "nothing_printed"
FLUSH_REMEDY = "if it buffers its output, make it write each line at once, as by `stdbuf -oL` or `python -u`"


@dataclass(frozen=True, slots=True)
class EngineWindow:
    """One interval of load. Times in seconds since the epoch on the run's time line, `start` < `end`.

    `counters` are the interval's own increments: `operations`, `bytes`, `errors`, `skipped` (due
    and not executed), and whatever else the engine counts.
    `gauges` hold at `end`. `latency` maps a latency name to the interval's histogram. `quantiles` has latencies of
    which only quantiles are known, in seconds by p50, p90, p99, p999, p9999 and max: they are never merged.
    """

    start: float
    end: float
    counters: dict[str, int]
    gauges: dict[str, float] = field(default_factory=dict)
    latency: dict[str, Histogram] = field(default_factory=dict)
    quantiles: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """Something that happened in the engine; `at` in seconds since the epoch."""

    at: float
    name: str
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineEnd:
    """Last record of an engine: `completed`, or `failed` with a message. `restart` False: another engine would fail."""

    status: Literal["completed", "failed"]
    message: str = ""
    restart: bool = True


EngineRecord = EngineWindow | EngineEvent | EngineEnd


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


#: Ranges that a journal can store and return.
_Moment = Annotated[float, Field(ge=0, le=LAST_MOMENT)]
_Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
_Seconds = Annotated[float, Field(ge=0, le=LAST_MOMENT)]
_Quantile = Literal["p50", "p90", "p99", "p999", "p9999", "max"]
#: Names without control characters, which a journal returns as U+FFFD.
_Name = Annotated[str, Field(max_length=_NAME_LENGTH, pattern=r"^[^\x00-\x1f\x7f]*$")]


class _WindowLine(_Line):
    type: Literal["window"]
    seq: int = Field(ge=0)
    start: _Moment
    end: _Moment
    counters: Annotated[dict[_Name, _Count], Field(max_length=NAMES_LIMITS["counters"])]
    gauges: Annotated[dict[_Name, float], Field(max_length=NAMES_LIMITS["gauges"])] = {}
    latency: Annotated[dict[_Name, str], Field(max_length=NAMES_LIMITS["latency"])] = {}
    quantiles: Annotated[dict[_Name, dict[_Quantile, _Seconds]], Field(max_length=NAMES_LIMITS["latency"])] = {}

    @field_validator("gauges")
    @classmethod
    def _check_levels(cls, gauges: dict[str, float]) -> dict[str, float]:
        for name, value in gauges.items():
            if not is_level(name, value):
                raise ValueError(f"{name[:40]!r} cannot be {value!r:.40}")
        return gauges


def requested_rate(gauges: Mapping[str, float]) -> float | None:
    """Target rate in a window, in operations per second; None without one."""
    return next((gauges[name] for name in _REQUESTED if name in gauges), None)


_NEVER_NEGATIVE = frozenset({"measured_seconds", "schedule_debt_seconds", OLDEST_OUTSTANDING})


def is_count(value: object) -> bool:
    """Whether a value can be a counter of an interval: a count that a journal can store and return."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def is_level(name: str, value: object) -> bool:
    """Whether a gauge of this name can have this value. A gauge can be negative, such as one clock's lead over
    another, unless it is a time that the verdict needs."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -(2.0**63) <= value <= 2.0**63:
        return False
    return value >= 0 or name not in _NEVER_NEGATIVE


class _EventLine(_Line):
    type: Literal["event"]
    at: _Moment
    name: _Name
    detail: dict[str, Any] = {}


class _EndLine(_Line):
    type: Literal["end"]
    status: Literal["completed", "failed"]
    message: str = ""
    restart: bool = True


_LINE: TypeAdapter[_WindowLine | _EventLine | _EndLine] = TypeAdapter(
    Annotated[_WindowLine | _EventLine | _EndLine, Field(discriminator="type")]
)


class EngineLineError(ValueError):
    """An engine printed a line that breaks the contract; the message says where."""


def parse_engine_line(line: str | bytes) -> EngineRecord:
    """Parse one line of an engine's stdout. Raises EngineLineError."""
    try:
        record = _LINE.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "line"
        raise EngineLineError(f"{place}: {first['msg']}") from error
    if isinstance(record, _EventLine):
        return EngineEvent(record.at, record.name, record.detail)
    if isinstance(record, _EndLine):
        return EngineEnd(record.status, record.message, record.restart)
    if record.end <= record.start:
        raise EngineLineError(f"end: {record.end} is not after start {record.start}")
    try:
        latency = {name: Histogram.decode(text) for name, text in record.latency.items()}
    except ValueError as error:
        raise EngineLineError(f"latency: {error}") from error
    if both := sorted(set(latency) & set(record.quantiles)):
        raise EngineLineError(f"quantiles: {both[0][:40]!r} has a histogram, too")
    quantiles = {name: {str(key): value for key, value in known.items()} for name, known in record.quantiles.items()}
    return EngineWindow(record.start, record.end, record.counters, record.gauges, latency, quantiles)


def format_engine_line(record: EngineRecord, seq: int = 0) -> str:
    """The contract's line for a record, without the newline; `seq` numbers windows."""
    body: dict[str, Any]
    if isinstance(record, EngineWindow):
        body = {
            "type": "window",
            "seq": seq,
            "start": record.start,
            "end": record.end,
            "counters": record.counters,
            "gauges": record.gauges,
            "latency": {name: histogram.encode() for name, histogram in record.latency.items()},
        }
        body |= {"quantiles": record.quantiles} if record.quantiles else {}
    elif isinstance(record, EngineEvent):
        body = {"type": "event", "at": record.at, "name": record.name, "detail": record.detail}
    else:
        body = {"type": "end", "status": record.status, "message": record.message}
        body |= {} if record.restart else {"restart": False}
    return json.dumps(body, separators=(",", ":"))
