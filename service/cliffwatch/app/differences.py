"""Compare two runs value by value: results, workloads, targets and environments."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cliffwatch.app.orders import read_order
from cliffwatch.app.stored_figures import stored_figures
from cliffwatch.base.errors import Problem
from cliffwatch.journal import JournalReader
from cliffwatch.report.format import byte_rate, elapsed, latency, rate
from cliffwatch.store.models import RunRow

#: Keys of facts.json that are not compared: they repeat values of order.json or of other keys, or do not describe the
#: environment.
_LEFT_OUT = frozenset({"version", "target", "device", "warnings"})
Change = Literal["worse", "better"]
#: Ratio from which a figure is called worse or better than another.
_ALIKE = 1.1
#: What stands for the id of a run in values that have it, such as its directory on the target.
_OWN_ID = "RUN"


@dataclass(frozen=True, slots=True)
class Difference:
    """Value of two runs at the dotted path `place`, such as `drives.0.firmware`; None where a run has none there. Of a
    text of several lines, only the lines that the other one does not have.

    `ratio` of two measured figures: the first over the second. `change`: whether the first is worse or better, for
    figures that differ by a tenth or more.
    """

    place: str
    first: str | None
    second: str | None
    ratio: float | None = None
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Differences:
    """Comparison of two runs. `result` has every figure, also equal ones; the other lists have only values that differ.

    `faults` names the documents that could not be read, since their values were not compared.
    """

    result: list[Difference]
    workload: list[Difference]
    targets: list[Difference]
    environment: list[Difference]
    faults: list[str]


@dataclass(frozen=True, slots=True)
class _Figure:
    """Figure of a run: its text, and for one that was measured its value and whether a higher one is worse."""

    text: str
    value: float | None = None
    is_latency: bool = True


@dataclass(frozen=True, slots=True)
class _Side:
    result: dict[str, _Figure]
    workload: dict[str, str]
    targets: dict[str, str]
    environment: dict[str, str]
    faults: list[str]


def differences_of(first: RunRow, second: RunRow) -> Differences:
    """Compare two runs by their rows in the index, and by order.json and facts.json of their journals."""
    one, other = _side_of(first), _side_of(second)
    return Differences(
        result=_figures_beside(one.result, other.result),
        workload=_unequal(one.workload, other.workload),
        targets=_unequal(one.targets, other.targets),
        environment=_unequal(one.environment, other.environment),
        faults=[*one.faults, *other.faults],
    )


def _side_of(row: RunRow) -> _Side:
    reader = JournalReader(Path(row.directory))
    faults: list[str] = []
    workload: Mapping[str, Any] = {}
    targets: Mapping[str, Any] = {}
    facts: Mapping[str, Any] = {}
    try:
        order = read_order(reader)
        workload = order.workload.model_dump(mode="json")
        targets = {part: str(target) for part, target in order.parts.items()}
        if order.drives is not None:
            targets["drives"] = str(order.drives)
    except Problem as problem:
        faults.append(f"run {row.id}: {problem.detail}")
    try:
        facts = reader.facts()
        if not facts:
            faults.append(f"run {row.id}: no environment was recorded")
    except Problem as problem:
        faults.append(f"run {row.id}: {problem.detail}")
    kept = {name: value for name, value in facts.items() if name not in _LEFT_OUT}
    return _Side(
        result=_result_of(row),
        workload=dict(flattened(workload)),
        targets=_values(targets, row.id),
        environment=_values(kept, row.id),
        faults=faults,
    )


def _values(document: Any, run_id: str) -> dict[str, str]:
    """Values of a document by their dotted paths. The run's own id, which is another in each run, is replaced."""
    own = re.compile(rf"(?<![a-z0-9]){re.escape(run_id)}(?![a-z0-9])")
    return {place: own.sub(_OWN_ID, value) for place, value in flattened(document)}


def _result_of(row: RunRow) -> dict[str, _Figure]:
    """Figures of a run by name, formatted as in the list of runs."""
    words = {"verdict": _Figure(row.verdict or row.state)}
    figures = stored_figures(row)
    if figures is None:
        return words
    name = figures.latency or "latency"
    onset = figures.onset
    latencies = {
        f"{name} p50": figures.p50_seconds,
        f"{name} p99": figures.p99_seconds,
        f"{name}, slowest": figures.max_seconds,
        "write latency of the drive": figures.device_write_seconds,
    }
    operations, throughput = figures.operations_per_second, figures.bytes_per_second
    return (
        words
        | {name: _Figure(latency(value), value) for name, value in latencies.items()}
        | {
            "operations": _Figure(rate(operations), operations, is_latency=False),
            "throughput": _Figure(byte_rate(throughput), throughput, is_latency=False),
            "first degradation": _Figure(f"{onset.kind} at {elapsed(onset.seconds)}" if onset else "none"),
        }
    )


def flattened(document: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Dotted path and text of each value in a nested document. A list without mappings or lists counts as one value."""
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield from flattened(value, f"{place}.{name}" if place else str(name))
    elif isinstance(document, list) and any(isinstance(value, Mapping | list) for value in document):
        for number, value in enumerate(document):
            yield from flattened(value, f"{place}.{number}")
    elif document is not None:
        yield place, document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)


def _figures_beside(first: Mapping[str, _Figure], second: Mapping[str, _Figure]) -> list[Difference]:
    return [_figure_beside(name, first.get(name), second.get(name)) for name in dict.fromkeys((*first, *second))]


def _figure_beside(name: str, first: _Figure | None, second: _Figure | None) -> Difference:
    texts = first.text if first else None, second.text if second else None
    if first is None or second is None or not first.value or not second.value:
        return Difference(name, *texts)
    ratio = first.value / second.value
    is_alike = 1 / _ALIKE < ratio < _ALIKE
    change: Change | None = None if is_alike else "worse" if (ratio > 1) == first.is_latency else "better"
    return Difference(name, *texts, ratio, change)


def _unequal(first: Mapping[str, str], second: Mapping[str, str]) -> list[Difference]:
    places = dict.fromkeys((*first, *second))
    unequal = [place for place in places if first.get(place) != second.get(place)]
    return [Difference(place, *_unequal_lines(first.get(place), second.get(place))) for place in unequal]


def _unequal_lines(first: str | None, second: str | None) -> tuple[str | None, str | None]:
    """Two texts; if they are of several lines, the lines that only one of them has."""
    if first is None or second is None or "\n" not in first + second:
        return first, second
    lines = list(difflib.ndiff(first.splitlines(), second.splitlines()))
    mine, others = ([line[2:] for line in lines if line.startswith(mark)] for mark in ("- ", "+ "))
    return "\n".join(mine) or None, "\n".join(others) or None
