"""Data types of detection: series, samples, notices, baselines, findings.

Pure data. Times are seconds on the axis of the samples (seconds since the epoch for a run, elapsed seconds for a CSV);
latencies are seconds. Nothing here does I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: Distances between spikes or excursions that differ by no more than this ratio are a period.
REGULAR_WITHIN = 1.5


class Role(StrEnum):
    """Role of a series: what it measures, and so how detection uses it."""

    #: A quantile of the client's latency, in seconds: findings are about these series.
    LATENCY = "latency"
    #: Mean or quantile of a device's latency of writes or reads, in seconds: corroborates findings, and is judged
    #: itself.
    DEVICE_LATENCY = "device_latency"
    #: Requests outstanding at a device.
    QUEUE_DEPTH = "queue_depth"
    #: Operations or bytes per second: distinguishes a burst of load from a degradation.
    RATE = "rate"
    #: Write amplification, media bytes / host bytes: distinguishes a drive's garbage collection from what the run's own
    #: writes cost, such as a compaction.
    WRITE_AMPLIFICATION = "write_amplification"


class FindingKind(StrEnum):
    """Kind of a finding, the worst first."""

    CLIFF = "cliff"
    STALL = "stall"
    SHORTFALL = "shortfall"
    STEP = "step"
    DRIFT = "drift"
    SPIKES = "spikes"
    RECURRING = "recurring"
    RECOVERY = "recovery"


#: Kinds for work that was not done: no operation completed, or fewer than before for long. Their series is the rate.
OF_WORK = frozenset({FindingKind.STALL, FindingKind.SHORTFALL})
#: Kinds for rises that come and go.
OF_RETURN = frozenset({FindingKind.SPIKES, FindingKind.RECURRING})
#: Kinds of sudden changes. Size and speed distinguish them, and may look different while the run still goes on.
SUDDEN = frozenset({FindingKind.CLIFF, FindingKind.STEP})


@dataclass(frozen=True, slots=True)
class Series:
    """One series: `name` is unique within a run, such as `append.p99`, `device.write_latency.8:0`.

    `operation` and `quantile` are those of a LATENCY; `device` (major:minor) is that of a device series.
    """

    name: str
    role: Role
    operation: str | None = None
    quantile: float | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One window, with the values of all series. A series that was not measured is absent from `values`.

    `oldest_seconds` is the age, at the window's end, of the oldest operation that was due and not completed; None where
    it is not known. `is_paced`: the run makes the load itself, so that a falling rate is work that was not done.
    """

    start: float
    end: float
    values: Mapping[str, float]
    phase: str | None = None
    oldest_seconds: float | None = None
    is_paced: bool = True


@dataclass(frozen=True, slots=True)
class Notice:
    """Known event that explains the changes after it: a restart of an engine or a broker."""

    at: float
    name: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """Healthy level of one series in this run: its `level`, over the samples from `start` to `end`.

    Nine of ten of these samples are between `low` and `high`.
    """

    series: str
    level: float
    start: float
    end: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a change of one series: baseline, level and worst level, as `analysis/sizes.py` defines them."""

    baseline: Baseline
    level: float
    worst: float

    @property
    def series(self) -> str:
        return self.baseline.series

    @property
    def ratio(self) -> float:
        return self.level / self.baseline.level

    @property
    def worst_ratio(self) -> float:
        return self.worst / self.baseline.level


class LimitedBy(StrEnum):
    """What limited the work that was not done: the target or the client."""

    #: Operations were outstanding, and the target did not complete them.
    TARGET = "target"
    #: The client did not request the operations.
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Undone:
    """Details of a stall or a shortfall, in addition to its change of rate: its length, and what limited the work.

    `seconds` is its length, in total where several stalls are counted together; `times` is their number.
    `oldest_seconds` is the highest age of an outstanding operation, `limited_by` what limited the work; each is None
    where it is not known.
    `is_before_load`: it is of the time before the first operation completed.
    """

    seconds: float
    times: int = 1
    oldest_seconds: float | None = None
    limited_by: LimitedBy | None = None
    is_before_load: bool = False


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Recurrence of spikes or excursions: `times` so far, each `length_seconds` long (the median).

    `spacing_seconds`, `least_seconds` and `most_seconds` are the median, least and greatest time from the start of one
    spike to the start of the next. The seconds are of the last 200 spikes. `is_from_start`: the spikes began before the
    run could show a level without them. `last` is the start of the last one, in seconds since the epoch.
    """

    times: int
    length_seconds: float
    spacing_seconds: float
    least_seconds: float
    most_seconds: float
    is_from_start: bool
    last: float

    @property
    def is_regular(self) -> bool:
        return self.most_seconds <= REGULAR_WITHIN * self.least_seconds

    @property
    def next_expected(self) -> float | None:
        """Start of the next one, in seconds since the epoch; None for one that keeps no period."""
        return self.last + self.spacing_seconds if self.is_regular else None


@dataclass(frozen=True, slots=True)
class Finding:
    """One change for the worse, or a recovery: what changed, since when, by how much, with what confidence.

    `baseline` and `level` are in the series' unit; `ratio` is level / baseline; `size` also has the worst level and the
    baseline's band, `affected` the sizes of other operations that changed with it. `detected` is the moment at which
    online detection raised it, None where it did not. `until` is the end of the change, None while it lasts.
    `confidence` is from 0 to 1. `corroborated_by` names the other series that changed with it. `undone` is set for a
    stall or a shortfall alone, `recurrence` for excursions that return, and for spikes that stand out.
    """

    kind: FindingKind
    onset: float
    series: str
    baseline: float
    level: float
    ratio: float
    confidence: float
    detected: float | None = None
    until: float | None = None
    corroborated_by: tuple[str, ...] = field(default=())
    size: Size | None = None
    affected: tuple[Size, ...] = field(default=())
    undone: Undone | None = None
    recurrence: Recurrence | None = None

    @property
    def is_of_client(self) -> bool:
        """Whether the finding is about work that the client did not request: it has no drive to blame, and no cause
        below the client."""
        return self.undone is not None and self.undone.limited_by is LimitedBy.CLIENT

    @property
    def worst(self) -> float:
        return self.level if self.size is None else self.size.worst
