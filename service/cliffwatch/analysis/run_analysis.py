"""Analysis of a whole run, shared by report, verdict and `cliffwatch analyze`: what changed, when, by how much.

Offline detection over the whole run finds what changed and when exactly. Online detection, which is replayed for this
and so does not depend on what was watched live, determines how large each change is: by the definition in `sizes.py`,
and with the very figures that were shown live.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cliffwatch.analysis.cliff import counts_by_itself, is_by_size, is_unended
from cliffwatch.analysis.finding import SUDDEN, Finding, FindingKind, Notice, Sample, Series, Size
from cliffwatch.analysis.offline.changes import analyse
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.replay import Replayed, belongs_to, replayed, with_detection
from cliffwatch.analysis.preprocessing import is_of_load, judged
from cliffwatch.analysis.primary_series import primary_series, rank_of
from cliffwatch.analysis.rare import with_rare
from cliffwatch.analysis.returning import with_returning
from cliffwatch.analysis.sizes import Rise, reported_series, rose, sized
from cliffwatch.analysis.span_lengths import BLOCK, SAME_MOMENT_SECONDS
from cliffwatch.analysis.thresholds import (
    DRIFT_RUN_BLOCKS,
    EASED_WINDOWS,
    SPIKE_ALIKE,
    SUDDEN_PART,
    TOGETHER_WINDOWS,
    TOGETHER_WINDOWS_OTHERWISE,
    WARM_UP_BLOCKS,
)
from cliffwatch.analysis.work import with_work
from cliffwatch.model.phase import Phase


def analysis(
    series: Sequence[Series],
    samples: Sequence[Sample],
    notices: Sequence[Notice],
    window_seconds: float,
    online: Replayed | None = None,
) -> list[Finding]:
    """Find a run's changes for the worse, recoveries, spikes, recurring excursions, stalls and shortfalls, in order of
    onset. `online`: online detection, replayed over the same samples, where that was done already."""
    online = online or replayed(series, samples, notices, window_seconds)
    found = _changes(series, samples, notices, window_seconds, online.changes)
    slower = with_returning(with_rare(found, online.rare, series, window_seconds), online.recurring)
    return with_work(slower, online.undone, window_seconds)


def _changes(
    series: Sequence[Series],
    samples: Sequence[Sample],
    notices: Sequence[Notice],
    window_seconds: float,
    raised: Sequence[Finding],
) -> list[Finding]:
    """Changes for the worse and recoveries in order of onset, each with its sizes and when it was `raised`."""
    known = {one.name: one for one in series}
    found = grouped(analyse(series, samples, notices, window_seconds), known, window_seconds)
    unended = [one for one in raised if is_unended(one, samples[-1].end, window_seconds)] if samples else []
    found = [each for each in found if not _is_sudden(each, unended, found, window_seconds)]
    lasting = _lasting(raised, found, unended, samples, window_seconds) if samples else []
    found = sorted([*found, *lasting], key=lambda finding: finding.onset)
    reported = with_detection(found, raised, window_seconds)
    meter = Meter(series, samples, notices)
    measured: list[Finding] = []
    begun: dict[Finding, int] = {}
    too_small: set[tuple[str, float | None]] = set()
    for finding in reported:
        if finding.kind is FindingKind.RECOVERY:
            if (finding.series, finding.onset) not in too_small:
                measured.append(_recovered(finding, measured))
            continue
        mine = [one for one in raised if one.size is not None and belongs_to(one, finding, window_seconds)]
        # A degradation that eases and goes on was raised as one cliff, and stays one, with the worst of it in its size.
        place = begun.get(mine[0]) if mine and finding.kind in SUDDEN else None
        if place is not None:
            measured[place] = _continued(measured[place], finding)
            continue
        one = _measured(finding, mine, meter, known)
        lasted = (samples[-1].end if one.until is None else one.until) - one.onset
        if is_by_size(one, lasted / window_seconds):
            begun |= {each: len(measured) for each in mine[:1]}
            measured.append(one)
        else:
            too_small.add((finding.series, finding.until))
    return measured


def _continued(finding: Finding, later: Finding) -> Finding:
    """Finding extended by a further degradation (`later`), which began before the finding was over."""
    until = None if finding.until is None or later.until is None else max(finding.until, later.until)
    names = dict.fromkeys([*finding.corroborated_by, later.series, *later.corroborated_by])
    names.pop(finding.series, None)
    return replace(finding, until=until, corroborated_by=tuple(names))


def grouped(findings: Iterable[Finding], series: Mapping[str, Series], window_seconds: float) -> list[Finding]:
    """One finding for the series that changed together: that of the first by rank, corroborated by the others."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda finding: rank_of(series[finding.series])):
        for index, other in enumerate(kept):
            if _are_one(other, finding, series, window_seconds):
                names = dict.fromkeys([*other.corroborated_by, finding.series, *finding.corroborated_by])
                names.pop(other.series, None)
                moments = [each.detected for each in (other, finding) if each.detected is not None]
                kept[index] = replace(other, corroborated_by=tuple(names), detected=min(moments, default=None))
                break
        else:
            kept.append(finding)
    return sorted(kept, key=lambda finding: finding.onset)


def _are_one(one: Finding, other: Finding, series: Mapping[str, Series], window_seconds: float) -> bool:
    is_same_kind = one.kind == other.kind or {one.kind, other.kind} <= SUDDEN
    are_sudden = {one.kind, other.kind} <= SUDDEN and one.series != other.series
    windows = TOGETHER_WINDOWS if are_sudden else TOGETHER_WINDOWS_OTHERWISE
    return is_same_kind and abs(one.onset - other.onset) <= windows * window_seconds + SAME_MOMENT_SECONDS


