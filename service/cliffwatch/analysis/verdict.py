"""Verdict of a run: the rules that derive it from the evidence.

`RULES` lists them all: one row per reason, the most severe verdict first. Every row that applies contributes its
sentence; the first one that applies names the verdict. A run to which no row applies passes; rows of `pass` do not
change that, but their sentences are worth reading.
"""

from collections.abc import Callable, Mapping

from cliffwatch.analysis.asked_rate import not_reached as not_as_asked
from cliffwatch.analysis.finding import Finding, FindingKind, Role, Series
from cliffwatch.analysis.marks import LeftOut, words_of
from cliffwatch.analysis.reached_drive import Direction, mostly_others, not_counted, not_reached, not_watched
from cliffwatch.analysis.run_evidence import LoadEnd, RunEvidence
from cliffwatch.analysis.stalls import LONGEST_SECONDS, slow_sentence, unfinished_sentence
from cliffwatch.analysis.thresholds import SHORTFALL_RATIO
from cliffwatch.base.units import format_length, format_rare_share, format_share, format_size
from cliffwatch.model.run_state import Verdict, VerdictName
from cliffwatch.model.target import WITHOUT_DRIVE
from cliffwatch.model.window import FLUSH_REMEDY, NOTHING_PRINTED

#: Below this part of the requested time, a run cannot pass.
COVERAGE_MINIMUM = 0.99
#: Below this part of the judged time that marks leave, a run cannot pass.
JUDGED_MINIMUM = 0.9
#: Above this part of the latencies lost to damage, the percentiles of the run cannot be stated.
LOST_LATENCY_MAXIMUM = 0.01
#: Kinds of findings that degrade a run; the worst kind first.
DEGRADING_KINDS = tuple(kind.value for kind in FindingKind if kind is not FindingKind.RECOVERY)


#: Rule: returns the sentence for the evidence, or None where it does not apply.
Rule = Callable[[RunEvidence], str | None]


def judge(evidence: RunEvidence) -> Verdict:
    """Derive the verdict on a run from its evidence."""
    met = [(name, sentence) for name, rule in RULES if (sentence := rule(evidence)) is not None]
    reasons = tuple(sentence for _, sentence in met)
    if all(name is VerdictName.PASS for name, _ in met):
        share = _partly_marked(evidence)
        rest = tuple(sentence for sentence in reasons if sentence != share)
        return Verdict(VerdictName.PASS, (*filter(None, [share]), _accomplished(evidence), *rest))
    return Verdict(met[0][0], reasons)


def degrades(finding: Finding, known: Mapping[str, Series]) -> bool:
    """Whether a finding degrades a run: a client's latency became worse, or a drive's where no client was measured.

    A stall or a shortfall degrades it unless the client caused it. A change of a drive alone, which the clients did not
    feel, degrades nothing. `known`: every series by name.
    """
    if finding.undone is not None:
        return not finding.is_of_client
    clients = {name for name, series in known.items() if series.role is Role.LATENCY}
    return finding.kind.value in DEGRADING_KINDS and finding.series in (clients or known)


def stopped_after(load_seconds: float) -> str:
    """Sentence on a run that a user stopped after `load_seconds` of its load."""
    lasted = format_length(load_seconds)
    if lasted == "0 s":
        return "A user stopped the run before the load started."
    return f"A user stopped the run after {lasted} of load."


def percent(ratio: float) -> str:
    """Format a ratio in percent, rounded down so that it never shows a limit that it misses: 0.98996 → `98.99 %`."""
    return f"{int(ratio * 10_000 + 1e-6) / 100:.2f} %"


def _never_began(evidence: RunEvidence) -> str | None:
    if evidence.load_end in (None, LoadEnd.STOPPED) or evidence.coverage is not None:
        return None
    return _with_message("The load did not start", evidence.message)


def _load_failed(evidence: RunEvidence) -> str | None:
    if evidence.load_end is not LoadEnd.FAILED or evidence.coverage is None:
        return None
    return _with_message("The load failed permanently", evidence.message)


def _no_window(evidence: RunEvidence) -> str | None:
    if evidence.coverage is None or evidence.windows or evidence.load_end in (None, LoadEnd.STOPPED):
        return None
    until = "until the load failed" if evidence.load_end is LoadEnd.FAILED else "of load requested"
    claim = f"No window was measured in the {format_length(evidence.coverage.asked_seconds)} {until}"
    # Where the load failed permanently, the sentence on that has the message.
    return _with_message(claim, "" if evidence.load_end is LoadEnd.FAILED else evidence.message)


