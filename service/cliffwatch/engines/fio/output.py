"""Convert fio's cumulative snapshots into windows on the run's grid.

fio prints a snapshot every window by a timer of its own, which begins a moment after the grid line at which the engine
was started, so its snapshots follow their lines by a constant phase. A snapshot stands for the line that it follows. A
window is the difference between the snapshots of two lines, so every operation is in one window and in no other. When
fio skips a line, or is late because a job is stuck in I/O, the next window covers all lines since: nothing is lost and
nothing is divided by guess.
"""

import math
import signal

from cliffwatch.base.units import format_length
from cliffwatch.engines.contract import EngineContext
from cliffwatch.engines.fio.failures import remedy_for
from cliffwatch.engines.fio.run import STOPPED_STATUS
from cliffwatch.engines.fio.snapshot import Difference, Snapshot, WentBackError, difference, read_snapshot
from cliffwatch.engines.fio.stream import Damaged, OutputStream, Piece, Text
from cliffwatch.model.window import BEGUN, OLDEST_OUTSTANDING, EngineEnd, EngineEvent, EngineRecord, EngineWindow

#: Messages passed on before the rest is only counted: a drive that fails each I/O must not fill the journal.
MESSAGES_LIMIT = 200
#: A window without completed I/O means an outstanding I/O only if this many of the job's longest pauses fit into it.
PAUSES_WITHIN_WINDOW = 10
_REQUESTED = "requested_operations_per_second"
#: Messages that a failure's explanation quotes.
QUOTED_MESSAGES = 5


class SnapshotClock:
    """Converts fio's timestamps (wall clock) to the run's time line.

    A snapshot is read at or after the moment that it was printed, so the smallest delay seen is nearest to the truth,
    and a delayed reader moves no window. If the wall clock was set back, fio's runtime grew by more than its timestamps
    did; the delay is then measured anew.
    """

    def __init__(self, tolerance_seconds: float) -> None:
        self._tolerance = tolerance_seconds
        self._offset: float | None = None
        self._previous: Snapshot | None = None

    def place(self, snapshot: Snapshot, received_at: float) -> float:
        """When `snapshot` was printed, in seconds on the run's time line."""
        offset = received_at - snapshot.at_seconds
        if self._offset is None or offset < self._offset or self._set_back(snapshot):
            self._offset = offset
        self._previous = snapshot
        return snapshot.at_seconds + self._offset

    def _set_back(self, snapshot: Snapshot) -> bool:
        if self._previous is None:
            return False
        passed = snapshot.at_seconds - self._previous.at_seconds
        ran = snapshot.runtime_seconds - self._previous.runtime_seconds
        return passed < 0 or ran - passed > self._tolerance


class WindowGrid:
    """Lines of the window grid, numbered from the load's start."""

    #: How early (relative to the window) a snapshot may be and still stand for the next line.
    EARLY = 0.1

    def __init__(self, context: EngineContext) -> None:
        self._start = context.start
        self.window_seconds = context.window_seconds
        self.last_line = max(1, round((context.stop - context.start) / context.window_seconds))

    def move(self, line: int) -> None:
        """Move the load's start to `line`; its length stays the same."""
        self.last_line += line

    def nearest(self, moment: float) -> int:
        return round((moment - self._start) / self.window_seconds)

    def before(self, moment: float) -> int:
        """Number of the grid line that `moment` follows."""
        return math.floor((moment - self._start) / self.window_seconds + self.EARLY)

    def time_of(self, line: int) -> float:
        return self._start + line * self.window_seconds


