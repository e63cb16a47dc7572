"""Headline of a report: one sentence on what happened to the run, and why."""

from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import Phase
from cliffwatch.model.run_state import VerdictName
from cliffwatch.report.format import count, duration, latency
from cliffwatch.report.schema.report import ReportBody

#: The slowest hour is mentioned when its p99 is more than this many times that of both the first and the last hour.
_WORTH_MENTIONING = 1.1


def headline(document: ReportBody) -> str:
    """Headline of a report, from the other fields of its document."""
    reasons = document["verdict"]["reasons"]
    if document["verdict"]["name"] != VerdictName.PASS.value:
        first = reasons[0] if reasons else "No reason was recorded."
        reported = any(finding["sentence"] in first for finding in document["findings"])
        change = None if reported else _change(document)
        return f"{first} {change}" if change else first
    change = _change(document) or _level(document)
    counters = document["totals"]["counters"]
    measured = document["coverage"]["measured_seconds"]
    return (
        f"{count(counters.get('operations', 0))} operations in {duration(measured)} without an error. {change}".rstrip()
    )


def _change(document: ReportBody) -> str | None:
    """Sentence on how p99 changed: from first hour to last, or from baseline to soak in a load of at most two hours."""
    name = primary_latency(list(document["latency"]))
    if name is None:
        return None
    groups = document["latency"][name]
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


def _level(document: ReportBody) -> str:
    name = primary_latency(list(document["latency"]))
    if name is None or "p99_seconds" not in (row := document["latency"][name]["load"]):
        return ""
    return f"The p99 of {name} was {latency(row['p99_seconds'])}, the maximum {latency(row['max_seconds'])}."