def _no_operation(evidence: RunEvidence) -> str | None:
    if evidence.windows == 0 or evidence.operations != 0 or evidence.load_end in (None, LoadEnd.STOPPED):
        return None
    windows = "1 window" if evidence.windows == 1 else f"{evidence.windows:,} windows"
    errors = f"; {evidence.errors:,} failed" if evidence.errors else ""
    return f"No operation was completed in {windows}{errors}."


def _stopped(evidence: RunEvidence) -> str | None:
    if evidence.load_end is not LoadEnd.STOPPED:
        return None
    return stopped_after(0.0 if evidence.coverage is None else evidence.coverage.asked_seconds)


def _not_ended(evidence: RunEvidence) -> str | None:
    if evidence.load_end is not None:
        return None
    return "The journal does not say how the load ended: the run is still in progress, or its worker was killed."


def _unmeasured(evidence: RunEvidence) -> str | None:
    return evidence.unmeasured or None


def _coverage_low(evidence: RunEvidence) -> str | None:
    """Sentence on low coverage of the judged part; a gap in the warm-up is shown, but does not count."""
    coverage = evidence.judged or evidence.coverage
    if coverage is None or evidence.windows == 0 or coverage.ratio >= COVERAGE_MINIMUM:
        return None
    count, partial = len(coverage.gaps), coverage.partial_windows
    gaps = "" if count == 0 else f", with {count} {'gap' if count == 1 else 'gaps'}"
    parts = f", {partial:,} {'window' if partial == 1 else 'windows'} in part" if partial else ""
    why = "; the run was interrupted and ended there" if evidence.load_end is LoadEnd.INTERRUPTED else ""
    if evidence.load_end is not LoadEnd.FAILED and any(NOTHING_PRINTED in gap.reason for gap in coverage.gaps):
        why += f"; the command printed nothing meanwhile: {FLUSH_REMEDY}"
    return (
        f"Only {percent(coverage.ratio)} of {_asked(evidence)} was measured "
        f"({format_length(coverage.measured_seconds)} of {format_length(coverage.asked_seconds)}{gaps}{parts}), "
        f"less than the {format_share(COVERAGE_MINIMUM)} that a verdict needs{why}."
    )


def _died(evidence: RunEvidence) -> str | None:
    """Sentence on an engine that died, where too little was measured; a load that failed has its own."""
    if evidence.deaths == 0 or evidence.load_end is LoadEnd.FAILED or _coverage_low(evidence) is None:
        return None
    times = "once" if evidence.deaths == 1 else f"{evidence.deaths:,} times"
    return _with_message(f"The engine died and was started again {times}", evidence.death)


def _asked(evidence: RunEvidence) -> str:
    is_all = not evidence.has_warm_up or evidence.judged in (None, evidence.coverage)
    if evidence.load_end is LoadEnd.FAILED:
        return "the time until the load failed" if is_all else "the time from the warm-up until the load failed"
    return "the requested time" if is_all else "the time after the warm-up"


def _mostly_marked(evidence: RunEvidence) -> str | None:
    marked = evidence.marked
    if marked is None or marked.judged_ratio >= JUDGED_MINIMUM:
        return None
    return (
        f"Only {percent(marked.judged_ratio)} of {_asked(evidence)} can be judged, less than the "
        f"{format_share(JUDGED_MINIMUM)} that a verdict needs: {_marks(marked)}."
    )


def _partly_marked(evidence: RunEvidence) -> str | None:
    """Sentence on marks; that of a pass begins with it."""
    marked = evidence.marked
    if marked is None or marked.judged_ratio < JUDGED_MINIMUM:
        return None
    return f"{percent(marked.judged_ratio)} of {_asked(evidence)} was judged: {_marks(marked)}."


def _marks(marked: LeftOut) -> str:
    return "; ".join(words_of(mark) for mark in marked.marks)


def _latencies_lost(evidence: RunEvidence) -> str | None:
    recorded, lost = evidence.recorded_latencies, evidence.lost_latencies
    if recorded == 0 or lost <= recorded * LOST_LATENCY_MAXIMUM:
        return None
    return (
        f"{percent(lost / recorded)} of the recorded latencies can no longer be read (at most "
        f"{format_share(LOST_LATENCY_MAXIMUM)} may be lost): the journal's latency.hlog is damaged or missing."
    )