class FioTranslator:
    """Translator of fio's output. Holds two snapshots: the last window's end, and a newer one not on a grid line."""

    def __init__(
        self, context: EngineContext, pause_seconds: float | None = None, operations_per_second: float | None = None
    ) -> None:
        """`pause_seconds`: longest time from one I/O to the next in a job that nothing delays; None when unknown.
        `operations_per_second`: target rate of the job; None without one."""
        self._asked = {} if operations_per_second is None else {_REQUESTED: operations_per_second}
        self._pause_seconds = pause_seconds
        self._is_first = context.is_first
        self._completed_at: float | None = None
        self._stream = OutputStream()
        self._grid = WindowGrid(context)
        self._clock = SnapshotClock(context.window_seconds / 2)
        self._phase_seconds: float | None = None
        self._base: tuple[Snapshot, float, int] | None = None
        self._held: tuple[Snapshot, float] | None = None
        self._excess_seconds = 0.0
        self._messages: list[str] = []
        self._message_count = 0
        self._received_at = context.start

    def feed(self, chunk: bytes, received_at: float) -> list[EngineRecord]:
        """Records completed by `chunk`; `received_at` is on the run's time line."""
        self._received_at = received_at
        return [record for piece in self._stream.feed(chunk) for record in self._piece(piece)]

    def finish(self, exit_status: int) -> list[EngineRecord]:
        """The last window, which fio's final report closes, however short it was measured; and the `EngineEnd`."""
        records = [record for piece in self._stream.finish() for record in self._piece(piece)]
        if self._held is not None and self._base is not None:
            snapshot, moment = self._held
            line = max(self._line_of(moment), self._base[2] + 1)
            records += self._close(snapshot, moment, min(line, self._grid.last_line))
        if self._message_count > MESSAGES_LIMIT:
            dropped = {"count": self._message_count - MESSAGES_LIMIT}
            records.append(EngineEvent(self._received_at, "fio_messages_dropped", dropped))
        return [*records, self._end(exit_status)]

    def _piece(self, piece: Piece) -> list[EngineRecord]:
        if isinstance(piece, Text):
            return self._message(piece.line)
        if isinstance(piece, Damaged):
            return [self._not_understood(piece.reason)]
        try:
            snapshot = read_snapshot(piece)
        except ValueError as error:
            return [self._not_understood(str(error))]
        return self._snapshot(snapshot)

    def _snapshot(self, snapshot: Snapshot) -> list[EngineRecord]:
        moment = self._clock.place(snapshot, self._received_at)
        begun: list[EngineRecord] = []
        if self._base is None:
            if snapshot.runtime_seconds == 0:
                return []  # the jobs have not done any I/O yet
            begun = self._begin(snapshot, moment - snapshot.runtime_seconds)
        assert self._base is not None, "begun above at the latest"
        line = self._line_of(moment)
        if line <= self._base[2] or line >= self._grid.last_line:
            # Too soon after a late snapshot, or at the load's end, where fio's final report is yet to come.
            self._held = (snapshot, moment)
            return begun
        return [*begun, *self._close(snapshot, moment, line)]

    def _begin(self, snapshot: Snapshot, begun: float) -> list[EngineRecord]:
        """Begin the first window at the line where fio's jobs began; returns the event `BEGUN` if the load begins here.

        fio runs for its set time from when its jobs began, however long the start took.
        """
        line = max(0, self._grid.before(begun))
        if self._is_first:
            self._grid.move(line)
        line = min(line, self._grid.last_line - 1)
        self._base = (Snapshot(snapshot.at_seconds, 0.0), begun, line)
        if not self._is_first:
            return []
        return [EngineEvent(begun, BEGUN, {"start": self._grid.time_of(line)})]

    def _line_of(self, moment: float) -> int:
        if self._phase_seconds is None:
            return self._grid.before(moment)
        return self._grid.nearest(moment - self._phase_seconds)

    def _close(self, snapshot: Snapshot, moment: float, line: int) -> list[EngineRecord]:
        """The window from the previous window's end to `line`, with its events; `snapshot` begins the next window."""
        assert self._base is not None, "a window is closed only after one has begun"
        earlier, earlier_moment, earlier_line = self._base
        self._base, self._held = (snapshot, moment, line), None
        self._learn_phase(moment, line)
        start, end = self._grid.time_of(earlier_line), self._grid.time_of(line)
        try:
            change = difference(earlier, snapshot)
        except WentBackError as error:
            return [EngineEvent(end, "counters_went_back", {"what": str(error), "since": start})]
        measured = self._measured(moment - earlier_moment, end - start)
        gauges = {"measured_seconds": round(measured, 3)} | self._outstanding(change, start, end) | self._asked
        window = EngineWindow(start, end, change.counters, gauges, change.latency)
        return [window, *self._remarks(change, line - earlier_line, end)]

    def _outstanding(self, change: Difference, start: float, end: float) -> dict[str, float]:
        """Gauge with the least age of the oldest I/O, for a window that completed none.

        fio does not report when its last I/O completed. But a job without pauses submits the next I/O at once, so one
        has been outstanding since the last window that completed any. A job with a rate may be pausing instead: there
        is no gauge unless its pauses are short compared with the window.
        """
        if change.counters["operations"] or change.counters["sync_operations"]:
            self._completed_at = end
            return {}
        since = start if self._completed_at is None else self._completed_at
        if self._pause_seconds is None or self._pause_seconds * PAUSES_WITHIN_WINDOW > end - start:
            return {}
        return {OLDEST_OUTSTANDING: round(end - since, 3)}

    def _measured(self, passed_seconds: float, length_seconds: float) -> float:
        """Measured seconds of a window, at most its length; a late snapshot's excess counts for the next window."""
        passed_seconds += self._excess_seconds
        measured = max(0.0, min(passed_seconds, length_seconds))
        self._excess_seconds = max(0.0, passed_seconds - measured)
        return measured

    def _remarks(self, change: Difference, lines: int, end: float) -> list[EngineRecord]:
        remarks: list[EngineRecord] = []
        if lines > 1:
            remarks.append(EngineEvent(end, "snapshot_late", {"windows": lines}))
        for operation, count in change.beyond.items():
            remarks.append(EngineEvent(end, "latency_beyond_scale", {"operation": operation, "count": count}))
        return remarks

    def _learn_phase(self, moment: float, line: int) -> None:
        """Change the phase of fio's timer only if it moved, as after a stall, so that jitter moves no window."""
        phase = moment - self._grid.time_of(line)
        if self._phase_seconds is None or abs(phase - self._phase_seconds) > self._grid.window_seconds / 4:
            self._phase_seconds = moment - self._grid.time_of(self._grid.before(moment))

    def _message(self, line: str) -> list[EngineRecord]:
        self._message_count += 1
        self._messages = [*self._messages, line][-QUOTED_MESSAGES:]
        if self._message_count > MESSAGES_LIMIT:
            return []
        return [EngineEvent(self._received_at, "fio_message", {"message": line})]

    def _not_understood(self, reason: str) -> EngineEvent:
        return EngineEvent(self._received_at, "output_not_understood", {"message": reason})

    def _end(self, exit_status: int) -> EngineEnd:
        said = f": {'; '.join(self._messages)}" if self._messages else ""
        if exit_status == 0 and self._early_seconds > self._grid.window_seconds:
            early = format_length(self._early_seconds)
            return EngineEnd("failed", f"fio ended {early} before the load's end, as if its jobs were done{said}")
        if exit_status in (0, STOPPED_STATUS, -signal.SIGINT):
            return EngineEnd("completed")
        how = f"was killed by signal {-exit_status}" if exit_status < 0 else f"exited with status {exit_status}"
        # A failure before any completed I/O happens again; a later one may be the drive's.
        remedy = remedy_for(self._messages) if self._completed_at is None else None
        if remedy is not None:
            return EngineEnd("failed", f"fio {how}{said}; {remedy}", restart=False)
        return EngineEnd("failed", f"fio {how}{said}")

    @property
    def _early_seconds(self) -> float:
        """Seconds at the load's end that will have no window."""
        reached = 0 if self._base is None else self._base[2]
        return (self._grid.last_line - reached) * self._grid.window_seconds
