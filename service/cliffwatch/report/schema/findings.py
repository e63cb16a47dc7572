"""Findings, limits and layers in report.json."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from cliffwatch.report.schema.base import Count, CountFromOne, Moment, NonNegative, Share, Text, constrained, document

Unit = Literal["seconds", "requests", "operations_per_second"]


@document
class LayerRow(TypedDict):
    span: Literal["load", "phase", "hour"]
    phase: NotRequired[str]
    hour: NotRequired[Count]
    client_p99_seconds: NotRequired[NonNegative]
    device_p99_seconds: NotRequired[NonNegative]
    """p99 from issue to completion of a request, from eBPF histograms of all drives."""
    queue_p99_seconds: NotRequired[NonNegative]
    """p99 from a request's start in the block layer to its issue."""
    device_mean_seconds: NotRequired[NonNegative]
    """Mean time of a request by the kernel's counters, queue time included; present if there was no histogram."""
    queue_depth: NotRequired[NonNegative]
    """Mean number of requests outstanding, of all drives together."""


@document
class LayerGap(TypedDict):
    start_seconds: float
    end_seconds: float
    reason: str


@with_config(constrained({"oneOf": [{"required": ["missing"]}, {"required": ["operation", "drives", "rows"]}]}))
class Layers(TypedDict):
    """The layers below the client, from what was collected from Prometheus: rows, or why there are none."""

    missing: NotRequired[Text]
    operation: NotRequired[Literal["read", "write"]]
    drives: NotRequired[Annotated[list[str], Field(min_length=1)]]
    rows: NotRequired[list[LayerRow]]
    """For the load, each phase, and each hour of a load that lasts several, as far as there are samples."""
    gaps: NotRequired[list[LayerGap]]
    """Spans for which Prometheus could not be queried."""
    faults: NotRequired[list[str]]
    """Files of collected telemetry that cannot be read."""


@document
class Undone(TypedDict):
    """Work that was not done in a stall or a shortfall."""

    seconds: NonNegative
    """Length of the stall or shortfall; the sum of several stalls."""
    times: CountFromOne
    """Number of stalls that the finding stands for."""
    oldest_outstanding_seconds: NotRequired[NonNegative]
    """Greatest age of an outstanding operation; absent if not known."""
    limited_by: NotRequired[Literal["target", "client"]]
    """Side that limited the rate, target or client; absent if not known."""


@document
class Recurrence(TypedDict):
    """Recurrence of spikes that stand out or of excursions that return."""

    times: Annotated[int, Field(ge=3)]
    length_seconds: NonNegative
    """Median length of an excursion."""
    spacing_seconds: NonNegative
    """Median time from the start of one excursion to the start of the next, over the last 200."""
    least_seconds: NonNegative
    """Least of these times."""
    most_seconds: NonNegative
    """Greatest of these times."""
    is_from_start: bool
    """Whether the run had these excursions from its beginning."""
    next_expected: NotRequired[Moment]
    """Start of the next one; absent for excursions that keep no period, and for a finding that is over."""
    next_expected_seconds: NotRequired[float]


@document
class Affected(TypedDict):
    series: str
    baseline: float
    level: float
    worst: float
    ratio: float
    worst_ratio: float


@document
class Drive(TypedDict):
    """Drive that slowed down; absent if none did."""

    name: str
    major_minor: str
    serial: str
    """Serial, WWN or backing file; empty if the drive has none of them."""
    part: NotRequired[str]
    """Part whose target the drive is below; absent in a run with one part."""


@document
class LayerTimesDocument(TypedDict):
    client_seconds: NotRequired[NonNegative]
    """Time of an operation from when it was due."""
    service_seconds: NotRequired[NonNegative]
    """Time of an operation from when it began."""
    block_queue_seconds: NotRequired[NonNegative]
    """Time of a request in the block layer's queue."""
    device_seconds: NotRequired[NonNegative]
    """Time of a request in the device, with the block layer if the two are not separated."""
    requests_per_operation: NotRequired[NonNegative]


@document
class SuspectDocument(TypedDict):
    name: Literal[
        "drive_garbage_collection",
        "retention_limit_reached",
        "page_cache",
        "client",
        "broker",
        "network",
        "volume_limit",
        "thermal_throttling",
        "cpu_steal",
        "neighbour",
        "checkpoint",
        "heavier_load",
        "unknown",
    ]
    title: str
    confidence: Share
    evidence_for: list[str]
    evidence_against: list[str]