def _no_drive(evidence: RunEvidence) -> str | None:
    if _has_no_drive_of_its_own(evidence) or evidence.has_drive is not False or evidence.written_bytes == 0:
        return None
    return (
        f"No drive is below the target: the {format_size(evidence.written_bytes)} that the engine wrote went to "
        "memory or to a device that cannot be monitored."
    )


def _has_no_drive_of_its_own(evidence: RunEvidence) -> bool:
    """Whether the engine's bytes cannot be compared with a drive's."""
    return evidence.target_kind in WITHOUT_DRIVE or evidence.drives_elsewhere


def _device_not_watched(evidence: RunEvidence) -> str | None:
    return not_watched(_directions(evidence)) if evidence.windows else None


def _device_not_counted(evidence: RunEvidence) -> str | None:
    return None if _device_not_watched(evidence) else not_counted(_directions(evidence))


def _writes_cached(evidence: RunEvidence) -> str | None:
    return next(filter(None, map(not_reached, _directions(evidence)[:1])), None)


def _reads_cached(evidence: RunEvidence) -> str | None:
    return next(filter(None, map(not_reached, _directions(evidence)[1:])), None)


def _directions(evidence: RunEvidence) -> list[Direction]:
    """Directions of traffic: written and read; none where no drive is below the target."""
    if _has_no_drive_of_its_own(evidence) or evidence.has_drive is False:
        return []
    written = (evidence.written_bytes, evidence.device_written_bytes, evidence.written_share)
    read = (evidence.read_bytes, evidence.device_read_bytes, evidence.read_share)
    return [Direction("wrote", "reached", *written), Direction("read", "came from", *read)]


def _mostly_others(evidence: RunEvidence) -> str | None:
    shares = [share for share in (evidence.written_share, evidence.read_share) if share is not None]
    return mostly_others(shares, evidence.drives) if _directions(evidence) else None


def _stalled(evidence: RunEvidence) -> str | None:
    return slow_sentence(evidence.slowest)


def _ends_in_long_stall(evidence: RunEvidence) -> str | None:
    return _ends_in_stall(evidence) if (evidence.unfinished_seconds or 0.0) >= LONGEST_SECONDS else None


def _ends_in_short_stall(evidence: RunEvidence) -> str | None:
    return _ends_in_stall(evidence) if (evidence.unfinished_seconds or 0.0) < LONGEST_SECONDS else None


def _ends_in_stall(evidence: RunEvidence) -> str | None:
    return None if evidence.unfinished_seconds is None else unfinished_sentence(evidence.unfinished_seconds)


def _client_limited(evidence: RunEvidence) -> str | None:
    return f"The client was the bottleneck: {evidence.client_limited}" if evidence.client_limited else None


def _not_steady(evidence: RunEvidence) -> str | None:
    return evidence.not_steady or None


def _unanalysed(evidence: RunEvidence) -> str | None:
    if not evidence.unanalysed:
        return None
    return _with_message("The analysis failed; a degradation would have gone undetected", evidence.unanalysed)


def _limits_unjudged(evidence: RunEvidence) -> str | None:
    return " ".join(limit.sentence for limit in evidence.limits if not limit.judged) or None


def _degraded(evidence: RunEvidence) -> str | None:
    """Sentence of the worst finding, in full, since the report opens with it, and the number of other findings."""
    found = [finding for finding in evidence.findings if finding.kind in DEGRADING_KINDS]
    if not found:
        return None
    worst = min(found, key=lambda finding: DEGRADING_KINDS.index(finding.kind))
    others = len(found) - 1
    more = f" {others} more {'finding follows' if others == 1 else 'findings follow'}." if others else ""
    return worst.sentence + more


def _limits_broken(evidence: RunEvidence) -> str | None:
    return " ".join(limit.sentence for limit in evidence.limits if limit.judged) or None


def _errors(evidence: RunEvidence) -> str | None:
    if evidence.errors == 0:
        return None
    if evidence.operations is None:
        return f"{evidence.errors:,} operations failed."
    attempts = evidence.operations + evidence.errors
    return f"{evidence.errors:,} of {attempts:,} operations failed ({format_rare_share(evidence.errors / attempts)})."


