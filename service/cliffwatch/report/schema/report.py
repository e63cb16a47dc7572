"""report.json: a run as one document."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from cliffwatch.report.schema.base import (
    Count,
    CountFromOne,
    Moment,
    NonNegative,
    Positive,
    Share,
    Text,
    constrained,
    document,
)
from cliffwatch.report.schema.findings import FindingDocument, JudgedByDocument, Layers, LimitDocument
from cliffwatch.report.schema.latency import CurvePointDocument, LatencyOfOperation, PartDocument

#: Incremented when a field changes its meaning or is removed.
FORMAT_VERSION: Literal[2] = 2


@document
class Workload(TypedDict):
    name: str
    description: str
    engine: str


@document
class Run(TypedDict):
    id: str
    workload: NotRequired[Workload]
    target: NotRequired[str]
    """Target as the command line takes it, `kind:name`; several are joined by ` + `."""
    created_by: NotRequired[str]
    window_seconds: NotRequired[Positive]
    created: NotRequired[Moment]
    started: NotRequired[Moment]
    """Moment at which the worker started the engine."""
    load_start: NotRequired[Moment]
    load_asked_end: NotRequired[Moment]
    """Planned end of the load; for a run that was stopped or failed, that moment; the last sign of life, for one
    that did not end."""
    finished: NotRequired[Moment]
    """Moment at which the load was over and the report was due."""


@document
class Gap(TypedDict):
    start: Moment
    end: Moment
    start_seconds: float
    end_seconds: float
    seconds: Positive
    reason: Text


@document
class CoverageDocument(TypedDict):
    asked_seconds: NonNegative
    measured_seconds: NonNegative
    ratio: Share
    judged_ratio: NotRequired[Share]
    """Coverage of the time after the warm-up, by which the verdict judges; absent without such time."""
    unmarked_ratio: NotRequired[Share]
    """Share of the time after the warm-up that is in no marked span and was judged; absent without a mark."""
    windows: Count
    partial_windows: Count
    """Number of windows that were measured for less than their length."""
    partial_seconds: NonNegative
    """Seconds that the partial windows lack, summed."""
    gaps: list[Gap]


@document
class PhaseSpan(TypedDict):
    name: str
    start: Moment
    end: Moment
    """Planned end of the phase."""
    start_seconds: float
    end_seconds: float
    windows: Count
    measured_seconds: NonNegative


@document
class Rates(TypedDict):
    measured_seconds: NonNegative
    """Measured time that the rates are taken over."""
    errors: Count
    operations_per_second: NotRequired[NonNegative]
    bytes_per_second: NotRequired[NonNegative]
    """Bytes per second; absent if the engine counts no bytes."""


@document
class Direction(TypedDict):
    engine_bytes: Count
    device_bytes: Count
    ratio: NotRequired[NonNegative]
    """Bytes of the device divided by bytes of the engine."""
    windows: NotRequired[Count]
    """Number of windows that have the device's counter."""
    process_bytes: NotRequired[Count]
    """Bytes that the kernel charges to the engine's process, in the windows that have this counter; absent without
    any."""


@with_config(constrained({"dependentRequired": {"end": ["seconds"], "seconds": ["end"]}}))
class AlertDocument(TypedDict):
    name: str
    severity: str
    summary: str
    description: str
    """The alert's description when it began to fire."""
    start: Moment
    start_seconds: NotRequired[float]
    end: NotRequired[Moment]
    """End of the alert; absent while it fired to the run's end."""
    seconds: NotRequired[NonNegative]
    received: Moment
    """Moment at which the service received the alert."""


@document
class EventDocument(TypedDict):
    at: Moment
    at_seconds: NotRequired[float]
    type: Literal["state", "phase", "engine", "gap", "finding", "alert", "clock", "journal", "device", "note"]
    name: str
    detail: dict[str, Any]


@document
class VerdictDocument(TypedDict):
    name: Literal["pass", "degraded", "invalid", "failed", "stopped"]
    reasons: list[str]
    """Reasons of the verdict, the most severe first."""
    judged_by: NotRequired[JudgedByDocument]
    """Numbers of what was judged after the warm-up; absent if the load never began."""


@document
class StallDocument(TypedDict):
    start: Moment
    start_seconds: float
    end_seconds: float
    windows: CountFromOne
    oldest_outstanding_seconds: NotRequired[NonNegative]
    """Greatest age of an operation that was due and not completed; absent if the engine cannot know it."""


@document
class Totals(TypedDict):
    counters: dict[str, int]
    """Each counter of the engine and of the device, summed over all windows."""
    schedule_debt_max_seconds: NotRequired[float]
    """Greatest delay of the engine behind its own schedule."""


@document
class Asked(TypedDict):
    """Rate that the workload asks for and the share that was reached, without the warm-up; absent without such a
    rate."""

    operations_per_second: Positive
    reached_operations_per_second: NonNegative
    reached_ratio: NonNegative


@document
class PhaseRates(Rates):
    phase: str


@document
class Throughput(TypedDict):
    load: NotRequired[Rates]
    asked: NotRequired[Asked]
    phases: list[PhaseRates]


@with_config(constrained({"minProperties": 1}))
class ReportDevice(TypedDict):
    """Bytes of the engine against bytes of the device, flush after the load included. Absent when no device was
    watched."""

    written: NotRequired[Direction]
    read: NotRequired[Direction]


@document
class Round(TypedDict):
    start_seconds: float
    end_seconds: float
    operations_per_second: NotRequired[NonNegative]
    """Operations per second in the round; absent if too little was measured."""
    device_write_latency_seconds: NotRequired[NonNegative]


