"""`python -m cliffwatch.engines.command.process JOB`: run a command, and print windows of what it prints.

JOB is a CommandJob as JSON. The command is started when the load begins, and ended when it ends.
"""

import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

from cliffwatch.engines.command.definition import TOTAL, Output
from cliffwatch.engines.command.formats import NOT_A_LINE, reader_of
from cliffwatch.engines.command.windows import CLOSING_SECONDS, LONG_WINDOWS, CommandWindows
from cliffwatch.engines.late_start import begin_of
from cliffwatch.engines.run_time import OFFSET_VARIABLE, run_time
from cliffwatch.model.document import Strict
from cliffwatch.model.operation import Operation
from cliffwatch.model.window import (
    FLUSH_REMEDY,
    NOTHING_PRINTED,
    EngineEnd,
    EngineEvent,
    EngineRecord,
    EngineWindow,
    format_engine_line,
)

_WAIT_SECONDS = 0.1
_END_SECONDS = 5.0
_CHUNK_BYTES = 1 << 20
_LINE_LIMIT_BYTES = 1 << 22
#: Variables that a command gets: none with a secret of the service.
VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", OFFSET_VARIABLE)
NOT_UNDERSTOOD = "output_not_understood"
PRINTED_LATE = "printed_late"


def times(start: float, stop: float) -> dict[str, str]:
    """Placeholders of a load's times, with their texts."""
    return {"seconds": str(math.ceil(stop - start)), "start": repr(start), "stop": repr(stop)}


class CommandJob(Strict):
    """Command and how its output is read. Times in seconds since the epoch, on the grid of the windows.

    `command` has placeholders, which `values` and the times at which the load begins and ends fill in.
    """

    command: tuple[str, ...]
    values: dict[str, str]
    output: Output
    operation: Operation
    rate: float | None
    start: float
    stop: float
    window_seconds: float
    may_move: bool
    resumed: bool


