"""Read elbencho's `--livecsv FILE`: a line for each `--liveint` milliseconds, of each phase from its own start.

Columns are known by the header; only lines of all workers together (`Total`) are read. Rates and mean latencies are
those since the line before and have no decimals. Bytes and entries are since the phase began. Release 2.3.1 and later
write latencies, 3.0.19 and later dates.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, pairwise

from cliffwatch.analysis.table import END_COLUMN
from cliffwatch.labs.outputs.rows import (
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    require_total,
    rows_of_intervals,
)

_MARK = "Phase,RuntimeMS,Rank,MixType,"
_NEEDED = ("Phase", "RuntimeMS", "Rank", "MixType", "DoneBytes", "MiB/s", "IOPS", "Entries", "Entries/s")
_IO, _ENTRY = "Lat IO us", "Lat Ent us"
_DATE, _ALL = "ISO Date", "Total"
_DATED = re.compile(r"\d{4}-\d\d-\d\dT")
_MEBIBYTE = 1024 * 1024
_REMEDY = "give the file as it is"


@dataclass(slots=True)
class _Moment:
    """Lines of one time: `end` in seconds by the clock of the file; figures of each kind of a mix, by column."""

    line: int
    end: float
    phase: str
    mixed: dict[str, dict[str, float]] = field(default_factory=dict)


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_MARK in line for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read live statistics. Raises BadLineError for a line that cannot be read, and where sums differ from rates."""
    moments: list[_Moment] = []
    names: list[str] = []
    offset, runtime = 0.0, 0.0
    for number, line in enumerate(lines, start=1):
        if _MARK in line:
            names = _names(number, line)
            continue
        is_own = f",{_ALL}," in line or line.count(",") == len(names) - 1 or (_DATE in names and _DATED.match(line))
        if not names or not is_own:
            continue
        texts = dict(zip(names, line.strip().split(","), strict=False))
        if texts.get("Rank", _ALL) != _ALL:
            continue
        phase, mix, figures, date = _fields(number, texts, len(names) == line.strip().count(",") + 1)
        seconds = figures["RuntimeMS"] / 1000
        if moments and phase == moments[-1].phase and seconds == runtime and mix not in moments[-1].mixed:
            moments[-1].mixed[mix] = figures
            continue
        # Without dates, a phase is taken to begin where the last one ended.
        offset += runtime if moments and (phase != moments[-1].phase or seconds < runtime) else 0.0
        runtime = seconds
        moments.append(_Moment(number, offset + seconds if date is None else date, phase, {mix: figures}))
    return _reading(moments, has_dates=_DATE in names)


def _names(number: int, line: str) -> list[str]:
    names = line.strip().split(",")
    if missing := [name for name in _NEEDED if name not in names]:
        raise BadLineError(number, f"is a header without {', '.join(missing)}; {_REMEDY}")
    if _IO not in names or _ENTRY not in names:
        what = "is a header without latencies, which elbencho before 2.3.1 does not write"
        raise BadLineError(number, f"{what}; run a later release, or `iostat -x -t 1` beside it")
    return names


def _fields(number: int, texts: dict[str, str], is_whole: bool) -> tuple[str, str, dict[str, float], float | None]:
    """Phase, kind of a mix, figures by column, and the date in seconds since the epoch if there is one."""
    try:
        if not is_whole:
            raise ValueError
        figures = {name: float(int(texts[name])) for name in (*_NEEDED[4:], "RuntimeMS", _IO, _ENTRY)}
        date = datetime.fromisoformat(texts[_DATE]).timestamp() if _DATE in texts else None
    except (ValueError, OverflowError) as error:
        what = f"{','.join(texts.values())[:60]!r} does not have the fields of the header"
        raise BadLineError(number, f"{what}; remove it if it was cut off") from error
    return texts["Phase"].lower().replace(" ", "_"), texts["MixType"].lower(), figures, date


def _reading(moments: list[_Moment], *, has_dates: bool) -> Reading:
    said = [
        Progress(later.line, later.end, _numbers(later, None if earlier.phase != later.phase else earlier))
        for earlier, later in pairwise([_Moment(0, 0.0, ""), *moments])
    ]
    rows = rows_of_intervals(said)
    if not rows:
        return Reading([])
    usual = sorted(row.numbers[END_COLUMN] - row.at for row in rows)[len(rows) // 2]
    phases = [list(found) for _, found in groupby(moments, key=lambda each: each.phase)]
    for each in phases:
        for mix in each[-1].mixed:
            _require_sums(each, mix, usual)
    rates = ((row.numbers.get(RATE_COLUMN, 0.0), row.numbers[END_COLUMN] - row.at) for row in rows)
    remark = "Latencies are means, in whole microseconds."
    if len(phases) > 1 and not has_dates:
        remark += " The file has no dates: a phase counts as begun where the one before it ended."
    return Reading(rows, operations=round(sum(rate * seconds for rate, seconds in rates)), remark=remark)


def _numbers(moment: _Moment, earlier: _Moment | None) -> dict[str, float]:
    """Figures of a moment. A rate that was rounded down to 0 is left out."""
    numbers: dict[str, float] = {}
    operations, is_rounded = 0.0, False
    for mix, figures in moment.mixed.items():
        prefix = f"{moment.phase}.{mix}." if mix else f"{moment.phase}."
        before = earlier.mixed.get(mix, {}) if earlier is not None else {}
        has_gone_on = any(figures[name] > before.get(name, 0.0) for name in ("DoneBytes", "Entries"))
        rate = figures["IOPS"] or figures["Entries/s"]
        operations, is_rounded = operations + rate, is_rounded or (not rate and has_gone_on)
        for column, name, counted in ((f"{prefix}mean", _IO, "IOPS"), (f"{prefix}entry.mean", _ENTRY, "Entries/s")):
            if figures[name] or figures[counted]:
                numbers[column] = figures[name] / 1e6
    return numbers | ({} if is_rounded and not operations else {RATE_COLUMN: operations})


def _require_sums(moments: list[_Moment], mix: str, usual: float) -> None:
    """`require_total` of bytes and entries of a phase, for what its rates add up to. Raises BadLineError."""
    found = [(each, each.mixed[mix]) for each in moments if mix in each.mixed]
    for what, rate, total, unit in (
        ("bytes", "MiB/s", "DoneBytes", _MEBIBYTE),
        ("entries", "Entries/s", "Entries", 1),
    ):
        summed, counted, time = 0.0, 0.0, 0.0
        for (earlier, before), (later, after) in pairwise(found):
            seconds = later.end - earlier.end
            # Between lines that are absent, the rate of the later one is not that of all the time.
            if seconds <= 1.5 * usual:
                summed += after[rate] * unit * seconds
                counted += after[total] - before[total]
                time += seconds
        # Rates are rounded down, and are of a time that is read a little later than the sum.
        slack = unit * time + 2 * unit * max(figures[rate] for _, figures in found) * usual
        require_total(found[-1][0].line, what, max(0.0, summed - slack), counted, 2 * slack)
