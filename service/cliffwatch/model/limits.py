"""Limits of a workload, such as `p99 <= 20ms over any 10m`: syntax and parser."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.base.units import parse_duration, parse_size
from cliffwatch.model.part_names import PART_NAME

#: What a limit on findings may exclude; `degradation` is any of them.
EXCLUDABLE = ("cliff", "stall", "shortfall", "step", "drift", "spikes", "recurring", "degradation")


QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1.0}
#: Measure of a latency that is no quantile.
MEAN = "mean"
#: Part of a limit on each part of a run.
ANY_PART = "*"


_NUMBER = r"(?P<bound>\d+(?:\.\d+)?\s*[A-Za-zµ/%]*)"


_OVER = r"(?:\s+over\s+any\s+(?P<over>\S+))?"


_PART = rf"(?:\s+of\s+(?:part\s+(?P<part>{PART_NAME})|(?P<any>any)\s+part))?"


_LATENCY = re.compile(
    r"(?P<measure>p50|p90|p95|p99(?:\.9{1,2})?|max|mean)(?:\s+of\s+(?P<operation>[a-z_]+))?"
    rf"{_PART}\s*<=\s*{_NUMBER}{_OVER}"
)


_ABSENCE = re.compile(r"no\s+(?P<kind>\S+)")


_EXAMPLES = (
    "`p99 <= 20ms over any 10m`, `operations >= 500/s over any 10m`, `errors <= 0.1% over any 10m`, "
    "`throughput >= 100MB/s over any 1h`, `write amplification <= 2` or `no cliff`"
)


class LimitSubject(StrEnum):
    """What a limit is about."""

    LATENCY = "latency"
    AMPLIFICATION = "write_amplification"
    THROUGHPUT = "throughput"
    OPERATIONS = "operations"
    ERRORS = "errors"
    ISOLATED = "isolated"
    RECOVERY = "recovery"
    FINDINGS = "findings"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit as it was written (`text`) and parsed.

    `bound` is in seconds, bytes or operations per second, a ratio, or a number of isolated rises; None for findings, of
    which `kind` must not occur. `measure` is a key of `QUANTILES`, or `MEAN`; `operation` is None for the run's primary
    latency. The limit applies to every span of `over_seconds`, or, if that is None, to the load after its warm-up.
    `part` is the part of the run that it is on, `ANY_PART` for each of them; empty for the run as a whole.
    """

    text: str
    subject: LimitSubject
    bound: float | None = None
    measure: str = ""
    operation: str | None = None
    kind: str = ""
    over_seconds: float | None = None
    part: str = ""

    @property
    def quantile(self) -> float:
        return QUANTILES[self.measure]

    @property
    def is_least(self) -> bool:
        """Whether the bound is the least that the value may be; else it is the most."""
        return self.subject in (LimitSubject.THROUGHPUT, LimitSubject.OPERATIONS)


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
    elif formed := next(((form, match) for form in _FORMS if (match := form.pattern.fullmatch(compact))), None):
        form, match = formed
        found = Limit(compact, form.subject, form.parse(match["bound"], compact))
    elif match := _ABSENCE.fullmatch(compact):
        if match["kind"] not in EXCLUDABLE:
            hint = did_you_mean(match["kind"], EXCLUDABLE) or f"; write `no` and {_any_of(EXCLUDABLE)}"
            raise ValueError(f"{text!r}: {match['kind']!r} is not a finding{hint}")
        return Limit(compact, LimitSubject.FINDINGS, kind=match["kind"])
    else:
        nearest = _nearest(compact)
        raise ValueError(f"{text!r} is not a limit; write {f'`{nearest}`' if nearest else f'one such as {_EXAMPLES}'}")
    written = match.groupdict()
    part, over = ANY_PART if written.get("any") else written.get("part") or "", written.get("over")
    return replace(found, part=part, over_seconds=None if over is None else _span(over, compact))


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


