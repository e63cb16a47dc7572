"""Evidence of a run: the input of its verdict."""

from dataclasses import dataclass
from enum import StrEnum

from cliffwatch.analysis.asked_rate import AskedRate
from cliffwatch.analysis.coverage import Coverage
from cliffwatch.analysis.reached_drive import Share


class LoadEnd(StrEnum):
    """How the load ended."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class FindingSummary:
    """A finding as the verdict sees it: its kind (`cliff`, `step`, …) and the sentence that states it."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class LimitOutcome:
    """A limit of the workload that did not hold: broken, or (not `judged`) not to be judged by what was measured."""

    sentence: str
    judged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvidence:
    """Evidence of a run: the input of its verdict.

    `load_end` is None while nothing says how the load ended. `coverage` is None when the load never began; `judged` is
    that of what came after the warm-up and after the first engine had begun, None where that was nothing; `has_warm_up`
    says which of the two it is. The bytes are of all windows; the device's include
    what reached it in the cool-down, and are None when it was not watched. Shares are what the kernel charges to the
    engine's process, None where that is not known; `drives` of them stand below the target.
    `drives_elsewhere`: those that were watched are on other hosts, and what reached them is not the engine's alone.
    `has_drive` is None when the facts do not say. `recorded_latencies` were counted, `lost_latencies` of them cannot be
    read any more. `limits` are those that did not hold. `client_limited` says in what way the client itself was the
    limit, `not_steady` why the drive is not known to have been in its steady state, `unanalysed` what ended the
    analysis that would have found a degradation, `unmeasured` why there is nothing that could be judged, `left_out`
    what was read and is no measurement; each is empty where there is nothing to say. `operations` is None where only
    windows are known, and not what was done in them.
    """

    load_end: LoadEnd | None
    message: str = ""
    coverage: Coverage | None
    judged: Coverage | None = None
    has_warm_up: bool = True
    windows: int
    target_kind: str
    drives_elsewhere: bool = False
    has_drive: bool | None = None
    operations: int | None = 0
    errors: int = 0
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
    #: How old the oldest operation was when the load ended in a stall; it is in no percentile.
    unfinished_seconds: float | None = None
    #: How long the slowest operation took, and how long after the load's start it was over.
    slowest: tuple[float, float] | None = None
    rate: AskedRate | None = None
    findings: tuple[FindingSummary, ...] = ()
    limits: tuple[LimitOutcome, ...] = ()
    client_limited: str = ""
    not_steady: str = ""
    unanalysed: str = ""
    unmeasured: str = ""
    left_out: str = ""
    #: What became of the run's own directory under the load, as a clause, and how long after the load's start.
    displaced: tuple[str, float] | None = None