@document
class Steady(TypedDict):
    """Whether the drive reached its steady state. Absent where the workload does not ask for it."""

    reached: bool
    at_seconds: NotRequired[float]
    """End of the first five steady rounds."""
    why_not: NotRequired[Text]
    rounds: list[Round]


@document
class QuantileOfWindows(TypedDict):
    """One quantile over the windows after the warm-up: its median and highest window."""

    median_seconds: NonNegative
    highest_seconds: NonNegative


@document
class WindowQuantiles(TypedDict):
    """Latency of which only quantiles of each window are known; they cannot be merged into percentiles of a longer
    span."""

    windows: CountFromOne
    quantiles: dict[Literal["p50", "p90", "p99", "p999", "p9999", "max"], QuantileOfWindows]


@document
class TransactionRow(TypedDict):
    """Mean times of a database's transactions over one span, by what they waited for.

    The times by what a session waited for are from samples of the sessions (Little's law), so that they add up to
    `service_seconds` only as far as there were enough samples.
    """

    span: Literal["load", "phase", "checkpoint", "between_checkpoints", "hour"]
    phase: NotRequired[str]
    hour: NotRequired[Count]
    transactions: Count
    response_seconds: NonNegative
    """Mean response time of a transaction, from when it was due."""
    response_p99_seconds: NonNegative
    """99th percentile of the response time."""
    service_seconds: NonNegative
    """Mean time of a transaction from when it began."""
    wal_seconds: NonNegative
    """Time waiting for the WAL to be written and flushed."""
    data_seconds: NonNegative
    """Time waiting for pages of tables to be read or written."""
    lock_seconds: NonNegative
    """Time waiting for rows that other sessions had locked."""
    client_seconds: NonNegative
    """Time waiting for the client's next statement."""
    cpu_seconds: NonNegative
    """Time not waiting, such as computing."""
    other_seconds: NonNegative
    wal_flushes: NonNegative
    """WAL flushes of the server per transaction, of all its sessions."""
    wal_flush_seconds: NotRequired[NonNegative]
    """Time of writing and flushing the WAL per transaction; absent if the server did not measure it."""
    drive_writes: NotRequired[NonNegative]
    """Write requests that the drives completed per transaction; absent if no drive was watched."""
    drive_write_seconds: NotRequired[NonNegative]
    """Mean time of a write request, queue included."""
    drive_flushes: NotRequired[NonNegative]
    drive_flush_seconds: NotRequired[NonNegative]
    """Mean time of a flush request."""
    checkpoint_ratio: NonNegative
    """Share of the span in which the server wrote a checkpoint."""


@document
class Transactions(TypedDict):
    """Mean times of a database's transactions, by what they waited for; absent for other loads."""

    sentence: Text
    rows: list[TransactionRow]
    """Rows for the load, its phases, its time with and without a checkpoint if there is both, and its hours if
    several."""


@document
class JournalFaultDocument(TypedDict):
    file: str
    line: Count
    """Line number from 1; 0 if it is not known."""
    message: str


@document
class Reproduction(TypedDict):
    workload_yaml: str
    command: str


@document
class WatchingCost(TypedDict):
    """Processor time and memory that the worker itself used; empty if not recorded."""

    cpu_seconds: NotRequired[NonNegative]
    max_resident_bytes: NotRequired[Count]


@document
class ReportDocument(TypedDict):
    """A run, made from its journal alone. Times are RFC 3339 in UTC; *_seconds fields that are places on the time line
    count from the load's start. Fields that do not apply are absent."""

    format_version: Literal[2]
    """Grows when a field changes its meaning or goes away."""
    run: Run
    verdict: VerdictDocument
    headline: Text
    """The verdict's first reason: what happened, and why."""
    course: NotRequired[Text]
    """How p99 changed over the load; absent where there are findings, or too little load."""
    coverage: NotRequired[CoverageDocument]
    """Absent when the load never began."""
    stalls: NotRequired[Annotated[list[StallDocument], Field(min_length=1)]]
    """Windows, one after the other, that were measured and in which nothing was completed. Absent when there are
    none."""
    phases: list[PhaseSpan]
    latency: dict[str, LatencyOfOperation]
    """By latency name. Each row is read off the histogram merged over its own span; none is an average."""
    quantiles: NotRequired[dict[str, WindowQuantiles]]
    """By latency name: latencies without a histogram, which are not in `latency`. Absent when there are none."""
    curve: NotRequired[list[CurvePointDocument]]
    """The worst window of each sixtieth of the run, and the first and last one: p99 over time in few points."""
    totals: Totals
    throughput: Throughput
    parts: NotRequired[Annotated[list[PartDocument], Field(min_length=2)]]
    """The one that is furthest from the others first; absent for a run with one target."""
    device: NotRequired[ReportDevice]
    transactions: NotRequired[Transactions]
    steady: NotRequired[Steady]
    events: list[EventDocument]
    events_omitted: NotRequired[CountFromOne]
    """So many more are in the journal's events.jsonl."""
    findings: list[FindingDocument]
    """What the analysis of the whole run found, in order of onset."""
    unconfirmed: list[EventDocument]
    """What was raised while the run went on and the whole run does not bear out."""
    limits: list[LimitDocument]
    """The workload's limits, in its order."""
    alerts: list[AlertDocument]
    """One entry for each time that an alert began to fire, in that order."""
    facts: dict[str, Any]
    """What was found before the load began: facts.json of the journal."""
    journal_faults: list[JournalFaultDocument]
    """Places of the journal that cannot be read."""
    reproduction: NotRequired[Reproduction]
    layers: Layers
    watching_cost: WatchingCost