def _operation_rate(text: str, limit: str) -> float:
    count, slash, unit = text.replace(" ", "").partition("/")
    if slash != "/" or unit != "s":
        raise ValueError(f"{limit!r}: {text!r} is not a rate; write operations a second, such as 500/s")
    return _bound(_number, count, limit)


def _share(text: str, limit: str) -> float:
    count, percent, rest = text.replace(" ", "").partition("%")
    if not percent or rest:
        raise ValueError(f"{limit!r}: {text!r} is not a share; write one of all that were due, such as 0.1%")
    return _bound(lambda value: _number(value) / 100, count, limit)


@dataclass(frozen=True, slots=True)
class _Form:
    """Form of a limit that is not on a latency: its pattern, and the parser of its bound."""

    subject: LimitSubject
    pattern: re.Pattern[str]
    parse: Callable[[str, str], float]


def _form(subject: LimitSubject, name: str, sign: str, parse: Callable[[str, str], float], over: str = _OVER) -> _Form:
    return _Form(subject, re.compile(rf"{name}\s*{sign}\s*{_NUMBER}{over}"), parse)


_FORMS = (
    _form(LimitSubject.AMPLIFICATION, "write amplification", "<=", _ratio),
    _form(LimitSubject.THROUGHPUT, f"throughput{_PART}", ">=", _byte_rate),
    _form(LimitSubject.OPERATIONS, f"operations{_PART}", ">=", _operation_rate),
    _form(LimitSubject.ERRORS, f"errors{_PART}", "<=", _share),
    _form(LimitSubject.ISOLATED, "isolated", "<=", _ratio),
    _form(LimitSubject.RECOVERY, "recovery", "<=", _duration, r"\s+after\s+marks"),
)
#: What other tools call the subject of a limit, by the word that is used here.
_SYNONYMS = {
    "operations": r"tps|qps|rps|iops|ops|rate|operations per second|requests|transactions",
    "errors": r"error[ _]rate|error|failures|failed",
    "throughput": r"bandwidth|bw",
    "mean": r"avg|average",
    "max": r"maximum|longest|p100",
    "p50": r"median|med|p\(50\)",
    "p99.99": r"p9999|p\(99\.99\)",
    "p99.9": r"p999|p\(99\.9\)|p99\.5",
    "p99": r"latency|p98|99th|p\(99\)",
    "p95": r"p94|p96|95th|p\(95\)",
    "p90": r"p80|p85|90th|p\(90\)",
}
#: Rewritings of a limit in other tools' words, after its subject: pattern and replacement.
_REWRITINGS = (
    (r"\s*(<=?|>=?|==)\s*", r" \1 "),
    (r"^(\S+) (?:==|<=?) 0$", r"no \1"),
    (rf"^no ({'|'.join(EXCLUDABLE)})s$", r"no \1"),
    (r"^(operations|throughput) (?:<=?|>) ", r"\1 >= "),
    (r"^((?!operations|throughput).+?) (?:<|>=?) ", r"\1 <= "),
    (r"^(operations >= [\d.]+)(?=$| )", r"\1/s"),
    (r"^((?:p[\d.]+|max|mean)(?: of \w+)? <= [\d.]+)(?=$| )", r"\1ms"),
    (r"^(recovery <= \w+)$", r"\1 after marks"),
)


def _nearest(text: str) -> str:
    """The nearest limit to one in other tools' words; empty where there is none."""
    rewritten = text
    for name, words in _SYNONYMS.items():
        rewritten, count = re.subn(rf"^(?:{words})(?=\s*[<>=])", name, text, flags=re.IGNORECASE)
        if count:
            break
    for pattern, replacement in _REWRITINGS:
        rewritten = re.sub(pattern, replacement, rewritten)
    if rewritten == text:
        return ""
    try:
        return parse_limit(rewritten).text
    except ValueError:
        return ""
