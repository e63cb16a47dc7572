"""Diagnosis of a degradation: the most likely cause, the runner-up, and what would distinguish them.

Layer and cause have to agree: `explain` finds the first layer that became slower, and a cause that slows down another
layer first is not named.
"""

from dataclasses import dataclass

from cliffwatch.analysis.causes.evidence import STRONG, Evidence
from cliffwatch.analysis.causes.measures import Measures
from cliffwatch.analysis.causes.rules import CAUSES, Cause, CauseRow
from cliffwatch.analysis.causes.thresholds import NAMED_FROM
from cliffwatch.analysis.layers import TITLES, Layer, LayerComparison, LayerTimes, compare

#: Prior weight of all unmodelled causes, added to the sum of the scores.
_OTHER_CAUSES_SCORE = 2.0


@dataclass(frozen=True, slots=True)
class Suspect:
    """Cause with its evidence, as sentences for and against it, and its score. `confidence` is from 0 to 1."""

    cause: Cause
    title: str
    score: float
    confidence: float
    evidence_for: tuple[str, ...] = ()
    evidence_against: tuple[str, ...] = ()
    is_shown: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Most likely cause (`first`, may be `unknown`) and runner-up. `distinguish_by` says what to measure or to try, in
    sentences."""

    first: Suspect
    runner_up: Suspect | None
    distinguish_by: str


def explain(measures: Measures, before: LayerTimes, after: LayerTimes) -> tuple[LayerComparison, Diagnosis]:
    """Find the first layer to slow down, and the most likely cause among those that slow this layer down first."""
    layers = compare(before, after)
    return layers, diagnose(measures, layers.grew)


def diagnose(measures: Measures, layer: Layer | None = None) -> Diagnosis:
    """Diagnosis from the measures. Where they show no cause, the cause is unknown, never a guess.

    `layer`: the first layer that became slower, None where it is not known.
    """
    weighed = [(row, _weigh(row, measures, layer)) for row in CAUSES]
    total = _OTHER_CAUSES_SCORE + sum(max(0.0, suspect.score) for _, suspect in weighed if suspect.is_shown)
    # A stable sort: equals stay in the order of the table.
    ranked = sorted(weighed, key=lambda pair: (not _is_named(pair[1]), -pair[1].score))
    rows = [row for row, _ in ranked]
    suspects = [_with_confidence(suspect, total) for _, suspect in ranked]
    if _is_named(suspects[0]):
        second = suspects[1] if suspects[1].score > 0 else None
        return Diagnosis(suspects[0], second, _to_distinguish(rows[0], rows[1] if second else None, measures))
    unknown = Suspect(Cause.UNKNOWN, "unknown", 0.0, 0.0)
    second = suspects[0] if suspects[0].score > 0 else None
    return Diagnosis(unknown, second, _to_distinguish(None, rows[0] if second else None, measures))


def _is_named(suspect: Suspect) -> bool:
    return suspect.is_shown and suspect.score >= NAMED_FROM


def _weigh(row: CauseRow, measures: Measures, layer: Layer | None) -> Suspect:
    found: list[Evidence] = list(row.weigh(measures))
    acts_there = layer is None or layer in row.layers
    if layer is not None and not acts_there:
        found.append(Evidence(f"The first layer to slow down is another one: {TITLES[layer]}.", -STRONG))
    return Suspect(
        row.cause,
        row.title,
        score=sum(evidence.weight for evidence in found),
        confidence=0.0,
        evidence_for=tuple(evidence.sentence for evidence in found if evidence.weight > 0),
        evidence_against=tuple(evidence.sentence for evidence in found if evidence.weight < 0),
        is_shown=acts_there and any(evidence.shows for evidence in found),
    )


def _with_confidence(suspect: Suspect, total: float) -> Suspect:
    """Suspect with its confidence: its score / the total score, halved if no evidence `shows` its cause."""
    share = max(0.0, suspect.score) / (total if suspect.is_shown else 2 * (total + max(0.0, suspect.score)))
    return Suspect(
        suspect.cause,
        suspect.title,
        round(suspect.score, 3),
        round(min(1.0, share), 2),
        suspect.evidence_for,
        suspect.evidence_against,
        suspect.is_shown,
    )


def _to_distinguish(first: CauseRow | None, second: CauseRow | None, measures: Measures) -> str:
    rows = [row for row in (first, second) if row is not None]
    sentences = [f"To test for {row.title}: {row.remedy}." for row in rows]
    asked = CAUSES if first is None else rows
    blind = [row.needs for row in asked if row.needs and not row.is_watched(measures)]
    if blind:
        sentences.append(f"Not measured here: {'; '.join(blind)}.")
    return " ".join(sentences)
