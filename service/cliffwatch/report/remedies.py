"""What to do next about a run: one sentence, from its verdict and the first reason for it.

docs/report.md has the same remedies, one row per reason.
"""

import re

from cliffwatch.analysis.causes.rules import CAUSES
from cliffwatch.model.run_state import VerdictName

_ENGINE_LOG = (
    "See the events, and engine.log in the run's directory if the engine wrote one; mend what they name, and run it "
    "again."
)
#: How a reason for an invalid or failed run begins, and the remedy.
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
#: How the reason begins that says of a pass that its baseline was slow.
_SLOW_BASELINE = "The baseline was slow"
_LATENCIES_LOST = "of the recorded latencies can no longer be read"
#: The likely cause in the sentence of a finding.
_CAUSE = re.compile(r"likely cause: ([^(;]+) \(")
_ON_THE_CHARTS = (
    "Look at what else happened then: on the charts of the report, and in the kernel's log (`journalctl -k`)."
)
#: How a reason for a degraded run begins, and the remedy where the reason names no cause.
_DEGRADED = (
    ("The limit ", "See under Limits in the report by how much, and look at its time on the charts."),
    ("The rate that was asked for ", "See in the report since when the rate falls short, and which layer slowed down."),
)


def remedy_of(verdict: VerdictName | None, reasons: list[str], run_id: str) -> str:
    """What to do next about a run with this verdict, by its first reason; empty for a run without a verdict."""
    reason = reasons[0] if reasons else ""
    if verdict is VerdictName.PASS:
        if any(each.startswith(_SLOW_BASELINE) for each in reasons):
            return "Give the warm-up more time, and run it again: nothing is said of rises up to the baseline's level."
        return (
            f"Compare later runs with it: `cliffwatch run pin {run_id}` keeps it, and `cliffwatch run diff` compares."
        )
    if verdict is VerdictName.STOPPED:
        return "See in the report what was measured until then, and start it again for a verdict on the target."
    if verdict is VerdictName.DEGRADED:
        return _of_degraded(reason)
    return "" if verdict is None else _of_invalid(reason, run_id)


def _of_degraded(reason: str) -> str:
    if (cause := _CAUSE.search(reason)) is not None:
        remedy = next((row.remedy for row in CAUSES if row.title == cause[1]), "")
        return f"{remedy[:1].upper()}{remedy[1:]}." if remedy else _ON_THE_CHARTS
    return next((remedy for beginning, remedy in _DEGRADED if reason.startswith(beginning)), _ON_THE_CHARTS)


def _of_invalid(reason: str, run_id: str) -> str:
    if _LATENCIES_LOST in reason:
        return "Check the disk that the journals are on, and run it again."
    for beginning, remedy in _REMEDIES:
        if reason.startswith(beginning):
            return remedy.format(run=run_id)
    if "steady" in reason:
        return "Give the phase `steady` more time, and run it again."
    return f"Read the report (`cliffwatch run report {run_id}`), mend what the reason names, and run it again."
