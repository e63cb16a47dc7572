"""Findings of a run for its report: each with its drive, its layer, its cause and a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cliffwatch.analysis.causes import Cause, Diagnosis, explain
from cliffwatch.analysis.causes.thresholds import CLIENT_LIMITED_RATIO
from cliffwatch.analysis.finding import OF_WORK, SUDDEN, Finding, FindingKind, Notice, Role, Sample, Series
from cliffwatch.analysis.isolated import Isolated, isolated_rises
from cliffwatch.analysis.journal_series import ENDED_NOTE, key_in, notices_from_events, samples_from_windows
from cliffwatch.analysis.layers import LayerComparison
from cliffwatch.analysis.marks import marks_in
from cliffwatch.analysis.online.replay import eased_before, replay
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.run_evidence import FindingSummary
from cliffwatch.analysis.slow_baseline import slow_baseline
from cliffwatch.analysis.thresholds import EASED_WINDOWS
from cliffwatch.analysis.verdict import degrades, percent
from cliffwatch.analysis.wording import Circumstances, sentence_of
from cliffwatch.analysis.work import accounts_for, not_asked_for
from cliffwatch.journal import Event, EventType
from cliffwatch.model.operation import primary_latency
from cliffwatch.report.among_parts import AmongParts, among_parts
from cliffwatch.report.collect import WINDOW_SECONDS_ASSUMED, Collected
from cliffwatch.report.format import elapsed
from cliffwatch.report.measures import compare_around
from cliffwatch.report.onset_spans import RunDrive, drives_of
from cliffwatch.report.part_runs import PartRuns
from cliffwatch.report.schema.findings import JudgedByDocument


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """Finding with drive, layer, cause and sentence.

    `degrades` is whether it degrades the verdict. `drive` is the drive that slowed down, None where none did.
    `judged_by` is the amount of data, before the onset and since, behind `diagnosis` and `layers`; all three are None
    for a recovery and for a finding that the client caused. `among_parts` compares one part with the others.
    """

    finding: Finding
    series: Series
    degrades: bool
    drive: RunDrive | None
    diagnosis: Diagnosis | None
    layers: LayerComparison | None
    sentence: str
    judged_by: tuple[JudgedByDocument, JudgedByDocument] | None = None
    among_parts: AmongParts | None = None


def findings_of(run: Collected) -> tuple[ReportedFinding, ...]:
    """All findings of a run's windows, in order of onset."""
    judged = _judged(run)
    if judged is None:
        return ()
    findings = (with_detection(finding, run.events, judged[3]) for finding in analysis(*judged))
    return _explained(run, findings, judged[0])


def raised_in(run: Collected) -> tuple[ReportedFinding, ...]:
    """Findings that online detection raises when the run is replayed, explained by the data of the whole run."""
    judged = _judged(run)
    return () if judged is None else _explained(run, replay(*judged), judged[0])


def isolated_in(run: Collected, found: Sequence[ReportedFinding]) -> list[Isolated]:
    """Isolated rises of a run, which are part of none of its findings, in order of time."""
    judged = _judged(run)
    if judged is None:
        return []
    series, samples, notices, window_seconds = judged
    return isolated_rises(series, samples, notices, [each.finding for each in found], window_seconds)


def slow_baseline_of(run: Collected) -> str:
    """Sentence on a baseline that was slower than the run after it; empty if it was not."""
    judged = _judged(run)
    return "" if judged is None else slow_baseline(*judged[:3])


def window_seconds_of(run: Collected) -> float:
    return run.order.workload.window if run.order else WINDOW_SECONDS_ASSUMED


def _judged(run: Collected) -> tuple[list[Series], list[Sample], list[Notice], float] | None:
    """Series, samples, notices and window length for detection; None where there is nothing to judge."""
    marks = marks_in(run.events)
    windows = [
        window
        for window in run.windows
        if window.seconds > 0 and not any(mark.overlaps(window.start, window.end) for mark in marks)
    ]
    if run.load is None or not windows:
        return None
    return *samples_from_windows(windows), notices_from_events(run.events), window_seconds_of(run)


def _explained(run: Collected, findings: Iterable[Finding], series: Sequence[Series]) -> tuple[ReportedFinding, ...]:
    """The findings, each with its drive, its layer and its cause."""
    by_name = {one.name: one for one in series}
    operations = {one.operation for one in series if one.role is Role.LATENCY and one.operation is not None}
    primary = primary_latency(sorted(operations))
    parts = PartRuns(run)
    found = [_found(run, parts, finding, by_name, primary) for finding in findings]
    # What was raised live may have an earlier onset than the whole run shows.
    return tuple(sorted(found, key=lambda each: each.finding.onset))


