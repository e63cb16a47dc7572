"""A run's result as Markdown, for a ticket or a pull request: verdict, figures, parts, findings and limits."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from cliffwatch.analysis.verdict import percent
from cliffwatch.base.units import format_ratio
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import Phase, phase_words
from cliffwatch.report.format import byte_rate, count, duration, elapsed, latency, rate
from cliffwatch.report.html import VERDICTS
from cliffwatch.report.schema.findings import LimitDocument
from cliffwatch.report.schema.latency import Percentiles
from cliffwatch.report.schema.report import Rates, ReportDocument

#: The most parts, findings and limits that are listed of each; more are counted.
_LISTED = 10
#: Characters that Markdown takes for markup in the middle of a line.
_MARKUP = re.compile(r"[\\`*|<>\[\]]")
_SPANS = (Phase.BASELINE.value, Phase.SOAK.value)
_PERCENTILES: tuple[tuple[str, Literal["p50_seconds", "p99_seconds", "p999_seconds", "max_seconds"]], ...] = (
    ("p50", "p50_seconds"),
    ("p99", "p99_seconds"),
    ("p99.9", "p999_seconds"),
    ("max", "max_seconds"),
)


def markdown(document: ReportDocument) -> str:
    """A report document as GitHub-flavoured Markdown."""
    run, verdict = document["run"], document["verdict"]
    workload = run["workload"]["name"] if run.get("workload") else "run"
    mark, reasons = VERDICTS[verdict["name"]][0], verdict["reasons"]
    sentences = [finding["sentence"] for finding in document["findings"]]
    blocks = [
        f"### {mark} {verdict['name']}: {_plain(workload)} on {_plain(run.get('target') or 'an unknown target')}",
        "\n".join(f"- {_plain(reason)}" for reason in reasons),
        _table(_figures(document)),
        _table(_parts(document)),
        _section("Findings", [_plain(each) for each in sentences if not any(each in said for said in reasons)]),
        _section("Limits", [_limit(limit) for limit in document["limits"]]),
        _foot(document),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _plain(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", " ".join(text.split()))


def _figures(document: ReportDocument) -> Iterator[Sequence[str]]:
    """Rows of a table with a column for each span: baseline and soak, or the whole load without them."""
    name = primary_latency(list(document["latency"]))
    if name is None:
        return
    of_phases: dict[str, Percentiles] = {row["phase"]: row for row in document["latency"][name]["phases"]}
    spans = {phase_words(each): of_phases[each] for each in _SPANS if each in of_phases}
    spans = spans or {"whole load": document["latency"][name]["load"]}
    rates: dict[str, Rates] = {phase_words(row["phase"]): row for row in document["throughput"]["phases"]}
    if (whole := document["throughput"].get("load")) is not None:
        rates["whole load"] = whole
    yield ["", *spans]
    for title, field in _PERCENTILES:
        yield [f"{_plain(name)} {title}", *(latency(row.get(field)) for row in spans.values())]
    yield ["operations", *(rate(rates[span]["operations_per_second"] if span in rates else None) for span in spans)]
    yield ["throughput", *(byte_rate(rates[span]["bytes_per_second"] if span in rates else None) for span in spans)]


def _parts(document: ReportDocument) -> Iterator[Sequence[str]]:
    parts = document.get("parts", [])
    if parts:
        yield ["part", "to the others", "p99 in the soak", "rise", "target"]
    for part in parts[:_LISTED]:
        ratios = (format_ratio(each) if each else "–" for each in (part.get("ratio_to_others"), part.get("rise_ratio")))
        others, rise = ratios
        yield [part["name"], others, latency(part.get("p99_seconds")), rise, _plain(part["target"])]
    if len(parts) > _LISTED:
        yield [f"{len(parts) - _LISTED} more", "", "", "", ""]


def _table(rows: Iterable[Sequence[str]]) -> str:
    lines = list(rows)
    if lines:
        lines.insert(1, ["---", *("--:" for _ in lines[0][1:])])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _section(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    more = [f"{len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    return "\n".join([f"**{title}**", "", *(f"- {line}" for line in (*lines[:_LISTED], *more))])


def _limit(limit: LimitDocument) -> str:
    name = _plain(limit["limit"])
    if unjudged := limit.get("unjudged"):
        return f"? {name}: not judged, {_plain(unjudged)}"
    if limit["held"]:
        margin = limit.get("margin")
        return f"✓ {name}" + (f": {_plain(margin)}" if margin else "")
    first = limit["broken"][0]
    return f"✕ {name}: {_plain(first['worst'])} at {elapsed(first['start_seconds'])}"


def _foot(document: ReportDocument) -> str:
    run, coverage, counters = document["run"], document.get("coverage"), document["totals"]["counters"]
    said = [f"Run `{run['id']}`"]
    if coverage is not None:
        said.append(f"measured {percent(coverage['ratio'])} of {duration(coverage['asked_seconds'])}")
    said.append(f"{count(counters.get('operations', 0))} operations, {count(counters.get('errors', 0))} errors")
    return ", ".join(said) + "."
