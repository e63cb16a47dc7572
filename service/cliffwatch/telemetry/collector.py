"""Collect a run's series: query Prometheus for the samples that no part holds yet, and store them by interval."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from cliffwatch.base import locks
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.journal import JournalReader, ends_load, files
from cliffwatch.journal.state import status_of
from cliffwatch.model.order import RunOrder
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.catalogue import CollectedSeries, SeriesScope, SeriesSubject
from cliffwatch.telemetry.parts import (
    DIRECTORY,
    SCHEMA,
    Hole,
    Index,
    Part,
    Points,
    SampleGrid,
    UnreadablePart,
    describe_part,
    missing,
    next_name,
    part_names,
    remove_unfinished,
    write_part,
)
from cliffwatch.telemetry.prometheus import Prometheus, PrometheusAnswer, QueryFailed
from cliffwatch.telemetry.result import Result

#: Maximum number of points of one part, so that memory does not grow with the backlog.
PART_POINTS = 360
_LOCK = ".lock"
_OUT_OF_TIME = "the time limit was reached before it was requested"
_NOTHING_KNOWN = "Prometheus has nothing of this run: it does not scrape the run's worker"


@dataclass(frozen=True, slots=True)
class CollectionRequest:
    """What to collect for a run whose load has begun: its series, its grid, and `end`, the time of the last samples."""

    scope: SeriesScope
    grid: SampleGrid
    end: float

    @classmethod
    def by(cls, directory: Path) -> "CollectionRequest | None":
        """Request of a run, from its journal; None before its load begins. Raises Problem if order.json is damaged."""
        reader = JournalReader(directory)
        events = [stored.event for stored in reader.events()]
        status = status_of(events)
        if status is None or status.load_start is None:
            return None
        try:
            order = RunOrder.model_validate(reader.document(files.ORDER))
        except ValidationError as error:
            raise Problem(Code.JOURNAL_UNREADABLE, f"{files.ORDER} is not valid", faults_of(error)) from error
        ended = [event.at for event in events if ends_load(event)]
        facts = reader.facts()
        file_system = facts.get("file_system") or {}
        scope = SeriesScope(
            run_id=order.run_id,
            devices=[str(drive["name"]) for drive in facts.get("drives") or ()],
            drives=order.drives,
            mount_points=[str(file_system["mount_point"])] if file_system.get("mount_point") else [],
        )
        return cls(scope, SampleGrid.of(status.load_start, order.workload.window), ended[-1] if ended else float("inf"))


def collect_telemetry(
    directory: Path,
    server: PrometheusAddress,
    until: float,
    seconds: float,
    named: Callable[[str], PrometheusAddress | None] = lambda _: None,
) -> Result:
    """Collect the missing telemetry of the run in `directory` up to `until` (since the epoch), for at most `seconds`.

    `named(name)` returns the address of a server by its name, for drives whose series `server` does not have; it may
    raise Problem.

    An interval that could not be collected is a gap in the index, and is requested again the next time. Raises OSError
    when the journal's disk cannot be read or written, and Problem when order.json is damaged.
    """
    deadline = time.monotonic() + seconds
    request = CollectionRequest.by(directory)
    if request is None:
        return Result()
    last = request.grid.last_point_until(min(until, request.end))
    if last < 0:
        return Result()
    parts_directory = directory / DIRECTORY
    parts_directory.mkdir(exist_ok=True)
    try:
        # A previous collector may belong to a worker that died.
        lock = locks.hold(parts_directory / _LOCK, max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        return Result(missing="another process collects the same telemetry and does not end")
    try:
        remove_unfinished(parts_directory)
        other = None if request.scope.drives is None else request.scope.drives.server
        of_drives = server if other is None else named(other) or server
        return _Attempt(parts_directory, request, last, server, of_drives, deadline).execute()
    finally:
        os.close(lock)


class _Attempt:
    """One attempt to collect telemetry."""

    def __init__(
        self,
        parts_directory: Path,
        request: CollectionRequest,
        last: int,
        server: PrometheusAddress,
        of_drives: PrometheusAddress,
        deadline: float,
    ) -> None:
        """`of_drives` is the server with the drives' series, and may be the same as `server`, which has all others."""
        self._directory = parts_directory
        self._request = request
        self._server, self._of_drives = server, of_drives
        self._deadline = deadline
        self._parts = self._known_parts()
        self._last = max([last, *(part.points.last for part in self._parts)])

    def execute(self) -> Result:
        taken: list[Part] = []
        reason = ""
        gaps = missing(self._parts, self._last)
        if gaps:
            # Written before the first query: if this process is killed, the index already lists the gaps.
            self._write_index("it was being requested when the process ended")
            try:
                with closing(Prometheus(self._server, self._deadline)) as prometheus:
                    if self._of_drives == self._server:
                        self._take(prometheus, prometheus, gaps, taken)
                    else:
                        with closing(Prometheus(self._of_drives, self._deadline)) as of_drives:
                            self._take(prometheus, of_drives, gaps, taken)
            except QueryFailed as error:
                reason = str(error)
        self._write_index(reason)
        rows = sum(part.rows for part in taken)
        if not reason and taken and rows == 0:
            reason = _NOTHING_KNOWN
        return Result(rows, len(taken), reason)

    def _take(self, prometheus: Prometheus, of_drives: Prometheus, gaps: list[Points], taken: list[Part]) -> None:
        scope = self._request.scope
        ranges = {each: self._range(each) for each in (prometheus, of_drives)}
        asked = [(each, of_drives if each.subject is SeriesSubject.DEVICES else prometheus) for each in scope.series()]
        for points in _in_pieces(gaps):
            answers = [
                (series, scope.own(series, self._ask(server, scope.query(series, ranges[server]), points)))
                for series, server in asked
            ]
            # The names of files that cannot be read are in use, too.
            name = next_name(part_names(self._directory))
            part = write_part(self._directory, name, table_of(answers), self._request.grid, points)
            self._parts.append(part)
            taken.append(part)

    def _range(self, prometheus: Prometheus) -> int:
        """Range of a query in milliseconds, such that each sample is in one step: before Prometheus 3, a range includes
        both of its ends; since then, its start is excluded."""
        step = self._request.grid.step_milliseconds
        return step - 1 if prometheus.major_version() < 3 else step

    def _ask(self, prometheus: Prometheus, query: str, points: Points) -> list[PrometheusAnswer]:
        if time.monotonic() > self._deadline:
            raise QueryFailed(_OUT_OF_TIME)
        grid = self._request.grid
        first, last = grid.milliseconds(points.first), grid.milliseconds(points.last)
        return prometheus.query_range(query, first, last, grid.step_milliseconds)

    def _known_parts(self) -> list[Part]:
        """Parts from the index, or, if not listed there, from their own metadata; parts of another grid are ignored."""
        try:
            index = Index.read(self._directory)
        except UnreadablePart:
            index = None
        listed = {}
        if index is not None and index.grid == self._request.grid:
            listed = {part.file: part for part in index.parts}
        known = []
        for name in part_names(self._directory):
            if name in listed:
                known.append(listed[name])
                continue
            try:
                grid, part = describe_part(self._directory / name)
            except UnreadablePart:
                continue  # its interval is requested again; the reader reports the file
            if grid == self._request.grid:
                known.append(part)
        return known

    def _write_index(self, reason: str) -> None:
        holes = tuple(Hole(points, reason) for points in missing(self._parts, self._last))
        parts = tuple(sorted(self._parts, key=lambda part: part.file))
        Index(self._request.grid, self._last, parts, holes).write(self._directory)


def _in_pieces(gaps: list[Points]) -> Iterator[Points]:
    for gap in gaps:
        for first in range(gap.first, gap.last + 1, PART_POINTS):
            yield Points(first, min(first + PART_POINTS - 1, gap.last))


def table_of(answers: list[tuple[CollectedSeries, list[PrometheusAnswer]]]) -> pa.Table:
    """Rows of a part: one labelled series after the other, each in order of time."""
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
