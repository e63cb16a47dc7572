"""Online detection of a run, all detectors together: slower operations, rare spikes, time above healthy, stalls and
shortfalls.

Each problem is one finding. Clients that wait for slower operations complete fewer, so that a latency accounts for a
shortfall; and spikes of one operation are one finding, whichever of its quantiles shows them first.
"""

from collections.abc import Iterable, Mapping, Sequence

from cliffwatch.analysis.finding import SUDDEN, Baseline, Finding, FindingKind, Notice, Sample, Series
from cliffwatch.analysis.online.detector import OnlineDetector
from cliffwatch.analysis.online.judge import Judge
from cliffwatch.analysis.online.rare_spikes import RareSpikes
from cliffwatch.analysis.online.time_above import TimeAbove
from cliffwatch.analysis.online.work_judge import WorkJudge
from cliffwatch.analysis.preprocessing import Mask
from cliffwatch.analysis.returning import is_one_change
from cliffwatch.analysis.work import accounts_for

_Key = tuple[FindingKind, str, float]
#: Kinds of findings that account for spikes: others of that operation, and a sudden change, after which it is noisy.
_WITH_SPIKES = SUDDEN | {FindingKind.SPIKES, FindingKind.RECURRING}


class RunDetector:
    """Online detection of a run. `series`: every series of the samples. `window_seconds`: length of a sample.
    `notices`: those that are known before the first sample."""

    def __init__(self, series: Sequence[Series], window_seconds: float, notices: Sequence[Notice] = ()) -> None:
        self._series = {one.name: one for one in series}
        self._window_seconds = window_seconds
        self._mask = Mask(notices)
        self._changes = OnlineDetector(series, window_seconds)
        self._rare = RareSpikes(series, window_seconds)
        self._above = TimeAbove(series, window_seconds)
        self._work = WorkJudge(series, window_seconds)
        self.judges: tuple[Judge, ...] = (self._changes, self._rare, self._above, self._work)
        #: Findings left out because another finding accounts for them; and the active ones of all others.
        self._left_out: set[_Key] = set()
        self._present: dict[_Key, Finding] = {}

    def notice(self, notice: Notice) -> None:
        """Add a restart or similar event; call this before feeding the sample that contains it."""
        self._mask.notice(notice)

    def feed(self, sample: Sample) -> list[Finding]:
        """Add a sample; returns new findings, and new versions of earlier ones (same series, kind and onset)."""
        return self.reported([finding for found in self.judged(sample) for finding in found])

    def judged(self, sample: Sample) -> list[Sequence[Finding]]:
        """Add a sample; returns what each of the `judges` found with it."""
        is_judged = self._mask.is_judged(sample)
        return [judge.feed(sample, is_judged) for judge in self.judges]

    @property
    def active(self) -> list[Finding]:
        """Active findings, each with its current size."""
        found = [finding for judge in self.judges for finding in judge.active]
        return [finding for finding in found if _key_of(finding) not in self._left_out]

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """Known baselines by series name."""
        return self._changes.baselines

    @property
    def ratios(self) -> Mapping[tuple[str, str], float]:
        """Degradation ratios by (series name, span): median level of a `fast`, `slow`, `drift` span / baseline."""
        return self._changes.ratios

    @property
    def stalled_seconds(self) -> float:
        """Length of the present stall so far; 0 where operations complete."""
        return self._work.stalled_seconds

    def reported(self, found: Iterable[Finding]) -> list[Finding]:
        """Those of a sample's findings, of all `judges`, that no other finding accounts for."""
        kept = []
        for finding in found:
            key = _key_of(finding)
            if key not in self._present and self._is_of_another(finding):
                self._left_out.add(key)
            if key in self._left_out:
                continue
            if finding.until is None and finding.kind is not FindingKind.RECOVERY:
                self._present[key] = finding
            else:
                self._present.pop(key, None)
            kept.append(finding)
        return kept

    def _is_of_another(self, finding: Finding) -> bool:
        others = self._present.values()
        if finding.undone is not None:
            return any(accounts_for(each, finding, self._window_seconds) for each in others if each.undone is None)
        if finding.kind is FindingKind.RECURRING:
            return any(is_one_change(each, finding) for each in others)
        operation = self._series[finding.series].operation
        return finding.kind is FindingKind.SPIKES and any(
            each.kind in _WITH_SPIKES and self._series[each.series].operation == operation
            for each in others
            if _key_of(each) != _key_of(finding)
        )


def _key_of(finding: Finding) -> _Key:
    return finding.kind, finding.series, finding.onset
