"""Score of a detector's findings on a soak: missed degradations, false alarms, and delays."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from testkit.soaks.soak import Soak, Truth

from cliffwatch.analysis.finding import OF_RETURN, Finding, FindingKind

#: A finding up to this long before the onset still belongs to the degradation: the device leads the client.
EARLY_SECONDS = 120.0
#: A finding whose onset is further than this from a degradation's onset does not match the degradation.
PLACED_SECONDS = 1800.0
UNDER_COMPACTION = ", under compaction"


@dataclass(slots=True)
class Score:
    """Score of one soak. `delays` and `onset_errors` in seconds, by `name_of` the degradation; `drift_marks` maps a
    ratio to whether drift was detected before it reached that ratio.

    Findings that match no degradation are `false_alarms` before the first degradation, and `extra` later; `misnamed`
    match a degradation but name another kind; spikes and excursions that recur are one.
    """

    hours: float = 0.0
    healthy_hours: float = 0.0
    truths: int = 0
    missed: list[Truth] = field(default_factory=list)
    false_alarms: list[Finding] = field(default_factory=list)
    extra: list[Finding] = field(default_factory=list)
    misnamed: list[Finding] = field(default_factory=list)
    delays: dict[str, list[float]] = field(default_factory=dict)
    onset_errors: dict[str, list[float]] = field(default_factory=dict)
    drift_marks: dict[float, list[bool]] = field(default_factory=dict)


def score(soak: Soak, findings: Sequence[Finding], online: bool) -> Score:
    """Match findings to a soak's degradations: by their time of detection when `online`, else by their onset."""
    result = Score(hours=soak.hours, healthy_hours=soak.healthy_hours, truths=len(soak.truths))
    worse = [finding for finding in findings if finding.kind is not FindingKind.RECOVERY]
    claimed: set[int] = set()
    for made in soak.truths:
        truth, found = replace(made, onset=soak.measured_from(made.onset)), None
        for index, finding in enumerate(worse):
            at = finding.detected if online else finding.onset
            early = EARLY_SECONDS if online else _placed(truth)
            late = float("inf") if online else _placed(truth)
            if index not in claimed and at is not None and truth.onset - early <= at <= truth.onset + late:
                found = finding
                claimed.add(index)
                break
        if found is None:
            result.missed.append(truth)
            continue
        if found.kind is not truth.kind and not {found.kind, truth.kind} <= OF_RETURN:
            result.misnamed.append(found)
        result.onset_errors.setdefault(name_of(truth, soak), []).append(found.onset - truth.onset)
        if found.detected is not None:
            result.delays.setdefault(name_of(truth, soak), []).append(found.detected - truth.onset)
            for mark, at in truth.marks.items():
                result.drift_marks.setdefault(mark, []).append(found.detected <= at)
    first = min((truth.onset for truth in soak.truths), default=float("inf"))
    for index, finding in enumerate(worse):
        at = finding.detected if online else finding.onset
        if index in claimed:
            continue
        if at is not None and at < first - EARLY_SECONDS:
            result.false_alarms.append(finding)
        else:
            result.extra.append(finding)
    return result


def name_of(truth: Truth, soak: Soak) -> str:
    """Name of a degradation. A cliff in a run with compaction is named apart: it may be as high as a compaction, and
    then has to outlast it."""
    is_like_compaction = truth.kind is FindingKind.CLIFF and "compaction" in soak.healthy
    return truth.name + UNDER_COMPACTION if is_like_compaction else truth.name


def _placed(truth: Truth) -> float:
    return 4 * 3600.0 if truth.kind is FindingKind.DRIFT else PLACED_SECONDS