def _skipped(evidence: RunEvidence) -> str | None:
    if evidence.skipped == 0:
        return None
    if evidence.due is None:
        return f"{evidence.skipped:,} operations that were due were skipped."
    share = format_rare_share(evidence.skipped / evidence.due)
    return f"{evidence.skipped:,} of {evidence.due:,} operations that were due were skipped ({share})."


def _displaced(evidence: RunEvidence) -> str | None:
    if evidence.displaced is None:
        return None
    what, seconds = evidence.displaced
    return (
        f"The target was taken away under the load: {what}, noticed {format_length(seconds)} after the load began. "
        "What the engine had open went on being measured, and stands."
    )


def _rate_missed(evidence: RunEvidence) -> str | None:
    """Sentence on far fewer operations than were due, from the start on: no window is slower than others, so that no
    finding reports it."""
    return not_as_asked(evidence.rate) if evidence.rate and evidence.rate.ratio < SHORTFALL_RATIO else None


def _rate_not_reached(evidence: RunEvidence) -> str | None:
    return not_as_asked(evidence.rate) if evidence.rate and evidence.rate.ratio >= SHORTFALL_RATIO else None


def _isolated(evidence: RunEvidence) -> str | None:
    return evidence.isolated or None


def _slow_baseline(evidence: RunEvidence) -> str | None:
    return evidence.slow_baseline or None


def _left_out(evidence: RunEvidence) -> str | None:
    return evidence.left_out or None


def _accomplished(evidence: RunEvidence) -> str:
    if evidence.operations is None:
        found = f"No {'lasting or recurring ' if evidence.isolated else ''}degradation was found"
        return (
            f"{found}." if evidence.due is not None else f"{found} in what was seen; how much work was due is unknown."
        )
    assert evidence.coverage is not None, "a run without load does not pass"
    proof = ""
    if not _has_no_drive_of_its_own(evidence) and evidence.written_bytes and evidence.device_written_bytes is not None:
        proof = (
            f", and the device took {format_size(evidence.device_written_bytes)} for the "
            f"{format_size(evidence.written_bytes)} that the engine wrote"
        )
    judged = evidence.judged or evidence.coverage
    return (
        f"{evidence.operations:,} operations without an error in "
        f"{format_length(evidence.coverage.measured_seconds)} of measurement, "
        f"{percent(judged.ratio)} of {_asked(evidence)}{proof}."
    )


def _with_message(claim: str, message: str) -> str:
    reported = " ".join(message.split()).rstrip(".")
    return f"{claim}: {reported}." if reported else f"{claim}."


#: Most severe first. docs/report.md documents the same thresholds.
RULES: tuple[tuple[VerdictName, Rule], ...] = (
    (VerdictName.FAILED, _never_began),
    (VerdictName.FAILED, _load_failed),
    (VerdictName.FAILED, _no_window),
    (VerdictName.FAILED, _no_operation),
    (VerdictName.STOPPED, _stopped),
    (VerdictName.INVALID, _not_ended),
    (VerdictName.INVALID, _no_drive),
    (VerdictName.INVALID, _writes_cached),
    (VerdictName.INVALID, _reads_cached),
    (VerdictName.INVALID, _device_not_watched),
    (VerdictName.INVALID, _unmeasured),
    (VerdictName.INVALID, _coverage_low),
    (VerdictName.INVALID, _died),
    (VerdictName.INVALID, _mostly_marked),
    (VerdictName.INVALID, _latencies_lost),
    (VerdictName.INVALID, _client_limited),
    (VerdictName.INVALID, _not_steady),
    (VerdictName.INVALID, _unanalysed),
    (VerdictName.INVALID, _limits_unjudged),
    (VerdictName.DEGRADED, _degraded),
    (VerdictName.DEGRADED, _limits_broken),
    (VerdictName.DEGRADED, _stalled),
    (VerdictName.DEGRADED, _ends_in_long_stall),
    (VerdictName.DEGRADED, _rate_missed),
    (VerdictName.DEGRADED, _errors),
    (VerdictName.DEGRADED, _skipped),
    (VerdictName.PASS, _displaced),
    (VerdictName.PASS, _ends_in_short_stall),
    (VerdictName.PASS, _mostly_others),
    (VerdictName.PASS, _device_not_counted),
    (VerdictName.PASS, _rate_not_reached),
    (VerdictName.PASS, _partly_marked),
    (VerdictName.PASS, _slow_baseline),
    (VerdictName.PASS, _isolated),
    (VerdictName.PASS, _left_out),
)
