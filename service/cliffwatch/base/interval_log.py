"""Lines of HdrHistogram interval logs: intervals of `[Tag=…,]start,length,longest,HISTFAAA…`, and their clock."""

import re
from dataclasses import dataclass

_NUMBER = r"\d{1,15}(?:\.\d{1,9})?"
_LINE = re.compile(
    rf"(?:Tag=(?P<tag>[^,]*),)?(?P<start>{_NUMBER}),(?P<length>{_NUMBER}),(?P<longest>{_NUMBER}),(?P<payload>HIST\S+)"
)
_TIME = re.compile(rf"#\[(?P<name>StartTime|BaseTime): (?P<seconds>{_NUMBER})")
_COMMENT = ("#", '"StartTimestamp"', "StartTimestamp")
#: Starts above this are seconds since the epoch; also of a log with a base, since no log is years long.
_EPOCH_FROM = 1e8
_YEAR_SECONDS = 365 * 86_400
#: An interval that is longer than this many times the distance to the next one of its tag ends after that begins.
LONGER = 1.1


@dataclass(frozen=True, slots=True)
class IntervalLine:
    """An interval as its line states it: start and length in seconds, the longest latency in a unit of its own."""

    tag: str
    start: float
    length: float
    longest: float
    payload: str


def parse_interval(line: str) -> IntervalLine | None:
    """Parse a line; None for a comment, the line of column names and an empty line. Raises ValueError."""
    text = line.strip()
    if not text or text.startswith(_COMMENT):
        return None
    found = _LINE.match(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not `start,length,longest,HISTFAAA…`")
    start, length, longest = (float(found[name]) for name in ("start", "length", "longest"))
    return IntervalLine(found["tag"] or "", start, length, longest, found["payload"])


def states_time(line: str) -> bool:
    """Whether a line is a comment with the time at which a log begins."""
    return _TIME.match(line) is not None


class LogClock:
    """Zero of a log's times, from its comments: `[BaseTime: …]` is added to each; so is `[StartTime: …]` to those that
    are no times of that year."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}

    def feed(self, line: str) -> None:
        """Take the time that a comment states; any other line is left out."""
        if found := _TIME.match(line):
            self._times[found["name"]] = float(found["seconds"])

    def places(self, start: float) -> bool:
        """Whether it is known when an interval with this start began."""
        return bool(self._times) or start > _EPOCH_FROM

    def moment(self, start: float) -> float:
        """Seconds since the epoch; without a time in the log, since the log's own zero."""
        if start > _EPOCH_FROM:
            return start
        if "BaseTime" in self._times:
            return start + self._times["BaseTime"]
        begun = self._times.get("StartTime", 0.0)
        return start + begun if start < begun - _YEAR_SECONDS else start
