"""What the analysis found in a run: each finding with its drive, its layer and its cause, and a sentence for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cliffwatch.detect.analysis import analysis
from cliffwatch.detect.causes import Cause, Diagnosis, explain
from cliffwatch.detect.finding import SUDDEN, Finding, Kind, Notice, Role, Sample, Series
from cliffwatch.detect.journal_series import ENDED_NOTE, notices_from_events, samples_from_windows
from cliffwatch.detect.layers import TITLES, LayerComparison
from cliffwatch.detect.offline import EASED_WINDOWS, eased_before, replay
from cliffwatch.detect.spoken import primary_latency
from cliffwatch.detect.verdict import DEGRADING_KINDS, FindingSummary, percent
from cliffwatch.detect.wording import at_worst, fold, so_did, subject_of
from cliffwatch.journal import Event, EventType
from cliffwatch.report.collect import WINDOW_SECONDS_ASSUMED, Collected
from cliffwatch.report.format import elapsed
from cliffwatch.report.measures import compare_around
from cliffwatch.report.spans import Drive, drives_of
from cliffwatch.units import format_latency

#: Held back by a processor limit for so much of the whole load, the client was its own limit.
CLIENT_LIMITED_RATIO = 0.2


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with all that is known of it.

    `degrades` says whether the verdict takes it: the client's latency became worse. `drive` is the drive that slowed
    down, None where none did. `diagnosis` and `layers` are None for a change for the better.
    """

    finding: Finding
    series: Series
    degrades: bool
    drive: Drive | None
    diagnosis: Diagnosis | None
    layers: LayerComparison | None
    sentence: str


def findings_of(run: Collected) -> tuple[Found, ...]:
    """Everything that was found in the windows of a run, in order of onset."""
    judged = _judged(run)
    if judged is None:
        return ()
    findings = (with_detection(finding, run.events, judged[3]) for finding in analysis(*judged))
    return _explained(run, findings, judged[0])


def raised_in(run: Collected) -> tuple[Found, ...]:
    """What detection raises while such a run goes on, with what is known of the whole of it."""
    judged = _judged(run)
    return () if judged is None else _explained(run, replay(*judged), judged[0])


def _judged(run: Collected) -> tuple[list[Series], list[Sample], list[Notice], float] | None:
    """Series, samples, notices and the length of a window; None where there is nothing to look at."""
    windows = [window for window in run.windows if window.seconds > 0]
    if run.load is None or not windows:
        return None
    window_seconds = run.order.workload.window if run.order else WINDOW_SECONDS_ASSUMED
    return *samples_from_windows(windows), notices_from_events(run.events), window_seconds


def _explained(run: Collected, findings: Iterable[Finding], series: Sequence[Series]) -> tuple[Found, ...]:
    """The findings, each with its drive, its layer and its cause."""
    by_name = {one.name: one for one in series}
    operations = {one.operation for one in series if one.role is Role.LATENCY and one.operation is not None}
    primary = primary_latency(sorted(operations))
    return tuple(_found(run, finding, by_name, primary) for finding in findings)


def with_detection(finding: Finding, events: Sequence[Event], window_seconds: float) -> Finding:
    """The finding with the moment at which it was raised while the run went on, if an event records that; else without.

    It began where that did if it `eased_before`.
    """
    reach = EASED_WINDOWS * window_seconds
    told = (event for event in events if event.type is EventType.FINDING and _tells_of(event, finding, reach))
    first = min(told, key=lambda event: event.at, default=None)
    if first is None:
        return replace(finding, detected=None)
    kind, onset = Kind(first.detail.get("kind", first.name)), float(first.detail.get("onset", first.at))
    raised = replace(finding, kind=kind, onset=onset, detected=first.at, until=_end_of(first, events))
    is_earlier = eased_before(raised, finding, window_seconds)
    return replace(finding, detected=first.at, onset=onset if is_earlier else finding.onset)


def _end_of(told: Event, events: Sequence[Event]) -> float | None:
    """When what an event told of was over; None while it lasted."""
    keys = ("kind", "series", "onset")
    for event in events:
        is_end = (event.type, event.name) == (EventType.NOTE, ENDED_NOTE)
        if is_end and all(event.detail.get(key) == told.detail.get(key) for key in keys):
            return float(event.detail.get("until", event.at))
    return None


