"""Online detection in the worker: reads committed windows, records findings in the journal, sets Prometheus gauges.

Detection follows the journal. A worker that resumes a run reads the journal from the first window on, a little at a
time beside the load, until it has caught up; findings that are in the journal already are not recorded again. An error
in a detector ends detection, never the run.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cliffwatch.analysis.finding import Finding, FindingKind, Notice, Series, Size
from cliffwatch.analysis.forecast import Forecast, Trend, limit_for
from cliffwatch.analysis.journal_series import (
    BASELINE_NOTE,
    ENDED_NOTE,
    UPDATED_NOTE,
    FindingKey,
    key_in,
    notice_of,
    sample_of,
    series_of,
)
from cliffwatch.analysis.online.run_detector import RunDetector
from cliffwatch.analysis.primary_series import primary_series
from cliffwatch.analysis.sizes import about, restated
from cliffwatch.analysis.wording import details_of, sentence_of
from cliffwatch.base.clock import Clock, SystemClock
from cliffwatch.base.units import six_digits
from cliffwatch.coordinator.detection_metrics import DetectionFigures, figures_of
from cliffwatch.coordinator.live_marks import LiveMarks
from cliffwatch.coordinator.stated import Stated
from cliffwatch.journal import Event, EventType, JournalReader, JournalWindow
from cliffwatch.model.limits import Limit

#: Name of the note that detection failed and has ended.
FAILED_NOTE = "detection_failed"
#: A finding is the same as a recorded one when their onsets are at most this many windows apart.
SAME_ONSET_WINDOWS = 10
#: A baseline is recorded again when it differs from the recorded one by more than this share of its level.
BASELINE_MOVED = 0.02
#: Seconds of each poll of the parts that a resumed run spends on catching up with the journal.
CATCH_UP_SECONDS = 0.05

#: Most findings that are recorded for a run. More than that are the run's normal state, which the gauges show.
FINDINGS_LIMIT = 500

#: Most times in a run that a new size of a lasting finding is recorded.
UPDATES_LIMIT = 1000

RecordEvent = Callable[..., Any]


class Detection:
    """Online detection of one run."""

    def __init__(
        self,
        directory: Path,
        window_seconds: float,
        record_event: RecordEvent,
        device_names: dict[str, str],
        limits: Sequence[Limit] = (),
        clock: Clock | None = None,
    ) -> None:
        """`record_event(EventType, name, **detail)` appends an event. `device_names`: kernel names by `DriveId`.
        `limits`: limits of the workload, against which drifts are forecast."""
        self.has_failed = False
        self._directory = directory
        self._window_seconds = window_seconds
        self._record_event = record_event
        self._device_names = device_names
        self._limits = limits
        self._clock = clock or SystemClock()
        self._recorded: list[FindingKey] = []
        self._ended: list[FindingKey] = []
        self._active: dict[FindingKey, Finding] = {}
        self._baselines: dict[str, float] = {}
        #: Last recorded version of each active finding.
        self._stated: dict[FindingKey, Stated] = {}
        #: Series of each finding when it was raised: its alert keeps that series, even if others are affected later.
        self._subjects: dict[FindingKey, str] = {}
        #: Last recorded sentence of each finding, which its alert states.
        self._sentences: dict[FindingKey, str] = {}
        self._updates_reported = 0
        #: Restarts and other explaining events from before the detector exists.
        self._notices: list[Notice] = []
        self._series: dict[str, Series] = {}
        self._trends: dict[str, Trend] = {}
        self._shape: object = None
        self._detector: RunDetector | None = None
        self._next_seq = 0
        self._behind: Iterator[JournalWindow] | None = None
        self._figures: DetectionFigures | None = None
        self._marks = LiveMarks(directory)
        #: Findings that were active when a span was marked, until the windows have been analysed without that span.
        self._doubted: dict[FindingKey, Finding] = {}
        self._guard(self._recall)

    def notice(self, event: Event) -> None:
        """Pass an event of the run to the detector when it is recorded: a restart or a gap explains later changes."""
        self._guard(self._take_notice, event)

    def take(self, window: JournalWindow) -> None:
        """Analyse a window that was just committed; while detection is behind, `catch_up` reads it from the journal."""
        self._guard(self._look_for_marks)
        if self._behind is None:
            self._guard(self._feed, window)

    def catch_up(self, seconds: float = CATCH_UP_SECONDS) -> None:
        """Analyse windows of the journal that detection has not seen yet, for at most `seconds`."""
        if self._behind is not None:
            self._guard(self._follow, seconds)

    @property
    def figures(self) -> DetectionFigures | None:
        """Figures for the metrics; None while detection is catching up, before its first window, and once it failed."""
        if self._behind is not None or self._detector is None:
            return None
        if self._figures is None:
            self._guard(self._make_figures)
        return self._figures

    def _guard(self, step: Callable[..., None], *arguments: Any) -> None:
        """Run a step of detection. An error in it ends detection, with a note, but not the run."""
        if self.has_failed:
            return
        try:
            step(*arguments)
        except Exception as error:  # an error in detection must not end a run of 36 h
            self.has_failed = True
            self._behind, self._detector, self._figures = None, None, None
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            self._record_event(EventType.NOTE, FAILED_NOTE, message=f"{type(error).__name__}: {error}", where=where)

    def _recall(self) -> None:
        """Restore state from the journal: recorded findings, notices, and windows to catch up with."""
        reader = JournalReader(self._directory)
        for stored in reader.events():
            event = stored.event
            self._take_notice(event)
            key = key_in(event.detail)
            if key is not None and "summary" in event.detail:
                self._sentences[key] = str(event.detail["summary"])
            if event.type is EventType.FINDING and key is not None:
                self._recorded.append(key)
                self._subjects[key] = str(event.detail["series"])
            elif (event.type, event.name) == (EventType.NOTE, ENDED_NOTE) and key is not None:
                self._ended.append(key)
            elif (event.type, event.name) == (EventType.NOTE, UPDATED_NOTE) and key is not None:
                self._stated[key] = Stated.of_detail(event.detail)
            elif (event.type, event.name) == (EventType.NOTE, BASELINE_NOTE):
                self._baselines.update(event.detail["levels"])
        self._marks.look()
        if reader.last_window() is not None:
            self._behind = reader.windows()

    def _look_for_marks(self) -> None:
        """Read new marks, and restart detection without the marked spans if it has judged any window."""
        if self._marks.look() and self._detector is not None:
            self._doubted |= self._active
            self._read_anew()

    def _end_doubted(self) -> None:
        """End findings that are not found again without the marked spans."""
        for key, finding in self._doubted.items():
            if self._among(list(self._active), key) is None and self._among(self._ended, key) is None:
                self._ended.append(key)
                over = replace(finding, until=self._marks.until(finding.onset))
                self._record_event(EventType.NOTE, ENDED_NOTE, **self._restated(key, over))
        self._doubted.clear()

    def _take_notice(self, event: Event) -> None:
        found = notice_of(event)
        if found is None:
            return
        if self._detector is None:
            self._notices.append(found)
        else:
            self._detector.notice(found)

    def _follow(self, seconds: float) -> None:
        end = self._clock.monotonic() + seconds
        while self._behind is not None and self._clock.monotonic() < end:
            window = next(self._behind, None)
            if window is None:
                self._behind = None
                self._end_doubted()
                self._record_baselines()
            else:
                self._feed(window)

    def _feed(self, window: JournalWindow) -> None:
        if self._starts_over(window) or window.seq < self._next_seq:
            return
        assert self._detector is not None, "there is one from the first window on"
        self._next_seq, self._figures = window.seq + 1, None
        if self._marks.covers(window):
            return
        sample = sample_of(window, self._series.values())
        for finding in self._detector.feed(sample):
            self._take_finding(finding)
        for finding in self._detector.active:
            self._take_size(finding)
        for name, trend in self._trends.items():
            if (value := sample.values.get(name, 0.0)) > 0:
                trend.add(sample.end, value)
        if self._behind is None:
            self._record_baselines()

    def _starts_over(self, window: JournalWindow) -> bool:
        """Restart from the first window when a window has a new series; returns whether it restarted.

        The first window only creates the detector.
        """
        shape = (tuple(window.latency), tuple(name for name in window.counters if name.endswith("write_operations")))
        if shape == self._shape:
            return False
        self._shape = shape
        fresh = [series for series in series_of(window) if series.name not in self._series]
        if not fresh:
            return False
        self._series.update((series.name, series) for series in fresh)
        if self._detector is None:
            self._make_detector()
            return False
        self._read_anew()
        return True

    def _make_detector(self) -> None:
        series = list(self._series.values())
        self._detector = RunDetector(series, self._window_seconds, self._notices)
        self._trends = {name: Trend() for name in primary_series(series)}
        self._notices.clear()

    def _read_anew(self) -> None:
        """Replace the detector, and read the journal from the first window on."""
        self._make_detector()
        reader = JournalReader(self._directory)
        self._active.clear()
        for stored in reader.events():
            self._take_notice(stored.event)
        self._next_seq = 0
        self._behind = reader.windows()

    def _take_finding(self, finding: Finding) -> None:
        key = (finding.kind.value, finding.series, finding.onset)
        if self._among(self._recorded, key) is None:
            self._recorded.append(key)
            shown = restated(finding, self._series)
            self._subjects[key] = shown.series
            if len(self._recorded) <= FINDINGS_LIMIT:
                detail = self._restated(key, finding)
                if shown.series == finding.series:
                    del detail["raised"]
                self._record_event(EventType.FINDING, finding.kind.value, **detail)
        # A stall or shortfall that counts several together ends with each of them.
        is_over_again = finding.undone is not None and key in self._active and self._behind is None
        if finding.until is not None and (is_over_again or self._among(self._ended, key) is None):
            self._ended.append(key)
            if len(self._ended) <= FINDINGS_LIMIT:
                self._record_event(EventType.NOTE, ENDED_NOTE, **self._restated(key, finding))
        if finding.kind is FindingKind.RECOVERY:
            self._active = {
                each: other for each, other in self._active.items()
                if other.series != finding.series or other.onset > finding.onset
            }  # fmt: skip
        elif finding.until is None:
            self._active[key] = finding
        else:
            self._active.pop(key, None)

    def _take_size(self, finding: Finding) -> None:
        """Update the size of an active finding: exported at once, recorded when it has changed enough (`Stated`)."""
        key = (finding.kind.value, finding.series, finding.onset)
        if key not in self._active:
            return
        self._active[key] = finding
        present = Stated.of(restated(finding, self._series))
        if self._behind is None and present.is_news_to(self._stated.setdefault(key, present)):
            self._record_size(key, finding)

    def _record_size(self, key: FindingKey, finding: Finding) -> None:
        self._stated[key] = Stated.of(restated(finding, self._series))
        self._updates_reported += 1
        if self._updates_reported <= UPDATES_LIMIT:
            self._record_event(EventType.NOTE, UPDATED_NOTE, **self._restated(key, finding))

    def _restated(self, key: FindingKey, finding: Finding) -> dict[str, Any]:
        """Event detail of a finding's new version, with the kind, series and onset that it was raised with."""
        known = restated(finding, self._series)
        detail = detail_of(known, self._series[known.series], self._device_names, self._series)
        raised = self._among(self._recorded, key) or key
        self._sentences[raised] = detail["summary"]
        return detail | {"raised": dict(zip(("kind", "series", "onset"), raised, strict=True))}

    def finish(self) -> None:
        """Record the final size of active findings, when the load is over."""
        self._guard(self._record_sizes)

    def _record_sizes(self) -> None:
        for key, finding in self._active.items():
            if self._stated.get(key) != Stated.of(restated(finding, self._series)):
                self._record_size(key, finding)

    def _among(self, keys: list[FindingKey], key: FindingKey) -> FindingKey | None:
        """The key in `keys` of the same finding as `key`, if any: an earlier worker may have seen another onset."""
        kind, series, onset = key
        near = SAME_ONSET_WINDOWS * self._window_seconds
        same = (other for other in reversed(keys) if other[:2] == (kind, series) and abs(other[2] - onset) <= near)
        return next(same, None)

    def _record_baselines(self) -> None:
        """Record new or changed baselines."""
        if self._detector is None:
            return
        moved = {
            name: baseline
            for name, baseline in self._detector.baselines.items()
            if abs(baseline.level - self._baselines.get(name, 0.0)) > BASELINE_MOVED * baseline.level
        }
        if not moved:
            return
        levels = {name: six_digits(baseline.level) for name, baseline in moved.items()}
        self._baselines.update(levels)
        start = min(baseline.start for baseline in moved.values())
        end = max(baseline.end for baseline in moved.values())
        self._record_event(EventType.NOTE, BASELINE_NOTE, start=start, end=end, levels=levels)

    def _make_figures(self) -> None:
        assert self._detector is not None, "called when there is one"
        active, sentences = [], {}
        for key, finding in self._active.items():
            raised = self._among(self._recorded, key) or key
            subject = self._subjects.get(raised, key[1])
            active.append(about(finding, subject))
            if raised in self._sentences:
                sentences[subject, finding.kind] = self._sentences[raised]
        self._figures = figures_of(self._detector, self._series, active, sentences, self._forecasts(active))

    def _forecasts(self, active: Sequence[Finding]) -> dict[str, Forecast]:
        """Forecasts of the active drifts, by series name."""
        forecasts = {}
        for finding in active:
            if finding.kind is FindingKind.DRIFT and finding.series in self._trends:
                series = self._series[finding.series]
                limit = limit_for(series.operation, series.quantile, finding.baseline, self._limits)
                forecast = self._trends[finding.series].forecast(limit)
                if forecast is not None:
                    forecasts[finding.series] = forecast
        return forecasts


