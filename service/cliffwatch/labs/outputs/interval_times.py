"""Times of the intervals in an HdrHistogram log: sections with a clock of their own, and lengths that can be."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import median

from cliffwatch.analysis.journal_series import preferred_latencies
from cliffwatch.base.interval_log import LONGER, LogClock, parse_interval, states_time
from cliffwatch.labs.outputs.rows import BadLineError, went_back

#: Lengths of logs that are added up differ by less than this factor.
_SAME_LENGTH = 1.25
_SHORTEST_SECONDS = 1e-3


@dataclass(frozen=True, slots=True)
class Interval:
    """Interval of one tag of one section, with its start and length in seconds. `section` counts the headers."""

    section: int
    tag: str
    start: float
    length: float
    longest: float
    payload: str
    line: int


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of a file in order of their starts, with remarks on how they were placed."""

    found: list[Interval]
    usual_seconds: float
    remarks: tuple[str, ...]


def read_intervals(lines: Iterable[str]) -> Intervals:
    """Read the intervals of a file. A header with a time, after an interval, begins a section: the log of another run
    or load generator, which is placed by its own time. Raises BadLineError."""
    tracks: dict[tuple[int, str], list[Interval]] = defaultdict(list)
    clock, section, is_placed, has_intervals = LogClock(), 0, True, False
    for number, line in enumerate(lines, start=1):
        if has_intervals and states_time(line):
            clock, section, has_intervals = LogClock(), section + 1, False
        clock.feed(line)
        try:
            read = parse_interval(line)
        except ValueError as error:
            raise BadLineError(number, str(error)) from error
        if read is None:
            continue
        has_intervals = True
        is_placed = is_placed and clock.places(read.start)
        if section and not is_placed:
            what = "is of a second log in the file, and one of them has no StartTime"
            raise BadLineError(number, f"{what}; give the output of one run at a time")
        track = tracks[section, read.tag]
        one = Interval(section, read.tag, clock.moment(read.start), read.length, read.longest, read.payload, number)
        if track and one.start <= track[-1].start:
            raise went_back((track[-1].line, track[-1].start), (number, one.start))
        track.append(one)
    remarks = [] if not section else [f"Its {section + 1} logs were placed by their own start times."]
    mended = {key: _with_lengths(track) for key, track in tracks.items()}
    if any(is_mended for _, is_mended in mended.values()):
        remarks.append(
            "Intervals end after the next one begins: the distance of their starts was taken for their length."
        )
    tags = {tag for _, tag in mended}
    counted = preferred_latencies(tags)
    if twins := sorted(tags.difference(counted)):
        remarks.append(f"{', '.join(twins)} has the same operations from when they began, and is left out.")
    kept = {key: [each for each in track if each.length > 0] for key, (track, _) in mended.items() if key[1] in counted}
    _require_same_lengths([track for track in kept.values() if track])
    found = sorted((each for track in kept.values() for each in track), key=lambda each: each.start)
    return Intervals(found, median([each.length for each in found] or [1.0]), tuple(remarks))


def _with_lengths(track: list[Interval]) -> tuple[list[Interval], bool]:
    """Replace lengths that cannot be; returns whether there were any. Some writers state the interval's end instead:
    then an interval ends after the next one of its tag begins, and no length of that log is believed."""
    distances = [later.start - earlier.start for earlier, later in pairwise(track)]
    if min(distances, default=1.0) < _SHORTEST_SECONDS:
        raise BadLineError(track[0].line, "is of a log whose intervals are shorter than 1 ms; give longer ones")
    if not any(each.length > LONGER * distance for each, distance in zip(track, distances, strict=False)):
        return track, False
    usual = median(distances)
    return [
        replace(each, length=min(each.length, distance, usual))
        for each, distance in zip(track, [*distances, usual], strict=True)
    ], True


def _require_same_lengths(tracks: list[list[Interval]]) -> None:
    """Raise BadLineError where tags or logs of the same time have intervals of different lengths: they cannot be added
    up, interval by interval."""
    for one, other in combinations(tracks, 2):
        lengths = sorted(median(each.length for each in track) for track in (one, other))
        if one[0].start < other[-1].start and other[0].start < one[-1].start and lengths[1] > _SAME_LENGTH * lengths[0]:
            what = f"is of intervals of {lengths[1]:g} s, beside others of {lengths[0]:g} s"
            raise BadLineError(other[0].line, f"{what}; give the output of one load generator at a time")
