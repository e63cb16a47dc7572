"""Soaks on a shared machine: over those of the other generators, slow windows at times that are independent.

Single windows of any height, pauses of the whole machine that last equally long each time, and connections that brokers
reset, with and without an event. All of them are healthy: they come by chance, and no oftener than on any shared
machine. Degradations and look-alikes are the other generators' own.
"""

from dataclasses import replace

import numpy as np
from testkit.soaks import heavy, lognormal, queue
from testkit.soaks.soak import Column, Soak

from cliffwatch.analysis.finding import Notice

GENERATORS = (lognormal, queue, heavy)
#: Quantiles that single slow operations raise, and those that a pause of all of them raises.
_TAIL, _ALL = ("p99", "p999", "p9999"), ("p50", "p90", "p99", "p999", "p9999")
_DAY = 8640


def make(seed: int, events: tuple[str, ...] | None = None, healthy: tuple[str, ...] | None = None) -> Soak:
    """Make a soak; `events` and `healthy` are those of the other generators, drawn at random unless given."""
    random = np.random.default_rng((seed, 5))
    base: Soak = GENERATORS[seed % len(GENERATORS)].make(seed, events, healthy)
    columns = {name: column.copy() for name, column in base.columns.items()}
    _slow(random, columns, _TAIL, _times(random, columns, random.uniform(2, 9)), None)
    _slow(random, columns, _ALL, _times(random, columns, random.uniform(0, 4)), float(random.uniform(0.3, 3.0)))
    notices = list(base.notices)
    for at in _times(random, columns, random.uniform(0, 2)):
        _reset(random, columns, at)
        if random.random() < 0.5:
            notices.append(Notice(float(base.times[at]), "connection reset"))
    return replace(
        base, generator="shared", columns=columns, notices=tuple(sorted(notices, key=lambda notice: notice.at))
    )


def _times(random: np.random.Generator, columns: dict[str, Column], per_day: float) -> list[int]:
    """Windows of a Poisson process with a rate a day."""
    count = len(columns["p99"])
    return sorted(random.integers(0, count, random.poisson(per_day * count / _DAY)).tolist())


def _slow(
    random: np.random.Generator,
    columns: dict[str, Column],
    names: tuple[str, ...],
    at: list[int],
    seconds: float | None,
) -> None:
    """Make one or two windows slow: by a factor of 5 to 370 that is drawn each time, or by `seconds` each time."""
    for first in at:
        windows = slice(first, first + int(random.choice([1, 1, 1, 2])))
        factor = float(np.exp(random.uniform(np.log(5), np.log(370))))
        for name in names:
            column = columns[name]
            column[windows] = column[windows] * factor if seconds is None else column[windows] + seconds


def _reset(random: np.random.Generator, columns: dict[str, Column], at: int) -> None:
    """Make windows slow from `at` on, less and less for up to four minutes."""
    length = int(random.integers(2, 24))
    fading = np.exp(-3 * np.arange(length) / length)[: len(columns["p99"]) - at]
    height = float(np.exp(random.uniform(np.log(3), np.log(40))))
    for name in _TAIL:
        columns[name][at : at + length] *= 1 + (height - 1) * fading
