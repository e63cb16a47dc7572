"""Compare two runs value by value: results, workloads, targets and environments."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cliffwatch.app.orders import read_order
from cliffwatch.base.errors import Problem
from cliffwatch.journal import JournalReader
from cliffwatch.report.figures import RunFigures
from cliffwatch.report.format import byte_rate, elapsed, latency, rate
from cliffwatch.store.models import RunRow

_FIGURES = TypeAdapter(RunFigures)
#: Keys of facts.json that are not compared: they repeat values of order.json or of other keys, or do not describe the
#: environment.
_LEFT_OUT = frozenset({"version", "target", "device", "warnings"})


@dataclass(frozen=True, slots=True)
class Difference:
    """Value of two runs at the dotted path `place`, such as `drives.0.firmware`; None where a run has none there."""

    place: str
    first: str | None
    second: str | None


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
class _Side:
    result: dict[str, str]
    workload: dict[str, str]
    targets: dict[str, str]
    environment: dict[str, str]
    faults: list[str]


def differences_of(first: RunRow, second: RunRow) -> Differences:
    """Compare two runs by their rows in the index, and by order.json and facts.json of their journals."""
    one, other = _side_of(first), _side_of(second)
    return Differences(
        result=_beside(one.result, other.result),
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
    return _Side(_result_of(row), dict(flattened(workload)), dict(flattened(targets)), dict(flattened(kept)), faults)


def _result_of(row: RunRow) -> dict[str, str]:
    """Figures of a run by name, formatted as in the list of runs."""
    words = {"verdict": row.verdict or row.state}
    try:
        figures = _FIGURES.validate_python(row.figures)
    except ValidationError:
        # There are no figures before the report is made, and damaged ones count as none.
        return words
    name = figures.latency or "latency"
    onset = figures.onset
    return words | {
        f"{name} p50": latency(figures.p50_seconds),
        f"{name} p99": latency(figures.p99_seconds),
        f"{name}, slowest": latency(figures.max_seconds),
        "operations": rate(figures.operations_per_second),
        "throughput": byte_rate(figures.bytes_per_second),
        "write latency of the drive": latency(figures.device_write_seconds),
        "first degradation": f"{onset.kind} at {elapsed(onset.seconds)}" if onset else "none",
    }


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


def _beside(first: Mapping[str, str], second: Mapping[str, str]) -> list[Difference]:
    return [Difference(place, first.get(place), second.get(place)) for place in dict.fromkeys((*first, *second))]


def _unequal(first: Mapping[str, str], second: Mapping[str, str]) -> list[Difference]:
    return [each for each in _beside(first, second) if each.first != each.second]
