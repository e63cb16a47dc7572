"""Remedies for an invalid or failed run: one sentence, from the first reason of its verdict.

docs/report.md has the same remedies, one row per reason.
"""

from cliffwatch.model.run_state import VerdictName

_ENGINE_LOG = "Read engine.log in the run's directory, mend what it names, and run it again."
#: How a reason begins, and the remedy.
_REMEDIES = (
    ("The load did not start", "Mend what the reason names, and run it again."),
    ("The load failed permanently", _ENGINE_LOG),
    ("No window was measured", _ENGINE_LOG),
    ("No operation was completed", "Look at the errors among the events below, and run it again."),
    ("The journal does not say how the load ended", "Make the report again: `cliffwatch run report {run}`."),
    ("No drive is below the target", "Run it again on a directory that is on a drive, not in memory or on a network."),
    (
        "The run was served by the page cache",
        "Run it again with direct I/O, or with more data than the machine's memory holds.",
    ),
    (
        "There is no evidence that the I/O reached",
        "See the warnings under Environment in the report, and run it again.",
    ),
    ("Only ", "See in the report what was not measured and why, and run it again."),
    ("The client was the bottleneck", "Give the engine more CPU time, and run it again."),
    ("The analysis ", "Make the report again: `cliffwatch run report {run}`."),
    ("The limit ", "See in the reason what was not measured, and run it again with that or without the limit."),
)
_LATENCIES_LOST = "of the recorded latencies can no longer be read"


def remedy_of(verdict: VerdictName | None, reasons: list[str], run_id: str) -> str:
    """Remedy for an invalid or failed verdict, by its first reason; empty for other verdicts."""
    if verdict not in (VerdictName.INVALID, VerdictName.FAILED):
        return ""
    reason = reasons[0] if reasons else ""
    if _LATENCIES_LOST in reason:
        return "Check the disk that the journals are on, and run it again."
    for beginning, remedy in _REMEDIES:
        if reason.startswith(beginning):
            return remedy.format(run=run_id)
    if "steady" in reason:
        return "Give the phase `steady` more time, and run it again."
    return f"Read the report (`cliffwatch run report {run_id}`), mend what the reason names, and run it again."
