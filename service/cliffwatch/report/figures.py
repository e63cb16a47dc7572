"""Summary figures of a run's whole load, from its report, for lists of runs."""

from dataclasses import dataclass
from typing import Any

from cliffwatch.model.drive_id import mean_request_seconds
from cliffwatch.model.operation import primary_latency


@dataclass(frozen=True, slots=True)
class Onset:
    """The first finding that degraded the run: its kind, its onset in elapsed seconds, and its level / baseline."""

    kind: str
    seconds: float
    ratio: float


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of a run's whole load, None where not measured; `onset` is None where nothing degraded the run.

    `latency` names the latency of the percentiles. `device_write_seconds` is the mean time of a write in the kernel's
    disk statistics.
    """

    latency: str | None = None
    p50_seconds: float | None = None
    p99_seconds: float | None = None
    max_seconds: float | None = None
    operations_per_second: float | None = None
    bytes_per_second: float | None = None
    device_write_seconds: float | None = None
    onset: Onset | None = None


def figures_of(document: dict[str, Any]) -> RunFigures:
    """Figures from report.json. Raises KeyError or TypeError for a document that is not a report."""
    name = primary_latency(list(document["latency"]))
    latency = document["latency"][name]["load"] if name is not None else {}
    rates = document["throughput"].get("load", {})
    counters = document["totals"]["counters"]
    return RunFigures(
        latency=name,
        p50_seconds=latency.get("p50_seconds"),
        p99_seconds=latency.get("p99_seconds"),
        max_seconds=latency.get("max_seconds"),
        operations_per_second=rates.get("operations_per_second"),
        bytes_per_second=rates.get("bytes_per_second"),
        device_write_seconds=mean_request_seconds(counters),
        onset=_onset(document["findings"]),
    )


def _onset(findings: list[dict[str, Any]]) -> Onset | None:
    """Onset of the first finding that degrades the run, or None; `findings` are in order of onset."""
    first = next((finding for finding in findings if finding["degrades"]), None)
    if first is None:
        return None
    return Onset(str(first["kind"]), float(first["onset_seconds"]), float(first["ratio"]))
