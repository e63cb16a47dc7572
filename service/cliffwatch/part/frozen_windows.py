"""Subtract frozen time from a window; drop it when nothing is left, and record the gap."""

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.journal.events import EventType
from cliffwatch.model.window import EngineWindow
from cliffwatch.part.context import PartContext
from cliffwatch.part.freezes import ENGINE_FROZEN, LATE_SECONDS, Freeze, FreezeWatch

#: Engines that report a window late when the target stalls: a long window from these is a stall, not a freeze.
STALLS_LENGTHEN = frozenset({"fio"})


class FrozenWindows:
    """Freezes of one run. There are none in virtual time, and none that matter to windows which others recorded."""

    def __init__(self, context: PartContext) -> None:
        self._context = context
        self._window_seconds = context.workload.window
        is_watched = not context.is_virtual and not context.engine.reads_history
        self._watch = FreezeWatch(context.run_clock.now) if is_watched else None

    def follow(self, engine_pid: int | None) -> None:
        """Watch another engine from now on, or none."""
        if self._watch is not None:
            for freeze in self._watch.follow(engine_pid):
                self._record_event(freeze)

    def look(self) -> None:
        """Record freezes that ended since the last call, and an engine freeze that has begun."""
        if self._watch is None:
            return
        before = self._watch.frozen_since
        for freeze in self._watch.look():
            self._record_event(freeze)
        since = self._watch.frozen_since
        if since is not None and before is None:
            self._context.record_event(EventType.ENGINE, "frozen", since=since)

    def leaves(self, window: EngineWindow) -> bool:
        """Subtract frozen time from a window; returns False when nothing of the window can be used.

        A window longer than the grid's step mixes work from before and after a freeze in an unknown proportion: the
        whole window is dropped, and its counts are recorded.
        """
        if self._watch is None:
            return True
        length = window.end - window.start
        frozen, _ = self._watch.within(window.start, window.end)
        tolerance = self._window_seconds * GAP_TOLERANCE
        is_long = length > 1.5 * self._window_seconds
        if frozen <= tolerance:
            # The target cannot make such an engine late: it did not run, for whatever reason.
            late = length - self._window_seconds
            if not is_long or late < LATE_SECONDS or self._context.engine.name in STALLS_LENGTHEN:
                return True
            self._record_event(Freeze(window.start + self._window_seconds, window.end, ENGINE_FROZEN))
        measured = min(window.gauges.get("measured_seconds", length), length - frozen)
        if not is_long and measured > tolerance:
            window.gauges["measured_seconds"] = round(measured, 6)
            return True
        counted = {name: window.counters.get(name, 0) for name in ("operations", "bytes", "errors")}
        self._context.record_event(EventType.ENGINE, "window_dropped", start=window.start, end=window.end, **counted)
        return False

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def _record_event(self, freeze: Freeze) -> None:
        detail = {"start": freeze.start, "end": freeze.end, "seconds": round(freeze.seconds, 3)}
        self._context.record_event(EventType.GAP, freeze.reason, **detail)
