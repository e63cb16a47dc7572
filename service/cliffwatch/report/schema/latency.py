"""Latencies of a run and of its parts in report.json."""

from typing import NotRequired

from typing_extensions import TypedDict

from cliffwatch.report.schema.base import Count, CountFromOne, NonNegative, Positive, Text, document


@document
class Percentiles(TypedDict):
    count: Count
    overflow: NotRequired[CountFromOne]
    """Number of latencies above one hour, which count as one hour."""
    p50_seconds: NotRequired[NonNegative]
    p90_seconds: NotRequired[NonNegative]
    p99_seconds: NotRequired[NonNegative]
    p999_seconds: NotRequired[NonNegative]
    p9999_seconds: NotRequired[NonNegative]
    max_seconds: NotRequired[NonNegative]


@document
class PhasePercentiles(Percentiles):
    phase: str


@document
class HourPercentiles(Percentiles):
    hour: Count
    """Whole hours since the load began."""
    start_seconds: NonNegative


@document
class LatencyOfOperation(TypedDict):
    load: Percentiles
    phases: list[PhasePercentiles]
    hours: list[HourPercentiles]


@document
class CurvePointDocument(TypedDict):
    """One window of the small curve of a run or of a part."""

    at: float
    """End of the window, in seconds since the epoch."""
    p99_seconds: NotRequired[NonNegative]
    """99th percentile of the primary latency; absent where nothing was completed."""
    stall_seconds: NotRequired[NonNegative]
    """Age of the oldest operation in a window in which nothing was completed, 0 if not known; absent elsewhere."""


@document
class PartDocument(TypedDict):
    """One of the parts of a run with several targets: its p99 is that of the soak, or of the load without one."""

    name: Text
    target: Text
    drives: NotRequired[Text]
    """Drives below its target; absent where none is known, and for a part that is named by its only one."""
    operations: Count
    p99_seconds: NotRequired[NonNegative]
    """p99 of the run's primary latency; absent if the part measured none."""
    baseline_p99_seconds: NotRequired[Positive]
    rise_ratio: NotRequired[NonNegative]
    """The part's p99 divided by that of its baseline phase."""
    ratio_to_others: NotRequired[NonNegative]
    """The part's rise divided by the median of the other parts'; of p99 if a part has no rise."""
    curve: NotRequired[list[CurvePointDocument]]
    """Windows of the part's small curve: its worst ones; only of the first 16 parts."""
