"""Evidence of a run: the input of its verdict."""

from dataclasses import dataclass
from enum import StrEnum

from cliffwatch.analysis.asked_rate import AskedRate
from cliffwatch.analysis.coverage import Coverage
from cliffwatch.analysis.marks import LeftOut
from cliffwatch.analysis.reached_drive import Share
from cliffwatch.analysis.stalls import Slowest


class LoadEnd(StrEnum):
    """How the load ended."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class FindingSummary:
    """Finding, for the verdict: its kind (`cliff`, `step`, …) and the sentence that states it."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class LimitOutcome:
    """Limit of the workload that did not hold: broken, or (not `judged`) undecided by what was measured."""

    sentence: str
    judged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvidence:
    """Evidence of a run: the input of its verdict.

    `load_end` is None while the journal does not record how the load ended. `coverage` is None when the load never
    began; `judged` is the coverage after the warm-up and after the first engine began, None where no time was left;
    `has_warm_up` is whether the part before it is a warm-up. Bytes are of all windows; the device's include those that
    reached it in the cool-down, and are None when it was not watched. `written_share` and `read_share` have the bytes
    that the kernel charges to the engine's process, and are None where these are not known; `drives` is the number of
    drives below the target. `drives_elsewhere`: the watched drives are on other hosts, and their traffic is not the
    engine's alone. `has_drive` is None when the run's facts do not record drives. `recorded_latencies` were counted,
    and `lost_latencies` of them cannot be read any more. `limits` are those that did not hold. `client_limited` is how
    the client itself was the limit, `not_steady` why the drive is not known to have been in its steady state,
    `unanalysed` the error that ended the analysis that would have found a degradation, `unmeasured` why there is
    nothing to judge, `left_out` what was read but does not count as measured; each is empty where it does not apply.
    `marked` is what marks leave of the judged time, None without a mark in it.
    `operations` is None where only windows are known, and not the operations in them.
    """

    load_end: LoadEnd | None
    message: str = ""
    #: How often the engine died and was started again, and why the last time.
    deaths: int = 0
    death: str = ""
    coverage: Coverage | None
    judged: Coverage | None = None
    has_warm_up: bool = True
    windows: int
    target_kind: str
    drives_elsewhere: bool = False
    has_drive: bool | None = None
    operations: int | None = 0
    errors: int = 0
    #: Operations that were due and were not executed.
    skipped: int = 0
    #: Operations that were due: completed, failed and skipped. None where those completed are not known.
    due: int | None = None
    written_bytes: int = 0
    read_bytes: int = 0
    device_written_bytes: int | None = None
    device_read_bytes: int | None = None
    written_share: Share | None = None
    read_share: Share | None = None
    drives: int = 1
    recorded_latencies: int = 0
    lost_latencies: int = 0
    journal_faults: int = 0
    #: Age of the oldest operation when the load ended in a stall (seconds); it is in no percentile.
    unfinished_seconds: float | None = None
    slowest: Slowest | None = None
    rate: AskedRate | None = None
    findings: tuple[FindingSummary, ...] = ()
    limits: tuple[LimitOutcome, ...] = ()
    #: Sentence on isolated rises, which are no finding.
    isolated: str = ""
    #: Sentence on a baseline that was slower than what followed it.
    slow_baseline: str = ""
    client_limited: str = ""
    not_steady: str = ""
    unanalysed: str = ""
    unmeasured: str = ""
    left_out: str = ""
    marked: LeftOut | None = None
    #: Message, as a clause, that the run's own directory was moved under the load, and how long after the load's start.
    displaced: tuple[str, float] | None = None
