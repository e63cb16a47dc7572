"""Fast detector: a rise that has lasted longer than any excursion from which this run recovered.

A rise begins when the median of five windows leaves the recent level, and ends when it comes back. A rise that ends is
an excursion, and is stored with its start, length and height: from compaction and write-back the detector learns how
long to wait. A rise that lasts longer than all comparable excursions, and long enough in itself, is a change of level;
a rise that begins when no comparable excursion is due need not outlast them.
"""

from collections import deque
from dataclasses import dataclass

from cliffwatch.analysis.cliff import is_cliff
from cliffwatch.analysis.online.recurrence import Recurrence, schedule_of
from cliffwatch.analysis.span_lengths import FAST, HOUR, log_ratio
from cliffwatch.analysis.thresholds import (
    ALIKE_PART,
    ALONE,
    CLIFF_SIGMAS,
    CONTRADICTED,
    CORROBORATED,
    CORROBORATED_SMALL,
    DEVICE_ALONE_SIGMAS,
    DEVICE_ENOUGH,
    DEVICE_MOVED,
    DEVICE_SHARE,
    DEVICE_SIGMAS,
    DURING_MORE_LOAD,
    ENTER_RATIO,
    ENTER_SIGMAS,
    EXCURSION_TOGETHER,
    LARGE_RATIO,
    LEAVE_PART,
    MORE_LOAD_AT_ONCE,
    MORE_LOAD_AT_ONCE_SIGMAS,
    OFF_SCHEDULE,
    OUTLAST,
    OUTLAST_DUE,
    OUTLAST_FEW,
    PATIENCE,
    PATIENCE_OTHERWISE,
    RETURN_SETTLING,
    RETURNED,
    SMALL_RATIO,
    STILL_THERE,
    UNLEARNED,
    WARM_UP,
)

#: Windows whose median begins and ends an excursion; last windows of which one has to be raised still; number of
#: excursions that are stored.
_MEDIAN_WINDOWS, _LAST_WINDOWS, _PAST_KEPT = 5, 2, 64


@dataclass(frozen=True, slots=True)
class PastExcursion:
    """Past excursion: its first window, its length in windows, and the rises (logarithms) of the client, the device and
    the drive's write amplification.

    `had_more_load`: it came with more load, so it does not count for rises without more load.
    """

    start: float
    windows: int
    client: float
    device: float
    had_more_load: bool = False
    amplified: float = 0.0


@dataclass(frozen=True, slots=True)
class ExcursionEvidence:
    """Evidence on a client's rise: the largest rise of a device, and that of the rate, at the same time (logarithms).

    A rise is None where not measured. `device_sigma` and `rate_sigma` are the usual spreads of these rises.
    `amplified`: rise of a drive's write amplification, None where it is no more than noise.
    """

    device: float | None
    device_sigma: float
    rate: float | None
    rate_sigma: float
    device_names: tuple[str, ...] = ()
    amplified: float | None = None

    def corroborates(self, client: float, client_sigma: float) -> bool:
        """Whether the device slowed down by a large enough share of the client's rise, and significantly, by itself or
        together with the client."""
        share = min(DEVICE_SHARE * client, log_ratio(DEVICE_ENOUGH))
        if self.device is None or self.device < max(log_ratio(DEVICE_MOVED), share):
            return False
        if self.device >= DEVICE_ALONE_SIGMAS * self.device_sigma:
            return True
        own = min(client / client_sigma, 2 * EXCURSION_TOGETHER) if client_sigma > 0 else 0.0
        if self.device < DEVICE_SIGMAS * self.device_sigma:
            return False
        return own + self.device / self.device_sigma >= EXCURSION_TOGETHER

    @property
    def contradicts(self) -> bool:
        """Whether the device was measured and is as fast as before."""
        return self.device is not None and self.device < max(log_ratio(DEVICE_MOVED), DEVICE_SIGMAS * self.device_sigma)

    @property
    def more_load(self) -> bool:
        """Whether the client's load increased, which explains a rise."""
        return self.rate is not None and self.rate > max(
            log_ratio(MORE_LOAD_AT_ONCE), MORE_LOAD_AT_ONCE_SIGMAS * self.rate_sigma
        )


