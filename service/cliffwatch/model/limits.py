"""Limits of a workload, such as `p99 <= 20ms over any 10m`: syntax and parser."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.base.units import parse_duration, parse_size

#: What a limit on findings may exclude; `degradation` is any of them.
EXCLUDABLE = ("cliff", "stall", "shortfall", "step", "drift", "spikes", "recurring", "degradation")


QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1.0}


_NUMBER = r"(?P<bound>\d+(?:\.\d+)?\s*[A-Za-zµ/]*)"


_OVER = r"(?:\s+over\s+any\s+(?P<over>\S+))?"


_LATENCY = re.compile(
    rf"(?P<measure>p50|p90|p99(?:\.9{{1,2}})?|max)(?:\s+of\s+(?P<operation>[a-z_]+))?\s*<=\s*{_NUMBER}{_OVER}"
)


_AMPLIFICATION = re.compile(rf"write amplification\s*<=\s*{_NUMBER}{_OVER}")


_THROUGHPUT = re.compile(rf"throughput\s*>=\s*{_NUMBER}{_OVER}")


_ABSENCE = re.compile(r"no\s+(?P<kind>\S+)")


_EXAMPLES = "`p99 <= 20ms over any 10m`, `throughput >= 100MB/s over any 1h`, `write amplification <= 2` or `no cliff`"


class LimitSubject(StrEnum):
    """What a limit is about."""

    LATENCY = "latency"
    AMPLIFICATION = "write_amplification"
    THROUGHPUT = "throughput"
    FINDINGS = "findings"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit as it was written (`text`) and parsed.

    `bound` is in seconds, bytes per second, or a ratio; None for findings, of which `kind` must not occur. `measure` is
    a key of `QUANTILES`; `operation` is None for the run's primary latency. The limit applies to every span of
    `over_seconds`, or, if that is None, to the whole load after its warm-up.
    """

    text: str
    subject: LimitSubject
    bound: float | None = None
    measure: str = ""
    operation: str | None = None
    kind: str = ""
    over_seconds: float | None = None

    @property
    def quantile(self) -> float:
        return QUANTILES[self.measure]


def limit_text(value: object) -> object:
    """Return the value. Raises ValueError, with an example, for a limit that is written as a mapping."""
    if isinstance(value, dict):
        raise ValueError(f"a limit is one line of text, not a mapping; write one such as {_EXAMPLES}")
    return value


def limit_list(value: object) -> object:
    """Return the value. Raises ValueError, with an example, for limits that are not a list."""
    if isinstance(value, str):
        raise ValueError(f"a list is needed, also for one limit; write [{value!r}]")
    if isinstance(value, dict):
        raise ValueError(f"limits are a list, not a mapping; write each as one line of text, such as {_EXAMPLES}")
    return value


def parse_limit(text: str) -> Limit:
    """A limit from its text. Raises ValueError that says what would be right."""
    compact = " ".join(text.split())
    if match := _LATENCY.fullmatch(compact):
        bound = _duration(match["bound"], compact)
        found = Limit(compact, LimitSubject.LATENCY, bound, match["measure"], match["operation"])
    elif match := _AMPLIFICATION.fullmatch(compact):
        found = Limit(compact, LimitSubject.AMPLIFICATION, _ratio(match["bound"], compact))
    elif match := _THROUGHPUT.fullmatch(compact):
        found = Limit(compact, LimitSubject.THROUGHPUT, _byte_rate(match["bound"], compact))
    elif match := _ABSENCE.fullmatch(compact):
        if match["kind"] not in EXCLUDABLE:
            hint = did_you_mean(match["kind"], EXCLUDABLE) or f"; write `no` and {_any_of(EXCLUDABLE)}"
            raise ValueError(f"{text!r}: {match['kind']!r} is not a finding{hint}")
        return Limit(compact, LimitSubject.FINDINGS, kind=match["kind"])
    else:
        raise ValueError(f"{text!r} is not a limit; write one such as {_EXAMPLES}")
    over = match["over"]
    if over is None:
        return found
    return Limit(compact, found.subject, found.bound, found.measure, found.operation, over_seconds=_span(over, compact))


def _duration(text: str, limit: str) -> float:
    """Parse a duration into seconds; `us` and `µs` too, which no other duration of a workload needs."""
    compact = text.replace(" ", "")
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)(?:us|µs)", compact):
        return _bound(lambda amount: float(amount) / 1e6, match[1], limit)
    return _bound(parse_duration, compact, limit)


def _span(text: str, limit: str) -> float:
    return _bound(parse_duration, text, limit, "over any ")


def _ratio(text: str, limit: str) -> float:
    return _bound(_number, text, limit)


def _byte_rate(text: str, limit: str) -> float:
    size, slash, unit = text.replace(" ", "").partition("/")
    if slash != "/" or unit != "s":
        raise ValueError(f"{limit!r}: {text!r} is not a rate; write a size a second, such as 100MB/s")
    return _bound(parse_size, size, limit)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a number; write a ratio such as 2 or 1.5") from error


def _bound(parse: Callable[[str], float], text: str, limit: str, place: str = "") -> float:
    """Parse `text` with `parse` into a bound above zero; errors name the `limit` and the `place` in it."""
    try:
        value = float(parse(text))
    except ValueError as error:
        raise ValueError(f"{limit!r}: {place}{error}") from error
    if value <= 0:
        raise ValueError(f"{limit!r} can never hold; write a bound above zero")
    return value


def _any_of(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