def _tells_of(event: Event, finding: Finding, reach_seconds: float) -> bool:
    """Whether a finding event is about this finding. A drift's beginning is seen differently as it goes on."""
    kind, onset = str(event.detail.get("kind", event.name)), event.detail.get("onset", event.at)
    if not isinstance(onset, int | float):
        return False
    sudden = {each.value for each in SUDDEN}
    is_same_kind = kind == finding.kind or {kind, finding.kind.value} <= sudden
    is_near = finding.kind is Kind.DRIFT or abs(onset - finding.onset) <= reach_seconds
    return is_same_kind and is_near and event.at >= finding.onset - reach_seconds


def client_limit(run: Collected, found: Sequence[Found]) -> str:
    """In what way the client itself was the limit, in a sentence; empty where nothing says that it was."""
    for each in found:
        if each.degrades and each.diagnosis is not None and each.diagnosis.first.cause is Cause.CLIENT:
            return " ".join(each.diagnosis.first.evidence_for)
    held = sum(window.counters.get("engine_throttled_milliseconds", 0) for window in run.windows) / 1000
    seconds = sum(window.seconds for window in run.windows)
    if seconds <= 0 or held / seconds < CLIENT_LIMITED_RATIO:
        return ""
    return f"a processor limit held its control group back for {percent(min(1.0, held / seconds))} of the time."


def unconfirmed(run: Collected, found: Sequence[Found]) -> list[Event]:
    """What was raised while the run went on and the whole run does not bear out."""
    window_seconds = run.order.workload.window if run.order else WINDOW_SECONDS_ASSUMED
    return [
        event
        for event in run.events
        if event.type is EventType.FINDING
        and not any(_tells_of(event, each.finding, EASED_WINDOWS * window_seconds) for each in found)
    ]


def summaries(found: Sequence[Found]) -> tuple[FindingSummary, ...]:
    """What the verdict takes into account."""
    return tuple(FindingSummary(each.finding.kind.value, each.sentence) for each in found if each.degrades)


def _found(
    run: Collected,
    finding: Finding,
    known: dict[str, Series],
    primary: str | None,
) -> Found:
    series = known[finding.series]
    if finding.kind is Kind.RECOVERY:
        return Found(finding, series, False, None, None, None, sentence_of(run, finding, series, None, None, None))
    comparison = compare_around(run, finding, series.operation or primary)
    layers, diagnosis = explain(comparison.measures, comparison.layers_before, comparison.layers_after)
    return Found(
        finding,
        series,
        degrades=series.role is Role.LATENCY and finding.kind.value in DEGRADING_KINDS,
        drive=comparison.drive,
        diagnosis=diagnosis,
        layers=layers,
        sentence=sentence_of(run, finding, series, comparison.drive, diagnosis, layers, so_did(finding, known)),
    )


def sentence_of(
    run: Collected,
    finding: Finding,
    series: Series,
    drive: Drive | None,
    diagnosis: Diagnosis | None,
    layers: LayerComparison | None,
    also: str = "",
) -> str:
    """What happened, when, on which drive and why, in one sentence. `also`: to which operations as well."""
    zero = run.load.start if run.load else finding.onset
    names = {each.major_minor: each.name for each in drives_of(run)}
    verb = "fell" if finding.level < finding.baseline else "rose"
    size = f"{fold(finding.ratio)}-fold, " if finding.ratio >= 1.5 else ""
    worst = at_worst(finding, series)
    levels = f"{size}from {_value(series, finding.baseline)} to {_value(series, finding.level)}{worst}"
    where = f" on drive {drive.name}" + (f" ({drive.serial})" if drive.serial else "") if drive is not None else ""
    place = f"{finding.kind.value.capitalize()} at {elapsed(finding.onset - zero)}"
    return f"{place}: the {subject_of(series, names)} {verb} {levels}{where}{also}{_why(diagnosis, layers)}."


def _value(series: Series, value: float) -> str:
    return format_latency(value) if series.role in (Role.LATENCY, Role.DEVICE_LATENCY) else f"{value:.4g}"


def _why(diagnosis: Diagnosis | None, layers: LayerComparison | None) -> str:
    if diagnosis is None:
        return ""
    if diagnosis.first.cause is not Cause.UNKNOWN:
        first = diagnosis.first.evidence_for[0].rstrip(".")
        return f"; likely cause: {diagnosis.first.title} ({first[0].lower()}{first[1:]})"
    where = f"; the rise is in {TITLES[layers.grew]}" if layers is not None and layers.grew is not None else ""
    return f"; its cause is not known{where}"
