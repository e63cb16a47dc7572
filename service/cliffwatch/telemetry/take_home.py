"""Taking a run's series home: ask Prometheus for what no part holds yet, and write it down, interval by interval."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from cliffwatch.journal import JournalReader, ends_load, files
from cliffwatch.runs.specification import RunOrder
from cliffwatch.runs.states import status_of
from cliffwatch.telemetry.parts import (
    DIRECTORY,
    SCHEMA,
    Grid,
    Hole,
    Index,
    Part,
    Points,
    Unreadable,
    describe_part,
    missing,
    next_name,
    part_names,
    remove_unfinished,
    write_part,
)
from cliffwatch.telemetry.prometheus import Answer, Prometheus, Unanswered
from cliffwatch.telemetry.result import Result
from cliffwatch.telemetry.series import Scope, Series

#: Points of one part at most, so that what is held in memory does not grow with what has to be caught up on.
PART_POINTS = 360
_LOCK = ".lock"
_OUT_OF_TIME = "there was no time left to ask for it"
_NOTHING_KNOWN = "Prometheus has nothing of this run: it does not scrape the run's worker"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run whose load has begun: what to ask for, and up to when there can be anything."""

    scope: Scope
    grid: Grid
    end: float

    @classmethod
    def by(cls, directory: Path) -> "Wanted | None":
        """From the run's journal; None when its load has not begun. Raises Problem when its order is damaged."""
        reader = JournalReader(directory)
        events = [stored.event for stored in reader.events()]
        status = status_of(events)
        if status is None or status.load_start is None:
            return None
        order = RunOrder.model_validate(reader.document(files.ORDER))
        ended = [event.at for event in events if ends_load(event)]
        facts = reader.facts()
        file_system = facts.get("file_system") or {}
        scope = Scope(
            run_id=order.run_id,
            devices=[str(drive["name"]) for drive in facts.get("drives") or ()],
            mount_points=[str(file_system["mount_point"])] if file_system.get("mount_point") else [],
        )
        return cls(scope, Grid.of(status.load_start, order.workload.window), ended[-1] if ended else float("inf"))


def take_home(directory: Path, url: str, until: float, seconds: float) -> Result:
    """Bring home what is missing of the run in `directory` up to the moment `until`, for at most so many `seconds`.

    What could not be asked for stands in the index as a gap, and is asked for again the next time. Raises OSError when
    the journal's disk refuses, and Problem when the journal does not say what run it is of.
    """
    deadline = time.monotonic() + seconds
    wanted = Wanted.by(directory)
    if wanted is None:
        return Result()
    last = wanted.grid.last_point_until(min(until, wanted.end))
    if last < 0:
        return Result()
    home = directory / DIRECTORY
    home.mkdir(exist_ok=True)
    with _alone(home, deadline) as is_alone:
        if not is_alone:
            return Result(missing="another process takes the same telemetry home and does not end")
        remove_unfinished(home)
        return _Taking(home, wanted, last, url, deadline).carry_out()


@contextmanager
def _alone(home: Path, deadline: float) -> Iterator[bool]:
    """Whether nobody else writes here; waits until then. The one before may belong to a worker that died."""
    descriptor = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE_FILE)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    yield False
                    return
                time.sleep(0.05)
            else:
                yield True
                return
    finally:
        os.close(descriptor)