class _Load:
    """One command, from its start to its end."""

    def __init__(self, job: CommandJob) -> None:
        self._job = job
        self._stopping = False
        signal.signal(signal.SIGTERM, self._stop_asked)
        begin = begin_of(run_time(), job.start, job.stop, job.window_seconds, may_move=job.may_move)
        _print(begin.event)
        self._start, self._stop = begin.start, begin.stop
        self._windows = CommandWindows(job.operation, self._start, job.window_seconds, job.rate)
        self._reader = reader_of(job.output, self._windows, run_time() - time.time(), self._start)
        #: Whether no line reports the last window, and whether one reported any.
        self._is_silent = self._was_heard = False
        #: Exit status for this process: that of a command that ended before its time.
        self.status = 1
        self._rest = b""
        self._strange = 0
        self._first_strange = ""

    def _stop_asked(self, number: int, frame: object) -> None:
        self._stopping = True

    def execute(self) -> EngineEnd:
        while (left := self._start - run_time()) > 0 and not self._stopping:
            time.sleep(min(left, _WAIT_SECONDS))
        other = subprocess.PIPE if self._job.output.stream == "stderr" else None
        # A load that begins later than planned ends as much later, if it is a run's first.
        values = self._job.values | times(self._start, self._stop)
        try:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *(text.format_map(values) for text in self._job.command)],
                env={name: os.environ[name] for name in VARIABLES if name in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if other is not None else subprocess.PIPE,
                stderr=other,
            )
        except OSError as error:
            return EngineEnd("failed", str(error), restart=False)
        pipe = process.stderr if other is not None else process.stdout
        assert pipe is not None, "started with a pipe"
        os.set_blocking(pipe.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(pipe.fileno(), selectors.EVENT_READ)
            try:
                return self._read_windows(process, selector)
            finally:
                _end(process)

    def _read_windows(self, process: "subprocess.Popen[bytes]", selector: selectors.BaseSelector) -> EngineEnd:
        seconds = self._job.window_seconds
        # Windows are closed so long after their end: by then the lines of their time are there.
        closing = min(CLOSING_SECONDS, seconds / 2)
        count = round((self._stop - self._start) / seconds)
        for number in range(count):
            begin = self._start + number * seconds
            while (left := self._closes_at(begin + seconds, closing) - run_time()) > 0 and not self._stopping:
                is_over = self._read(selector, left)
                # A command that knows how long the load lasts may end a moment before it.
                if is_over and process.poll() is not None and run_time() < self._stop - seconds / 2:
                    self._report_strange()
                    self._report_waiting(range(number, count))
                    words = f"the command ended with status {process.returncode} before the load was over"
                    self.status = process.returncode if process.returncode > 0 else 1
                    return EngineEnd("failed", words)
            # What arrived while this process did not run is there, too.
            self._read(selector, 0.0)
            measured = run_time() - begin
            partly = round(measured, 6) if measured < seconds else None
            self._report(self._windows.take(partly, is_last=number == count - 1), number)
            self._report_strange()
            if self._stopping and begin + seconds >= run_time():
                return EngineEnd("completed")
        if name := self._windows.growing:
            words = (
                f"`{name}` of the pattern never fell from one line to the next, so that it is a total since the start"
            )
            return EngineEnd("failed", f"{words}; name the group {name}{TOTAL}", restart=False)
        # An earlier process was heard, or ended with a reason of its own.
        if not self._was_heard and not self._job.resumed:
            words = f"the command printed no line that reports what it measured; {FLUSH_REMEDY}"
            return EngineEnd("failed", words, restart=False)
        return EngineEnd("completed")

    def _report_waiting(self, numbers: Iterable[int]) -> None:
        """Print the windows that lines report to their ends, and that were not closed yet."""
        for number in numbers:
            if not self._windows.is_reported():
                break
            self._report(self._windows.take(), number)

    def _closes_at(self, end: float, closing: float) -> float:
        """When a window is closed. A line of progress reports the time since the line before, and may come a window and
        a half later; when the load is over, no more lines come."""
        if self._job.output.format != "progress" or self._windows.is_reported():
            return end + closing
        return min(end + LONG_WINDOWS * self._job.window_seconds, self._stop) + closing

    def _report(self, window: EngineWindow | None, number: int) -> None:
        """Print a window; where there is none, since no line reports it, an event that says so once."""
        if window is not None:
            print(format_engine_line(window, number), flush=True)
        elif not self._is_silent:
            _print(EngineEvent(run_time(), NOTHING_PRINTED, {"message": FLUSH_REMEDY}))
        self._is_silent = window is None
        self._was_heard = self._was_heard or window is not None
        if late := self._windows.take_late():
            what = "lines reported a time more than a window before they came, and are not counted"
            _print(EngineEvent(run_time(), PRINTED_LATE, {"count": late, "message": f"{what}; {FLUSH_REMEDY}"}))

    def _read(self, selector: selectors.BaseSelector, seconds: float) -> bool:
        """Read what arrives within `seconds`, or a little of it; returns whether the output is over."""
        for key, _ in selector.select(min(seconds, _WAIT_SECONDS)):
            chunk = os.read(key.fd, _CHUNK_BYTES)
            if not chunk:
                selector.unregister(key.fd)
            self._take(chunk)
        if not selector.get_map():
            time.sleep(min(seconds, _WAIT_SECONDS))
            return True
        return False

    def _take(self, chunk: bytes) -> None:
        # Some programs end a line of progress with a carriage return alone.
        *lines, self._rest = (self._rest + chunk.replace(b"\r", b"\n")).split(b"\n")
        if len(self._rest) > _LINE_LIMIT_BYTES:
            self._rest = b""
        now = run_time()
        for line in filter(None, lines):
            text = line.decode("utf-8", "replace").strip()
            try:
                self._reader(text, now)
            except NOT_A_LINE as error:
                self._strange += 1
                self._first_strange = self._first_strange or f"{error!r:.100}: {text[:200]}"

    def _report_strange(self) -> None:
        """Report lines that were not understood, once a window."""
        if self._strange:
            detail = {"count": self._strange, "message": self._first_strange}
            _print(EngineEvent(run_time(), NOT_UNDERSTOOD, detail))
            self._strange, self._first_strange = 0, ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _print(record: EngineRecord | None) -> None:
    if record is not None:
        print(format_engine_line(record), flush=True)


def main(arguments: list[str]) -> int:
    load = _Load(CommandJob.model_validate_json(arguments[0]))
    end = load.execute()
    _print(end)
    return 0 if end.status == "completed" else load.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