def detail_of(
    finding: Finding, series: Series, device_names: Mapping[str, str], known: Mapping[str, Series]
) -> dict[str, Any]:
    """Event detail of a finding; fields that do not apply are absent. Times in seconds since the epoch.

    `known`: the run's series by name.
    """
    names = ("kind", "onset", "series", "detected", "until")
    # Times stay exact: a finding is recognised by its onset.
    body: dict[str, Any] = {name: getattr(finding, name) for name in names}
    body |= {name: six_digits(getattr(finding, name)) for name in ("baseline", "level", "ratio", "confidence")}
    body["corroborated_by"] = list(finding.corroborated_by) or None
    if finding.size is not None:
        body |= {"worst": six_digits(finding.size.worst), "worst_ratio": six_digits(finding.size.worst_ratio)}
        body |= {"baseline_low": six_digits(finding.size.baseline.low)}
        body |= {"baseline_high": six_digits(finding.size.baseline.high)}
    body |= details_of(finding)
    body["affected"] = [_affected(size, known) for size in finding.affected] or None
    body["summary"] = sentence_of(finding, series, device_names, known)
    body["operation"], body["quantile"] = series.operation, series.quantile
    if series.device is not None:
        body["device"] = device_names.get(series.device, series.device)
    return {name: value for name, value in body.items() if value is not None}


def _affected(size: Size, known: Mapping[str, Series]) -> dict[str, Any]:
    figures = {"baseline": size.baseline.level, "level": size.level, "ratio": size.ratio, "worst": size.worst}
    names = {"series": size.series, "operation": known[size.series].operation}
    return names | {name: six_digits(value) for name, value in figures.items()}
