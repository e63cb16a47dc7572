"""How p99 went over a load, in one sentence, for a report without findings."""

from collections.abc import Mapping

from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import Phase
from cliffwatch.report.format import latency
from cliffwatch.report.schema.latency import LatencyOfOperation

#: The slowest hour is mentioned when its p99 is more than this many times that of both the first and the last hour.
_WORTH_MENTIONING = 1.1


def course_of(latencies: Mapping[str, LatencyOfOperation]) -> str | None:
    """Sentence on how p99 changed: from first hour to last, or from baseline to soak in a load of at most two hours."""
    name = primary_latency(list(latencies))
    if name is None:
        return None
    groups = latencies[name]
    hours = [row for row in groups["hours"] if "p99_seconds" in row]
    if len(hours) > 2:
        first, last = hours[0], hours[-1]
        bounds = f"in the first hour and {latency(last['p99_seconds'])} in the last"
        worst = max(hours, key=lambda row: row["p99_seconds"])
        peak = ""
        if worst["p99_seconds"] > _WORTH_MENTIONING * max(first["p99_seconds"], last["p99_seconds"]):
            peak = f", at worst {latency(worst['p99_seconds'])} in hour {worst['hour'] + 1}"
        return f"The p99 of {name} was {latency(first['p99_seconds'])} {bounds}{peak}."
    phases = {row["phase"]: row for row in groups["phases"] if "p99_seconds" in row}
    if Phase.BASELINE in phases and Phase.SOAK in phases:
        healthy, soaked = phases[Phase.BASELINE]["p99_seconds"], phases[Phase.SOAK]["p99_seconds"]
        return f"The p99 of {name} was {latency(healthy)} in the baseline and {latency(soaked)} in the soak."
    return None