class Excursions:
    """The present excursion of one series, and the run's excursions. Memory is bounded."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_MEDIAN_WINDOWS)
        self._span: deque[float] = deque(maxlen=FAST)
        self._past: deque[PastExcursion] = deque(maxlen=_PAST_KEPT)
        self.windows = 0
        self.start = 0.0
        self.enter = log_ratio(ENTER_RATIO)
        #: Windows since the start of the excursion that has just come back; 0 where none has.
        self.returned = 0
        self._peak = 0.0
        self._highest = 0.0
        self._closed: PastExcursion | None = None
        self._quiet = 0
        self._device_peak = self._amplified_peak = 0.0
        self._had_more_load = False
        #: Windows of the present excursion up to the last one that came with more load; 0 without one.
        self._more_load_until = 0

    @property
    def is_open(self) -> bool:
        return self.windows > 0

    def follow(self, at: float, deviation: float, sigma: float) -> float | None:
        """Add a window's deviation from the recent level; returns the height of the present rise (the median of its
        last windows), None without a rise.

        `at` is the window's time, counted in windows; `sigma` is the spread of a median of `FAST` windows.
        """
        self.returned = 0
        self._last.append(deviation)
        self._span.append(deviation)
        if len(self._last) < _MEDIAN_WINDOWS:
            return None
        level = sorted(self._last)[2]
        self.enter = enter = max(log_ratio(ENTER_RATIO), ENTER_SIGMAS * sigma)
        if not self.windows:
            if level <= enter:
                self._settle()
                return None
            self._open(at, sum(value > enter / 2 for value in self._last))
        else:
            self.windows += 1
            if level < LEAVE_PART * enter:
                self._closed = self._present()
                self._quiet = 0
                self._close()
                return None
        self._highest = max(self._highest, level)
        span = sorted(list(self._span)[-min(self.windows, FAST) :])
        height = span[len(span) // 2]
        self._peak = max(self._peak, height)
        return height

    @property
    def is_settling(self) -> bool:
        """Whether an excursion has just ended, and may still continue."""
        return self._closed is not None

    def _open(self, at: float, windows: int) -> None:
        self.start, self.windows = at - windows + 1, windows
        if self._closed is not None:
            # The excursion had only paused: continue it.
            one, self._closed = self._closed, None
            self.start, self.windows = one.start, one.windows + self._quiet + 1
            self._peak, self._device_peak, self._had_more_load = one.client, one.device, one.had_more_load
            self._amplified_peak = one.amplified

    def _settle(self) -> None:
        """Close an ended excursion after a while, and set `returned` if the level is back to normal."""
        if self._closed is None:
            return
        self._quiet += 1
        if self._quiet < RETURN_SETTLING:
            return
        one, self._closed = self._closed, None
        self._past.append(one)
        if sorted(list(self._span)[-RETURN_SETTLING:])[RETURN_SETTLING // 2] < RETURNED * one.client:
            self.returned = one.windows + RETURN_SETTLING

    def _close(self) -> None:
        self.windows, self._had_more_load, self._more_load_until = 0, False, 0
        self._peak = self._highest = self._device_peak = self._amplified_peak = 0.0

    def _present(self) -> PastExcursion:
        return PastExcursion(
            self.start, self.windows, self._peak, self._device_peak, self._had_more_load, self._amplified_peak
        )

    def end(self) -> None:
        """Store the present excursion as one that the run came back from, as it is when a declared baseline ends."""
        if self.windows:
            self._past.append(self._present())
        self._last.clear()
        self._span.clear()
        self.forget()

    def forget(self) -> None:
        """End the present excursion without storing it."""
        self._close()
        self._closed = None

    def of_new_level(self) -> "Excursions":
        """Excursions of the level after a change: those before it are known, since heights are relative to a level."""
        known = Excursions()
        known._past.extend(self._past)
        return known

    def learn(self, start: float, windows: int, client: float, device: float, amplified: float = 0.0) -> None:
        """Store as an excursion a rise that was raised as a change, but came back."""
        self._past.append(PastExcursion(start, windows, client, device, amplified=amplified))

    def is_change(
        self,
        height: float,
        sigma: float,
        evidence: ExcursionEvidence,
        windows: int,
        is_learned: bool,
        may_be_step: bool = False,
    ) -> bool:
        """Whether the present excursion is a change: it has outlasted all past excursions like it.

        `windows`: windows of the run so far; `is_learned`: the run's excursions are known, however few `windows` are.
        `may_be_step`: the run is too young for the search for steps, so that a step that a device shows counts too.
        """
        if evidence.more_load:
            self._had_more_load, self._more_load_until = True, self.windows
        if evidence.device is not None:
            self._device_peak = max(self._device_peak, evidence.device)
        self._amplified_peak = max(self._amplified_peak, evidence.amplified or 0.0)
        is_step = may_be_step and self.windows >= UNLEARNED and evidence.corroborates(height, sigma)
        is_large = is_cliff(height, sigma) or is_step
        if self.windows < CORROBORATED or not is_large or height < CLIFF_SIGMAS * sigma:
            return False
        still_there = STILL_THERE * self._highest
        # The median of five windows does not show yet that the last two are back.
        is_over = max(list(self._last)[-_LAST_WINDOWS:]) < still_there
        is_falling = is_over or (sorted(self._last)[2] < still_there and self.windows < PATIENCE)
        if is_falling and not self.is_amplified_anew(evidence):
            return False
        return self.windows >= self._needed(height, sigma, evidence, is_learned or windows >= WARM_UP)

    def is_amplified_anew(self, evidence: ExcursionEvidence) -> bool:
        """Whether write amplification has risen as in no past excursion, so that none of them explains the present."""
        least = ALIKE_PART * (evidence.amplified or 0.0)
        return evidence.amplified is not None and all(one.amplified < least for one in self._past)

    def _needed(self, height: float, sigma: float, evidence: ExcursionEvidence, is_learned: bool) -> int:
        is_of_device = evidence.corroborates(height, sigma) or self.is_amplified_anew(evidence)
        # At the end of a burst, the rate is back before the median of the last windows is.
        more_load = 0 < self.windows - FAST <= self._more_load_until or evidence.more_load
        corroborated = is_of_device and not more_load
        learned = self._learned(height, evidence, corroborated)
        if more_load:
            return max(DURING_MORE_LOAD, learned)
        if corroborated:
            least = CORROBORATED if height >= log_ratio(SMALL_RATIO) else CORROBORATED_SMALL
            least = least if is_learned else UNLEARNED
        elif evidence.device is None:
            least = ALONE if height >= log_ratio(LARGE_RATIO) else 2 * ALONE
        else:
            least = CONTRADICTED
        return max(least, learned)

    def _learned(self, height: float, evidence: ExcursionEvidence, corroborated: bool) -> int:
        """Windows that a rise has to last, as learned from past excursions: the fewer of them, the longer."""
        device = evidence.device if corroborated else None
        outlast = self.to_outlast(self.start, height, device, evidence.amplified)
        return min(PATIENCE if corroborated else PATIENCE_OTHERWISE, outlast)

    def to_outlast(self, start: float, height: float, device: float | None, amplified: float | None = None) -> int:
        """Windows for which a rise that began at window `start` may be an excursion; 0 if none like it is known or due.

        `device`: the device's rise, None where it does not corroborate; `amplified`: that of write amplification.
        """
        longest, seen = self.longest(height, device, amplified)
        if not seen:
            return 0
        schedule = self.schedule(height, device, amplified)
        is_due = schedule is not None and schedule.is_due(start)
        if (
            schedule is not None
            and schedule.is_sure
            and device is not None
            and not schedule.is_due(start, OFF_SCHEDULE)
        ):
            return 0
        return round((OUTLAST + (OUTLAST_DUE if is_due else OUTLAST_FEW) / seen) * longest) + 2

    def is_outlasted(
        self, windows: int, start: float, height: float, has_device: bool, amplified: float | None
    ) -> bool:
        """Whether a step that began at window `start` and lasted `windows` has outlasted past excursions like it."""
        device = ALIKE_PART * height if has_device else None
        return windows >= min(OUTLAST * self.to_outlast(start, height, device, amplified), HOUR)

    def schedule(self, height: float, device: float | None, amplified: float | None) -> Recurrence | None:
        """Schedule of similar excursions of at least `CORROBORATED // 2` windows; None where they show no period."""
        alike = [one.start for one in self._alike(height, device, amplified) if one.windows >= CORROBORATED // 2]
        return schedule_of(alike)

    def longest(self, height: float, device: float | None = None, amplified: float | None = None) -> tuple[int, int]:
        """Length in windows of the longest similar excursion, and the number of similar excursions."""
        alike = [one.windows for one in self._alike(height, device, amplified)]
        return max(alike, default=0), len(alike)

    def _alike(self, height: float, device: float | None, amplified: float | None) -> list[PastExcursion]:
        """Past excursions of similar height; with `device`, only those that the device showed without more load; with
        `amplified`, only those in which write amplification rose as much."""
        return [
            one
            for one in self._past
            if one.client >= ALIKE_PART * height
            and one.amplified >= ALIKE_PART * (amplified or 0.0)
            and (device is None or (one.device >= ALIKE_PART * device and not one.had_more_load))
        ]
