"""Evaluate a workload's limits against a run: which held, which were broken and in which spans."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cliffwatch.analysis.coverage import Coverage
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.limit_spans import JUDGED_FROM, Breach, Tally, breaches, joined, sliding, span_of
from cliffwatch.analysis.marks import Mark
from cliffwatch.analysis.run_evidence import LimitOutcome
from cliffwatch.analysis.stalls import outstanding
from cliffwatch.analysis.verdict import COVERAGE_MINIMUM, percent
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_amplification, format_length, format_ratio
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.journal.windows import QUANTILE_NAMES, quantiles_in
from cliffwatch.model.limits import ANY_PART, MEAN, QUANTILES, Limit, LimitSubject, parse_limit
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import JUDGED_PHASES, Phase
from cliffwatch.report.collect import Collected
from cliffwatch.report.findings import ReportedFinding, isolated_in
from cliffwatch.report.format import elapsed, latency
from cliffwatch.report.limits.after_marks import recoveries
from cliffwatch.report.limits.judged import BrokenSpan, Judged, broken_span
from cliffwatch.report.limits.margin import is_beyond, margin
from cliffwatch.report.limits.of_parts import judged_by_parts
from cliffwatch.report.limits.quotients import QUOTIENTS
from cliffwatch.report.limits.values import judged_by_quotient
from cliffwatch.telemetry.catalogue import HOST_WRITTEN, MEDIA_WRITTEN
from cliffwatch.telemetry.increases import increase

#: More spans than this are counted and not listed.
SPAN_LIMIT = 100
#: Names of percentiles in windows, by their names in limits.
_STORED = dict(zip(("p50", "p90", "p99", "p99.9", "p99.99"), QUANTILE_NAMES, strict=True)) | {"max": "max"}
#: Limits on what is found in the whole run, which says nothing of its baseline.
_OF_THE_WHOLE_RUN = frozenset({LimitSubject.FINDINGS, LimitSubject.ISOLATED, LimitSubject.RECOVERY})
#: The percentile of a window, by the name in a limit, that is no lower than the limit's own.
_NO_LOWER = _STORED | {"p95": _STORED["p99"]}


def judge_limits(run: Collected, found: Sequence[ReportedFinding]) -> tuple[Judged, ...]:
    """Judge each limit of the run's workload, in the workload's order; empty without an order.json or a load."""
    if run.order is None or run.load is None:
        return ()
    windows = [window for window in run.windows if window.phase in JUDGED_PHASES and window.seconds > 0]
    operations = sum(window.counters.get("operations", 0) for window in windows)
    judged = (
        replace(_judged_by_phases(parse_limit(text), run, windows, found), windows=len(windows), operations=operations)
        for text in run.order.workload.limits
    )
    missed = _missed(run.judged or run.coverage)
    return tuple(replace(each, unjudged=missed) if each.held and missed else each for each in judged)


def _judged_by_phases(
    limit: Limit, run: Collected, windows: Sequence[JournalWindow], found: Sequence[ReportedFinding]
) -> Judged:
    """Judge a limit, and where it was broken, say whether the declared baseline as a whole had broken it already."""
    judged = _judged_of(limit, run, windows, found)
    baseline = [window for window in windows if window.phase == Phase.BASELINE]
    if not judged.broken or not baseline or limit.subject in _OF_THE_WHOLE_RUN:
        return judged
    before = _judged_of(replace(limit, over_seconds=None), run, baseline, ())
    return replace(judged, in_baseline=before.broken[0].worst if before.broken else "")


def _judged_of(
    limit: Limit, run: Collected, windows: Sequence[JournalWindow], found: Sequence[ReportedFinding]
) -> Judged:
    """Judge a limit by the whole run, or by the parts that it is on."""
    parts = list(run.order.parts) if run.order is not None else []
    if not limit.part:
        return _judge(limit, run, windows, found)
    if limit.part not in (*parts, ANY_PART):
        return Judged(limit.text, unjudged=f"the run has no part {limit.part!r}; it has {', '.join(parts)}")
    return judged_by_parts(limit, parts, windows, lambda one, own: _judge(one, run, own, found))


def _missed(coverage: Coverage | None) -> str:
    """Why no limit can be judged to have held, where coverage is too low; else empty."""
    if coverage is None or coverage.ratio >= COVERAGE_MINIMUM:
        return ""
    return f"it held in what was measured, which is {percent(coverage.ratio)} of the time"


def outcomes(run: Collected, judged: Sequence[Judged]) -> tuple[LimitOutcome, ...]:
    """Sentence for the verdict on each limit that was broken or could not be judged."""
    zero = run.load.start if run.load else 0.0
    result = []
    for each in judged:
        if each.unjudged:
            result.append(LimitOutcome(f'The limit "{each.text}" could not be judged: {each.unjudged}.', False))
        elif each.broken:
            first = each.broken[0]
            more = f", and {times_more(len(each.broken) - 1)}" if len(each.broken) > 1 else ""
            already = (
                f" The baseline as a whole did not keep it either ({each.in_baseline})." if each.in_baseline else ""
            )
            place = f"{_place(first, zero)}{more}"
            result.append(LimitOutcome(f'The limit "{each.text}" was broken {place}.{already}', True))
    return tuple(result)


def times_more(count: int) -> str:
    return "once more" if count == 1 else f"{count:,} times more"


def _place(span: BrokenSpan, zero: float) -> str:
    if span.is_whole:
        return f"over the whole load ({span.worst})"
    at_worst = "" if span.window_end is None else " at worst"
    return f"from {elapsed(span.start - zero)} to {elapsed(span.end - zero)} ({span.worst}{at_worst})"


def _judge(limit: Limit, run: Collected, windows: Sequence[JournalWindow], found: Sequence[ReportedFinding]) -> Judged:
    if not windows:
        return Judged(limit.text, unjudged="nothing was measured after the warm-up")
    match limit.subject:
        case LimitSubject.LATENCY:
            return _waited_in_stalls(_latency(limit, run, windows), limit, found)
        case LimitSubject.FINDINGS:
            return _findings(limit, found, windows[-1].end)
        case LimitSubject.AMPLIFICATION:
            return _amplification(limit, run, windows)
        case LimitSubject.ISOLATED:
            return _isolated(limit, run, found)
        case LimitSubject.RECOVERY:
            return _recovery(limit, run, windows)
        case _:
            return _quotient(limit, windows)


def _waited_in_stalls(judged: Judged, limit: Limit, found: Sequence[ReportedFinding]) -> Judged:
    """A limit on the longest latency, with the stalls that broke it: an operation that was due waited through each,
    also where its age is not known."""
    if QUANTILES.get(limit.measure) != 1.0 or limit.operation is not None:
        return judged
    stalls = [each.finding for each in found if each.degrades and each.finding.kind is FindingKind.STALL]
    broken = [
        BrokenSpan(stall.onset, stall.until or stall.onset + seconds, f"at least {latency(seconds)}", stall.until)
        for stall in stalls
        if stall.undone is not None
        and (seconds := stall.undone.seconds / stall.undone.times) > (limit.bound or 0.0)
        and not any(span.start < (stall.until or math.inf) and span.end > stall.onset for span in judged.broken)
    ]
    if not broken:
        return judged
    spans = tuple(sorted([*judged.broken, *broken], key=lambda span: span.start))
    return replace(judged, broken=spans, unjudged="", margin=judged.margin if judged.broken else "")


def _latency(limit: Limit, run: Collected, windows: Sequence[JournalWindow]) -> Judged:
    assert limit.bound is not None, "a limit on latency has a bound"
    names = sorted({name for window in windows for name in window.latency})
    name = limit.operation or primary_latency(names)
    if name is None or name not in names:
        return Judged(limit.text, unjudged=f"the run has no latency {name!r}" if name else "no latency was measured")
    if limit.measure == MEAN:
        return _mean(limit, run, windows, name)
    if any(quantiles_in(window.latency[name]) for window in windows if name in window.latency):
        return _by_windows(limit, windows, name)
    reader = JournalReader(run.directory)
    tallies = [_tally(reader, window, name, limit) for window in _worth_reading(windows, name, limit)]
    found = breaches([tally for tally in tallies if tally is not None], limit.quantile, limit.over_seconds)
    if not found and not sliding(windows, limit.over_seconds):
        return Judged(limit.text, unjudged="no span of that length was measured to nine tenths")
    worst = [_percentile(reader, windows, name, limit, breach) for breach in found]
    is_by_window = limit.over_seconds is not None or limit.quantile >= 1.0
    spans = tuple(broken_span(b, latency(w), is_by_window) for b, w in zip(found, worst, strict=True))
    if spans:
        return Judged(limit.text, spans, margin=margin(limit, max((w for w in worst if w is not None), default=None)))
    return Judged(limit.text, margin=_least_margin(windows, name, limit))


def _by_windows(limit: Limit, windows: Sequence[JournalWindow], name: str) -> Judged:
    """Judge a limit on a latency of which only quantiles of windows are known.

    A span's percentile lies between the lowest and the highest of its windows', and its maximum is the highest. So a
    limit holds where every window keeps it, and is broken by a span of which each window exceeds it; where only some
    do, it cannot be judged.
    """
    bound = limit.bound or 0.0
    key = _STORED.get(limit.measure)
    values = [window.latency.get(name, {}).get(key) if key else None for window in windows]
    known = [value for value in values if value is not None]
    if not known:
        return Judged(limit.text, unjudged=f"of {name} no {limit.measure} was observed")
    is_maximum = limit.quantile >= 1.0
    least = max if is_maximum else min
    over_seconds = 0.0 if is_maximum and limit.over_seconds is None else limit.over_seconds
    found = []
    for first, behind in sliding(windows, over_seconds):
        value = least((value for value in values[first:behind] if value is not None), default=0.0)
        if value > bound:
            found.append(span_of(windows[first:behind], value, over_seconds))
    if found:
        prefix = "" if is_maximum else "at least "
        spans = tuple(broken_span(b, prefix + latency(b.badness), over_seconds is not None) for b in joined(found))
        return Judged(limit.text, spans, margin=prefix + margin(limit, max(span.badness for span in found)))
    above = sum(value > bound for value in known)
    if above:
        count = "1 window is" if above == 1 else f"{above:,} windows are"
        return Judged(limit.text, unjudged=f"{count} above it, and quantiles of windows cannot be merged")
    return Judged(limit.text, margin=_least_margin(windows, name, limit))


def _least_margin(windows: Sequence[JournalWindow], name: str, limit: Limit) -> str:
    """Text of the least margin of a limit that held, from the highest percentile of any window: no span's is higher.
    Empty where that percentile is beyond the bound, so that the margin is unknown."""
    key = _NO_LOWER[limit.measure]
    highest = [value for window in windows if (value := window.latency.get(name, {}).get(key)) is not None]
    highest += [
        waiting.max_seconds
        for window in windows
        if (waiting := outstanding(window, limit)) is not None and waiting.max_seconds is not None
    ]
    worst = max(highest, default=None)
    return "" if worst is None or is_beyond(limit, worst) else f"at least {margin(limit, worst)}"


def _worth_reading(windows: Sequence[JournalWindow], name: str, limit: Limit) -> Sequence[JournalWindow]:
    """Windows that can be in a span that breaks the limit.

    Where the percentile of every window of a span is within the bound, so is the span's; so histograms have to be read
    only for spans that have a window above the bound.
    """
    key = _NO_LOWER[limit.measure]
    bound = limit.bound or 0.0
    suspects = [
        window
        for window in windows
        if (window.latency.get(name, {}).get(key) or 0.0) > bound
        or ((waiting := outstanding(window, limit)) is not None and (waiting.max_seconds or 0.0) > bound)
    ]
    if not suspects or limit.over_seconds is None:
        return windows if suspects else []
    near, place = [], 0
    for window in windows:
        while place < len(suspects) and suspects[place].end < window.start - limit.over_seconds:
            place += 1
        if place < len(suspects) and suspects[place].start <= window.end + limit.over_seconds:
            near.append(window)
    return near


def _tally(reader: JournalReader, window: JournalWindow, name: str, limit: Limit) -> Tally | None:
    histogram = _merged(reader, [window], name, limit)
    if histogram is None or limit.bound is None:
        return None
    above = histogram.count - histogram.cumulative_counts([limit.bound])[0]
    return Tally(window.start, window.end, window.seconds, histogram.count, above)


def _merged(reader: JournalReader, windows: Sequence[JournalWindow], name: str, limit: Limit) -> Histogram | None:
    """Merged histogram of latency `name`; None where latency.hlog is damaged there, which the report shows elsewhere.

    A stalled window adds the age of its oldest operation (`outstanding`), even if it does not have this latency.
    """
    timed = [window for window in windows if name in window.latency]
    merged = reader.merged(timed, lambda window: "span").get("span", {}).get(name) if timed else Histogram()
    if merged is not None:
        for waiting in filter(None, (outstanding(window, limit) for window in windows)):
            merged.merge(waiting)
    return merged


def _percentile(
    reader: JournalReader, windows: Sequence[JournalWindow], name: str, limit: Limit, breach: Breach
) -> float | None:
    start, end = breach.worst_start, breach.worst_end
    if limit.quantile >= 1.0:
        # The worst span is the one with most latencies above the bound; the highest latency may be in any span.
        start, end = breach.start, breach.until
    inside = [w for w in windows if w.start >= start - 1e-6 and w.end <= end + 1e-6]
    histogram = _merged(reader, inside, name, limit)
    return None if histogram is None else histogram.percentiles_seconds([limit.quantile])[0]


def _quotient(limit: Limit, windows: Sequence[JournalWindow]) -> Judged:
    quotient = QUOTIENTS[limit.subject]
    if not any(quotient.counter in window.counters for window in windows):
        return Judged(limit.text, unjudged=quotient.absent)
    over, under = ([part(window) for window in windows] for part in (quotient.over, quotient.under))
    return judged_by_quotient(limit, windows, over, under, quotient.show)


def _mean(limit: Limit, run: Collected, windows: Sequence[JournalWindow], name: str) -> Judged:
    reader = JournalReader(run.directory)
    merged = [_merged(reader, [window], name, limit) or Histogram() for window in windows]
    sums, counts = [each.sum_seconds() for each in merged], [float(each.count) for each in merged]
    return judged_by_quotient(limit, windows, sums, counts, latency)


def _isolated(limit: Limit, run: Collected, found: Sequence[ReportedFinding]) -> Judged:
    rises = isolated_in(run, found)
    over = limit.over_seconds or math.inf
    for first, rise in enumerate(rises):
        inside = [each for each in rises[first:] if each.start < rise.start + over]
        if len(inside) > (limit.bound or 0.0):
            return Judged(limit.text, (BrokenSpan(rise.start, inside[-1].end, f"{len(inside)} isolated rises"),))
    return Judged(limit.text)


def _recovery(limit: Limit, run: Collected, windows: Sequence[JournalWindow]) -> Judged:
    found, unknown = recoveries(run, windows)
    if unknown:
        return Judged(limit.text, unjudged=unknown)
    bound = limit.bound or 0.0
    late = [(mark, seconds) for mark, seconds in found if seconds is None or seconds > bound]
    spans = tuple(
        BrokenSpan(mark.end, mark.end + (bound if seconds is None else seconds), _recovered_words(mark, seconds))
        for mark, seconds in late
    )
    longest = max((seconds for _, seconds in found if seconds is not None), default=None)
    return Judged(limit.text, spans, margin="" if spans else margin(limit, longest))


def _recovered_words(mark: Mark, seconds: float | None) -> str:
    after = f"after {mark.text!r}"
    return f"not recovered {after}" if seconds is None else f"{format_length(seconds)} {after}"


def _amplification(limit: Limit, run: Collected, windows: Sequence[JournalWindow]) -> Judged:
    unknown = Judged(limit.text, unjudged="the drives' own counters of media bytes were not recorded")
    if run.telemetry is None:
        return unknown
    by_drive = {samples.labels.get("device", ""): samples for samples in run.telemetry.of(HOST_WRITTEN)}
    slides = sliding(windows, limit.over_seconds)
    broken: list[BrokenSpan] = []
    highest: list[float] = []
    for media in run.telemetry.of(MEDIA_WRITTEN):
        host = by_drive.get(media.labels.get("device", ""))
        if host is None or len(media.times) < 2 or not slides:
            continue
        first, last = media.times[0], media.times[-1]
        starts = np.array([max(windows[a].start, first) for a, _ in slides])
        ends = np.array([min(windows[b - 1].end, last) for _, b in slides])
        long_enough = ends - starts >= JUDGED_FROM * np.array(
            [windows[b - 1].end - windows[a].start for a, b in slides]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = increase(media, starts, ends, np.inf)[0] / increase(host, starts, ends, np.inf)[0]
        ratios = np.where(long_enough & np.isfinite(ratios), ratios, np.nan)
        highest += ratios[~np.isnan(ratios)].tolist()
        beyond = [
            span_of(windows[a:b], float(ratio), limit.over_seconds)
            for (a, b), ratio in zip(slides, ratios, strict=True)
            if ratio > (limit.bound or 0.0)
        ]
        broken += [
            broken_span(each, format_amplification(each.badness), limit.over_seconds is not None)
            for each in joined(beyond)
        ]
    if not highest:
        return unknown
    spans = tuple(sorted(broken, key=lambda span: span.start))
    return Judged(limit.text, spans, margin=margin(limit, max(highest)))


def _size_words(finding: Finding) -> str:
    if finding.undone is not None:
        return f"for {format_length(finding.undone.seconds)}"
    return f"{format_ratio(finding.ratio)} the baseline"


def _findings(limit: Limit, found: Sequence[ReportedFinding], end: float) -> Judged:
    broken = [
        BrokenSpan(each.finding.onset, each.finding.until or end, _size_words(each.finding))
        for each in found
        if each.degrades and limit.kind in ("degradation", each.finding.kind.value)
    ]
    return Judged(limit.text, tuple(broken))
