"""Levels that are drawn across the chart of latencies: the workload's limits, and the p99 of the baseline."""

from dataclasses import dataclass

from cliffwatch.model.limits import ANY_PART, LimitSubject, parse_limit
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.part_names import of_part
from cliffwatch.model.phase import Phase
from cliffwatch.report.schema.report import ReportDocument


@dataclass(frozen=True, slots=True)
class Level:
    """A level in seconds on the chart of the latency named `latency`; `kind` is `limit` or `baseline`."""

    latency: str
    seconds: float
    kind: str
    words: str


def levels_of(document: ReportDocument) -> list[Level]:
    """Levels of every latency in the report; a limit without an operation applies to the primary latency."""
    latencies = document["latency"]
    primary = primary_latency(list(latencies))
    found = []
    for each in document["limits"]:
        limit = parse_limit(each["limit"])
        name = limit.operation or primary
        if limit.part not in ("", ANY_PART) and "parts" in document:
            name = of_part(limit.part, name or "")
        if limit.subject is LimitSubject.LATENCY and limit.bound is not None and name in latencies:
            assert name is not None, "it is in the latencies"
            found.append(Level(name, limit.bound, "limit", f"limit: {limit.text}"))
    for name, rows in latencies.items():
        for phase in rows["phases"]:
            if phase["phase"] == Phase.BASELINE.value and phase["p99_seconds"]:
                found.append(Level(name, phase["p99_seconds"], "baseline", "p99 of the baseline"))
    return found
