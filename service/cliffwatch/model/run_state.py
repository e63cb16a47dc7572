"""The states of a run, the changes that are allowed, and how a run can end. `journal/state.py` changes them."""

from dataclasses import dataclass
from enum import StrEnum


class RunState(StrEnum):
    """State of a run, from `queued` to `finished`."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    INTERRUPTED = "interrupted"
    REPORTING = "reporting"
    FINISHED = "finished"


#: What each state means, for people; docs/runs.md holds the same table and a test compares them.
MEANINGS: dict[RunState, str] = {
    RunState.QUEUED: "waits until its target is free",
    RunState.STARTING: "a worker is starting; the target is checked and prepared",
    RunState.RUNNING: "the engine makes load and windows are committed",
    RunState.STOPPING: "a stop was asked for; the engine finishes its window",
    RunState.INTERRUPTED: "the worker is gone; a new one resumes or ends the run, as the workload says",
    RunState.REPORTING: "the load is over and the report is being made",
    RunState.FINISHED: "nothing more will happen; the verdict says how it went",
}
#: Shown instead of the meaning of `running` when the load of a run is over.
COOLING = "the load is over; caches are flushed and the drive comes to rest"


TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.STARTING, RunState.FINISHED}),
    RunState.STARTING: frozenset({RunState.RUNNING, RunState.STOPPING, RunState.INTERRUPTED, RunState.REPORTING}),
    RunState.RUNNING: frozenset({RunState.STOPPING, RunState.INTERRUPTED, RunState.REPORTING}),
    RunState.STOPPING: frozenset({RunState.INTERRUPTED, RunState.REPORTING}),
    RunState.INTERRUPTED: frozenset({RunState.STARTING, RunState.STOPPING, RunState.FINISHED}),
    RunState.REPORTING: frozenset({RunState.INTERRUPTED, RunState.FINISHED}),
    RunState.FINISHED: frozenset(),
}


#: States in which a worker should be alive.
ACTIVE = frozenset({RunState.STARTING, RunState.RUNNING, RunState.STOPPING, RunState.REPORTING})


class VerdictName(StrEnum):
    """How a finished run went."""

    PASS = "pass"
    DEGRADED = "degraded"
    INVALID = "invalid"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A run's verdict and the sentences that account for it, the most severe first."""

    name: VerdictName
    reasons: tuple[str, ...]
