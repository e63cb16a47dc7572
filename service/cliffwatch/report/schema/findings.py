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
    """Issue to completion, off eBPF's histograms of all drives."""
    queue_p99_seconds: NotRequired[NonNegative]
    """Start in the block layer to issue."""
    device_mean_seconds: NotRequired[NonNegative]
    """A mean, where no histogram was: the kernel's time per request, queue time included."""
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
    """What Prometheus could not be asked for."""
    faults: NotRequired[list[str]]
    """Files that cannot be read."""


@document
class Undone(TypedDict):
    """Of a stall and of a shortfall: the work that was not done."""

    seconds: NonNegative
    """How long it lasted; of several stalls together."""
    times: CountFromOne
    """How many stalls it stands for."""
    oldest_outstanding_seconds: NotRequired[NonNegative]
    """How old the oldest operation became; absent where that is not known."""
    limited_by: NotRequired[Literal["target", "client"]]
    """Whose doing it is; absent where that is not known."""


@document
class Recurrence(TypedDict):
    """Of spikes that stand out, and of recurring excursions: how they come again."""

    times: Annotated[int, Field(ge=3)]
    length_seconds: NonNegative
    """The median length of one."""
    spacing_seconds: NonNegative
    """From the start of one to that of the next: the median of the last 200."""
    least_seconds: NonNegative
    """The least of these."""
    most_seconds: NonNegative
    """The most of these."""
    is_from_start: bool
    """Whether the run never showed that it does without."""


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
    """The drive that slowed down; absent when none did."""

    name: str
    major_minor: str
    serial: str
    """Or WWN, or backing file; empty when the drive has none."""


@document
class LayerTimesDocument(TypedDict):
    client_seconds: NotRequired[NonNegative]
    """An operation, from when it was due."""
    service_seconds: NotRequired[NonNegative]
    """An operation, from when it began."""
    block_queue_seconds: NotRequired[NonNegative]
    """A request in the block layer."""
    device_seconds: NotRequired[NonNegative]
    """A request in the device; block layer included where that is not separated."""
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
    """That were measured."""
    operations: Count
    """Completed in them."""
    drive_windows: Count
    """Of the windows, those with the counters of the drives."""
    drive_samples: Count
    """Of what a drive says of itself."""


@document
class BrokenSpanDocument(TypedDict):
    start: Moment
    start_seconds: float
    end: Moment
    end_seconds: float
    window_end: NotRequired[Moment]
    """End of the window that broke it."""
    window_end_seconds: NotRequired[float]
    worst: str
    """The worst value of any span among them, for people."""


@document
class LimitDocument(TypedDict):
    limit: str
    held: bool
    windows: Count
    """Those after the warm-up, by which it was judged."""
    operations: Count
    """Completed in these windows."""
    unjudged: NotRequired[Text]
    """Why it could not be judged."""
    margin: NotRequired[Text]
    """How far the worst value was from the bound, for people; of a latency that held, at least so far. Absent
    where that is not known."""
    broken: list[BrokenSpanDocument]
    """When it was broken; spans that overlap are one. `start` is when the window begins that broke it."""
    broken_omitted: NotRequired[CountFromOne]
    """So many more are not listed."""


@document
class Layer(TypedDict):
    """Where the time went: means over windows before and after the onset."""

    name: NotRequired[Literal["schedule", "above_block_layer", "block_queue", "device"]]
    """The lowest layer that became slower."""
    title: NotRequired[str]
    share: NotRequired[Share]
    """Its own share of the rise."""
    sentence: NotRequired[str]
    gap: NotRequired[str]
    """What lies between the client's latency and a device request's."""
    before: LayerTimesDocument
    after: LayerTimesDocument


@document
class JudgedOnBothSides(TypedDict):
    """How much cause and layers are made of; absent for a change for the better and for one of the client."""

    before: JudgedByDocument
    since: JudgedByDocument


@with_config(
    constrained(
        {"dependentRequired": {"runner_up": ["cause"], "tell_apart": ["cause"], "detected": ["detected_seconds"]}}
    )
)
class FindingDocument(TypedDict):
    kind: Literal["cliff", "stall", "shortfall", "step", "drift", "spikes", "recurring", "recovery"]
    sentence: Text
    """What happened, when, on which drive and why."""
    degrades: bool
    """Whether the verdict takes it into account."""
    onset: Moment
    onset_seconds: float
    until: NotRequired[Moment]
    """Absent while it lasted."""
    until_seconds: NotRequired[float]
    detected: NotRequired[Moment]
    """When it was raised while the run went on; absent when it was not."""
    detected_seconds: NotRequired[float]
    series: str
    operation: NotRequired[str]
    quantile: NotRequired[Share]
    baseline: float
    """What was healthy, in `unit`: the median window of the baseline (docs/detection.md)."""
    level: float
    """What it became, in `unit`: the median of the first 60 windows since the onset (docs/detection.md)."""
    unit: Unit
    ratio: float
    """Level / baseline."""
    undone: NotRequired[Undone]
    recurrence: NotRequired[Recurrence]
    worst: NotRequired[float]
    """The highest median of 11 windows in a row since the onset."""
    worst_ratio: NotRequired[float]
    """Worst / baseline."""
    baseline_low: NotRequired[float]
    """5th percentile of the baseline's windows."""
    baseline_high: NotRequired[float]
    """95th percentile of the baseline's windows."""
    baseline_start_seconds: NotRequired[float]
    """When the first of the baseline's windows began."""
    baseline_end_seconds: NotRequired[float]
    """When the last of them ended."""
    affected: NotRequired[list[Affected]]
    """Other series that changed with it, each against its own baseline."""
    confidence: Share
    corroborated_by: list[str]
    """Series that changed with it."""
    drive: NotRequired[Drive]
    layer: NotRequired[Layer]
    cause: NotRequired[SuspectDocument]
    runner_up: NotRequired[SuspectDocument]
    tell_apart: NotRequired[str]
    """What to measure or to try."""
    judged_by: NotRequired[JudgedOnBothSides]