def with_detection(finding: Finding, events: Sequence[Event], window_seconds: float) -> Finding:
    """The finding with `detected`: when it was raised during the run, from its event; None where no event records it.

    Its onset becomes that of the raised finding where that is an earlier part of the same change (`eased_before`).
    """
    reported = (
        event for event in events if event.type is EventType.FINDING and is_about(event, finding, window_seconds)
    )
    first = min(reported, key=lambda event: event.at, default=None)
    if first is None:
        return replace(finding, detected=None)
    kind, onset = FindingKind(_kind_of(first)), _onset_of(first)
    raised = replace(finding, kind=kind, onset=onset, detected=first.at, until=_end_of(first, events))
    is_earlier = eased_before(raised, finding, window_seconds)
    return replace(finding, detected=first.at, onset=onset if is_earlier else finding.onset)


def _end_of(reported: Event, events: Sequence[Event]) -> float | None:
    """When the finding of an event ended, in seconds since the epoch; None while no event records its end."""
    key = key_in(reported.detail)
    for event in events if key is not None else ():
        is_end = (event.type, event.name) == (EventType.NOTE, ENDED_NOTE)
        if is_end and key_in(event.detail) == key:
            until = event.moment("until")
            return event.at if until is None else until
    return None


def _kind_of(event: Event) -> str:
    return str(event.detail.get("kind", event.name))


def _onset_of(event: Event) -> float:
    onset = event.moment("onset")
    return event.at if onset is None else onset


def is_about(event: Event, finding: Finding, window_seconds: float) -> bool:
    """Whether an event is about this finding, by kind and onset; for a drift by kind, since its onset changes."""
    reach_seconds = EASED_WINDOWS * window_seconds
    kind, onset = _kind_of(event), _onset_of(event)
    sudden = {each.value for each in SUDDEN}
    is_same_kind = kind == finding.kind or {kind, finding.kind.value} <= sudden
    is_near = finding.kind is FindingKind.DRIFT or abs(onset - finding.onset) <= reach_seconds
    return is_same_kind and is_near and event.at >= finding.onset - reach_seconds


def client_limit(run: Collected, found: Sequence[ReportedFinding]) -> str:
    """Sentence on why the client was the bottleneck; empty where nothing shows that it was."""
    if idle := not_asked_for((each.finding, each.sentence) for each in found):
        return idle
    for each in found:
        if each.degrades and each.diagnosis is not None and each.diagnosis.first.cause is Cause.CLIENT:
            return " ".join(each.diagnosis.first.evidence_for)
    held = sum(window.counters.get("engine_throttled_milliseconds", 0) for window in run.windows) / 1000
    seconds = sum(window.seconds for window in run.windows)
    if seconds <= 0 or held / seconds < CLIENT_LIMITED_RATIO:
        return ""
    return f"a processor limit held its control group back for {percent(min(1.0, held / seconds))} of the time."


def unconfirmed(run: Collected, found: Sequence[ReportedFinding]) -> list[Event]:
    """Events of findings that were raised during the run and that the analysis of the whole run does not confirm."""
    return [
        event
        for event in run.events
        if event.type is EventType.FINDING
        and not any(is_about(event, each.finding, window_seconds_of(run)) for each in found)
        and not _has_reason(event, found, window_seconds_of(run))
    ]


def _has_reason(event: Event, found: Sequence[ReportedFinding], window_seconds: float) -> bool:
    """Whether an event is a stall or shortfall that a slower latency among the findings accounts for."""
    kind, onset = _kind_of(event), _onset_of(event)
    if kind not in {each.value for each in OF_WORK}:
        return False
    undone = Finding(FindingKind(kind), onset, "", 0.0, 0.0, 0.0, 0.0)
    return any(accounts_for(each.finding, undone, window_seconds) for each in found if each.finding.undone is None)


def summaries(found: Sequence[ReportedFinding]) -> tuple[FindingSummary, ...]:
    """Kind and sentence of each finding that degrades the verdict."""
    return tuple(FindingSummary(each.finding.kind.value, each.sentence) for each in found if each.degrades)


def _found(
    run: Collected,
    parts: PartRuns,
    finding: Finding,
    known: dict[str, Series],
    primary: str | None,
) -> ReportedFinding:
    series = known[finding.series]
    elapsed_text = elapsed(finding.onset - (run.load.start if run.load else finding.onset))
    names = {each.counted_as: each.name for each in drives_of(run)}
    if finding.kind is FindingKind.RECOVERY or finding.is_of_client:
        # A recovery, or a finding that the client caused, has no drive and no cause below the client.
        sentence = sentence_of(finding, series, names, known, Circumstances(elapsed_text))
        return ReportedFinding(finding, series, False, None, None, None, sentence)
    own_run, operation = parts.of(series.operation or primary)
    comparison = compare_around(own_run, finding, operation)
    layers, diagnosis = explain(comparison.measures, comparison.layers_before, comparison.layers_after)
    drive = comparison.drive
    where, beside = "" if drive is None else drive.name, among_parts(run, finding)
    return ReportedFinding(
        finding,
        series,
        degrades=degrades(finding, known),
        drive=drive,
        diagnosis=diagnosis,
        layers=layers,
        sentence=sentence_of(
            finding,
            series,
            names,
            known,
            Circumstances(elapsed_text, where, diagnosis, layers, beside.words if beside is not None else ""),
        ),
        judged_by=comparison.judged_by,
        among_parts=beside,
    )