def _is_sudden(drift: Finding, unended: Sequence[Finding], found: Sequence[Finding], window_seconds: float) -> bool:
    """Whether a finding is a drift whose rise was sudden: of changes that were raised and did not end, and that the
    whole run shows as that drift only."""
    if drift.kind is not FindingKind.DRIFT:
        return False
    apart = [
        one
        for one in unended
        if one.onset >= drift.onset
        and not any(each.kind in SUDDEN and belongs_to(one, each, window_seconds) for each in found)
    ]
    highest = max((one.ratio for one in apart if one.kind is FindingKind.CLIFF), default=1.0)
    return math.log(highest) >= SUDDEN_PART * math.log(drift.ratio)


def _lasting(
    raised: Sequence[Finding],
    found: Sequence[Finding],
    unended: Sequence[Finding],
    samples: Sequence[Sample],
    window_seconds: float,
) -> list[Finding]:
    """Raised findings that count although they are part of no change in `found`: large changes, `unended` ones, and
    in a run too short to fit a drift to, a drift that lasts to the end."""
    worse = [finding for finding in found if finding.kind is not FindingKind.RECOVERY]
    is_short, end = _is_short(samples), samples[-1].end
    return [
        one
        for one in raised
        if one in unended
        or counts_by_itself(one, end, window_seconds)
        or (is_short and one.kind is FindingKind.DRIFT and one.until is None)
        if not any(_covers(each, one, window_seconds) for each in worse)
    ]


def _is_short(samples: Sequence[Sample]) -> bool:
    """Whether the run may have been too short for offline detection to search for a drift."""
    judged = sum(is_of_load(sample) and sample.phase != Phase.BASELINE for sample in samples)
    return judged < (DRIFT_RUN_BLOCKS + WARM_UP_BLOCKS) * BLOCK


def _covers(finding: Finding, raised: Finding, window_seconds: float) -> bool:
    """Whether a raised finding is part of `finding`: began near the onset of `finding`, or while `finding` lasted; a
    drift, whose onset is vague, also before it."""
    if abs(finding.onset - raised.onset) <= EASED_WINDOWS * window_seconds:
        return True
    begins = finding.onset <= raised.onset or raised.kind is FindingKind.DRIFT
    return begins and (finding.until is None or finding.until > raised.onset)


def _recovered(finding: Finding, before: Sequence[Finding]) -> Finding:
    """Recovery with the baseline of the finding that it ends."""
    worse = [one for one in before if one.series == finding.series and one.size is not None and one.until is not None]
    if not worse:
        return finding
    baseline = worse[-1].baseline
    return replace(finding, baseline=baseline, ratio=finding.level / baseline)


def _measured(finding: Finding, raised: Sequence[Finding], meter: "Meter", known: Mapping[str, Series]) -> Finding:
    """The finding with its sizes, restated for the run's primary operation if that operation slowed down too."""
    sizes: dict[str, Size | None] = {}
    if raised and finding.kind in SUDDEN:
        # A cliff and a step differ by size alone, so the kind that was raised stays.
        finding = replace(finding, kind=raised[0].kind)
    for one in raised[:1]:
        assert one.size is not None, "only those with sizes are looked at"
        sizes |= {each.series: each for each in (one.size, *one.affected)}
    names = [finding.series, *finding.corroborated_by]
    may_be_retold = finding.kind in SUDDEN and known[finding.series].operation is not None
    if may_be_retold:
        names += [name for name in meter.primary if name not in names and meter.rose(name, finding.onset)]
    for name in names:
        if name not in sizes and (name == finding.series or name in meter.primary):
            sizes[name] = meter.size(name, finding)
    if may_be_retold:
        subject = reported_series(finding.series, sizes, known)
        also = dict.fromkeys([finding.series, *finding.corroborated_by])
        also.pop(subject, None)
        finding = replace(finding, series=subject, corroborated_by=tuple(also))
    return sized(finding, sizes)


class Meter:
    """Measures sizes of changes in a whole run, by the same rules as online."""

    def __init__(self, series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice]) -> None:
        self._known = {one.name: one for one in series}
        self._samples = list(judged(samples, notices))
        #: The series that findings are about, the primary operation first.
        self.primary = sorted(primary_series(series), key=lambda name: rank_of(self._known[name]))

    def size(self, name: str, finding: Finding) -> Size | None:
        """Size of a series since the onset of a finding, up to its end; None where it was not measured."""
        channel, rise, until = Channel(self._known[name]), None, finding.until
        least, peak = SPIKE_ALIKE * math.log(finding.ratio), -math.inf
        for sample in self._samples:
            if until is not None and sample.end > until + SAME_MOMENT_SECONDS:
                break
            if rise is None and sample.start >= finding.onset - SAME_MOMENT_SECONDS:
                baseline = channel.baseline_before(finding.onset)
                if baseline is None:
                    return None
                rise = Rise(baseline, finding.kind)
            value = sample.values.get(name)
            level = None if value is None else channel.add(value, sample.start, sample.end, sample.phase)
            if rise is None or level is None:
                continue
            if finding.kind is not FindingKind.SPIKES:
                rise.add(level)
            elif level - (channel.recent_level or 0.0) >= least:
                peak = max(peak, level)
            elif peak > -math.inf:
                rise.add(peak)
                peak = -math.inf
        if rise is not None and peak > -math.inf:
            rise.add(peak)
        return None if rise is None else rise.size()

    def rose(self, name: str, onset: float) -> bool:
        """Whether a series rose at an onset, by the windows just before and after it."""
        known = [(s, math.log(s.values[name])) for s in self._samples if s.values.get(name, 0.0) > 0]
        before = [level for sample, level in known if sample.end <= onset + SAME_MOMENT_SECONDS]
        return rose(before, [level for sample, level in known if sample.start >= onset - SAME_MOMENT_SECONDS])