class _Taking:
    """One attempt."""

    def __init__(self, home: Path, wanted: Wanted, last: int, url: str, deadline: float) -> None:
        self._home = home
        self._wanted = wanted
        self._url = url
        self._deadline = deadline
        self._parts = self._known_parts()
        self._last = max([last, *(part.points.last for part in self._parts)])

    def carry_out(self) -> Result:
        taken: list[Part] = []
        reason = ""
        gaps = missing(self._parts, self._last)
        if gaps:
            # Before anything is asked: should this process be killed, the index already says what is not there.
            self._write_index("it was being asked for when the process ended")
            try:
                prometheus = Prometheus(self._url, self._deadline)
                try:
                    self._take(prometheus, gaps, taken)
                finally:
                    prometheus.close()
            except Unanswered as error:
                reason = str(error)
        self._write_index(reason)
        rows = sum(part.rows for part in taken)
        if not reason and taken and rows == 0:
            reason = _NOTHING_KNOWN
        return Result(rows, len(taken), reason)

    def _take(self, prometheus: Prometheus, gaps: list[Points], taken: list[Part]) -> None:
        # A range of one step holds each sample once: before version 3 both of its ends are within it, from then on one.
        step = self._wanted.grid.step_milliseconds
        queries = self._wanted.scope.queries(step - 1 if prometheus.major_version() < 3 else step)
        for points in _in_pieces(gaps):
            answers = [(series, self._ask(prometheus, query, points)) for series, query in queries]
            # Names of files that are there and cannot be read are taken, too.
            name = next_name(part_names(self._home))
            part = write_part(self._home, name, table_of(answers), self._wanted.grid, points)
            self._parts.append(part)
            taken.append(part)

    def _ask(self, prometheus: Prometheus, query: str, points: Points) -> list[Answer]:
        if time.monotonic() > self._deadline:
            raise Unanswered(_OUT_OF_TIME)
        grid = self._wanted.grid
        first, last = grid.milliseconds(points.first), grid.milliseconds(points.last)
        return prometheus.query_range(query, first, last, grid.step_milliseconds)

    def _known_parts(self) -> list[Part]:
        """From the index; of parts that it does not know, from themselves. One of another grid does not count."""
        try:
            index = Index.read(self._home)
        except Unreadable:
            index = None
        listed = {}
        if index is not None and index.grid == self._wanted.grid:
            listed = {part.file: part for part in index.parts}
        known = []
        for name in part_names(self._home):
            if name in listed:
                known.append(listed[name])
                continue
            try:
                grid, part = describe_part(self._home / name)
            except Unreadable:
                continue  # asked for again; the reader reports the file
            if grid == self._wanted.grid:
                known.append(part)
        return known

    def _write_index(self, reason: str) -> None:
        holes = tuple(Hole(points, reason) for points in missing(self._parts, self._last))
        parts = tuple(sorted(self._parts, key=lambda part: part.file))
        Index(self._wanted.grid, self._last, parts, holes).write(self._home)


def _in_pieces(gaps: list[Points]) -> Iterator[Points]:
    for gap in gaps:
        for first in range(gap.first, gap.last + 1, PART_POINTS):
            yield Points(first, min(first + PART_POINTS - 1, gap.last))


def table_of(answers: list[tuple[Series, list[Answer]]]) -> pa.Table:
    """The rows of a part, those of one labelled series after another, each in order of time."""
    names = [series.name for series, _ in answers]
    labels: dict[str, int] = {}
    of_series: list[int] = []
    of_labels: list[int] = []
    counts: list[int] = []
    times = [np.empty(0, dtype=np.int64)]
    values = [np.empty(0, dtype=np.float64)]
    for number, (_, found) in enumerate(answers):
        for answer in found:
            of_series.append(number)
            text = json.dumps(answer.labels, sort_keys=True, separators=(",", ":"))
            of_labels.append(labels.setdefault(text, len(labels)))
            counts.append(len(answer.times))
            times.append(answer.times)
            values.append(answer.values)

    def column(codes: list[int], words: list[str]) -> pa.DictionaryArray:
        repeated = np.repeat(np.asarray(codes, dtype=np.int32), counts)
        return pa.DictionaryArray.from_arrays(pa.array(repeated, pa.int32()), pa.array(words, pa.string()))

    columns = [
        pa.array(np.concatenate(times) / 1000),
        column(of_series, names),
        column(of_labels, list(labels)),
        pa.array(np.concatenate(values)),
    ]
    return pa.table(columns, schema=SCHEMA)