@document
class JudgedByDocument(TypedDict):
    windows: Count
    """Number of windows that were measured."""
    operations: Count
    """Number of operations completed in these windows."""
    drive_windows: Count
    """Number of these windows that have the drives' counters."""
    drive_samples: Count
    """Number of samples of the drives' own statistics, such as write amplification."""


@document
class BrokenSpanDocument(TypedDict):
    start: Moment
    start_seconds: float
    end: Moment
    end_seconds: float
    window_end: NotRequired[Moment]
    """End of the window that broke the limit."""
    window_end_seconds: NotRequired[float]
    worst: str
    """Worst value of the limit in any of these spans, as text."""


@document
class LimitDocument(TypedDict):
    limit: str
    held: bool
    windows: Count
    """Number of windows after the warm-up by which the limit was judged."""
    operations: Count
    """Number of operations completed in these windows."""
    unjudged: NotRequired[Text]
    """Reason why the limit could not be judged."""
    margin: NotRequired[Text]
    """Distance of the worst value from the bound, as text; a lower bound for a latency that held. Absent if not
    known."""
    broken: list[BrokenSpanDocument]
    """Spans in which the limit was broken; overlapping spans are merged. `start` is the start of the window that broke
    it."""
    broken_omitted: NotRequired[CountFromOne]
    """Number of further spans that are not listed."""


@document
class Layer(TypedDict):
    """Times by layer: means over windows before and after the onset."""

    name: NotRequired[Literal["schedule", "above_block_layer", "block_queue", "device"]]
    """Name of the lowest layer that became slower."""
    title: NotRequired[str]
    share: NotRequired[Share]
    """Share of the rise that is this layer's own."""
    sentence: NotRequired[str]
    gap: NotRequired[str]
    """Explanation of the time between the client's latency and that of a device request."""
    before: LayerTimesDocument
    after: LayerTimesDocument


@document
class JudgedOnBothSides(TypedDict):
    """Numbers of windows and samples before and after the onset; absent for a recovery and for a change of the
    client."""

    before: JudgedByDocument
    since: JudgedByDocument


@document
class AmongPartsDocument(TypedDict):
    """The part that a finding is about beside the other parts of its run."""

    ratio_to_others: NonNegative
    """Level of the part since the onset divided by the median of the other parts' levels in the same windows."""
    others_risen: list[str]
    """Names of the other parts that rose at the onset, too."""


@with_config(
    constrained(
        {"dependentRequired": {"runner_up": ["cause"], "tell_apart": ["cause"], "detected": ["detected_seconds"]}}
    )
)
class FindingDocument(TypedDict):
    kind: Literal["cliff", "stall", "shortfall", "step", "drift", "spikes", "recurring", "recovery"]
    sentence: Text
    """One sentence: what happened, when, on which drive and why."""
    degrades: bool
    """Whether the finding makes the verdict `degraded`."""
    onset: Moment
    onset_seconds: float
    until: NotRequired[Moment]
    """End of the change; absent if it lasted to the end of the load."""
    until_seconds: NotRequired[float]
    detected: NotRequired[Moment]
    """Moment at which the finding was raised during the run; absent if it was found afterwards."""
    detected_seconds: NotRequired[float]
    series: str
    operation: NotRequired[str]
    quantile: NotRequired[Share]
    baseline: float
    """Healthy level in `unit`: the median window of the baseline (docs/detection.md)."""
    level: float
    """Level after the onset in `unit`: the median of the first 60 windows since then (docs/detection.md)."""
    unit: Unit
    ratio: float
    """Level divided by baseline."""
    undone: NotRequired[Undone]
    recurrence: NotRequired[Recurrence]
    worst: NotRequired[float]
    """Highest median of 11 consecutive windows since the onset."""
    worst_ratio: NotRequired[float]
    """Worst level divided by baseline."""
    baseline_low: NotRequired[float]
    """5th percentile of the baseline's windows."""
    baseline_high: NotRequired[float]
    """95th percentile of the baseline's windows."""
    baseline_start_seconds: NotRequired[float]
    """Start of the baseline's first window."""
    baseline_end_seconds: NotRequired[float]
    """End of the baseline's last window."""
    affected: NotRequired[list[Affected]]
    """Other series that changed at the same time, each with its own baseline."""
    confidence: Share
    corroborated_by: list[str]
    """Names of other series that changed at the same time."""
    drive: NotRequired[Drive]
    layer: NotRequired[Layer]
    cause: NotRequired[SuspectDocument]
    runner_up: NotRequired[SuspectDocument]
    tell_apart: NotRequired[str]
    """Measurements or experiments that would tell the two most likely causes apart."""
    among_parts: NotRequired[AmongPartsDocument]
    judged_by: NotRequired[JudgedOnBothSides]
