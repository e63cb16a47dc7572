"""Data types of detection: series, samples, notices, baselines, findings.

Pure data. Times are seconds on the axis of the samples (seconds since the epoch for a run, elapsed seconds for a CSV);
latencies are seconds. Nothing here does I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """Role of a series: what it measures, and so how detection uses it."""

    #: A quantile of what the client waited for, in seconds: what findings are about.
    LATENCY = "latency"
    #: Mean or quantile of what a device took for its writes or reads, in seconds: corroborates, and is judged itself.
    DEVICE_LATENCY = "device_latency"
    #: Requests outstanding at a device.
    QUEUE_DEPTH = "queue_depth"
    #: Operations or bytes per second: distinguishes a burst of load from a degradation.
    RATE = "rate"


class FindingKind(StrEnum):
    """Kind of a finding, the worst first."""

    CLIFF = "cliff"
    STALL = "stall"
    SHORTFALL = "shortfall"
    STEP = "step"
    DRIFT = "drift"
    SPIKES = "spikes"
    RECOVERY = "recovery"


#: Of the work that was not done: nothing was completed, or less than before for long. Their series is the rate.
OF_WORK = frozenset({FindingKind.STALL, FindingKind.SHORTFALL})
#: Distinguished by size and speed, which look different while the run still goes on.
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
    """One window of every series. A series that was not measured is absent from `values`.

    `oldest_seconds` is how old the oldest operation was at its end that was due and not completed; None where that is
    not known.
    """

    start: float
    end: float
    values: Mapping[str, float]
    phase: str | None = None
    oldest_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something known to have happened that explains what follows: an engine's or a broker's restart."""

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
    """How large a change of one series is, as `analysis/sizes.py` defines it."""

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
    #: The client did not ask for them.
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Undone:
    """Work that a stall or a shortfall did not do, beside its change of rate.

    `seconds` is how long it lasted, of several stalls together; `times` is how many there were. `oldest_seconds` is
    how old the oldest operation became, and `limited_by` whose doing it is; each is None where that is not known.
    """

    seconds: float
    times: int = 1
    oldest_seconds: float | None = None
    limited_by: LimitedBy | None = None


@dataclass(frozen=True, slots=True)
class Recurrence:
    """How spikes come again: `times` so far, each `length_seconds` long, so many seconds from the start of one to that
    of the next (the median, the least and the most). The last two and the median are of the last 200.

    `is_from_start`: they were there before the run could show that it does without.
    """

    times: int
    length_seconds: float
    spacing_seconds: float
    least_seconds: float
    most_seconds: float
    is_from_start: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """One change for the worse (or back): what, since when, how much, how sure.

    `baseline` and `level` are in the series' unit; `ratio` is level / baseline; `size` has them with the worst level
    and the baseline's band, `affected` those of other operations that changed with it. `detected` is the moment at
    which online detection raised it, None where it did not. `until` is when it was over, None while it lasts.
    `confidence` is from 0 to 1. `corroborated_by` names the other series that moved with it. `undone` is of a stall and
    of a shortfall alone, `recurrence` of spikes that stand out.
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
        """Whether it is work that the client did not ask for: no drive is to blame, and none was measured."""
        return self.undone is not None and self.undone.limited_by is LimitedBy.CLIENT

    @property
    def worst(self) -> float:
        return self.level if self.size is None else self.size.worst
