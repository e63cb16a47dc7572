"""Limits on a quotient of counters: throughput, operations per second, share of errors."""

from collections.abc import Callable
from dataclasses import dataclass

from cliffwatch.base.units import format_rare_share
from cliffwatch.journal import JournalWindow
from cliffwatch.model.limits import LimitSubject
from cliffwatch.report.format import byte_rate, rate


@dataclass(frozen=True, slots=True)
class Quotient:
    """Value of a limit over a span: the sum of `over` by the sum of `under` of its windows; `show` formats it.

    `counter` is the counter without which it cannot be judged, `absent` the reason for that.
    """

    over: Callable[[JournalWindow], float]
    under: Callable[[JournalWindow], float]
    show: Callable[[float | None], str]
    counter: str
    absent: str


def _errors(window: JournalWindow) -> float:
    """Operations of a window that failed, or were due and skipped."""
    return window.counters.get("errors", 0) + window.counters.get("skipped", 0)


def _share_text(share: float | None) -> str:
    return "–" if share is None else format_rare_share(share)


QUOTIENTS = {
    LimitSubject.THROUGHPUT: Quotient(
        lambda window: window.counters.get("bytes", 0),
        lambda window: window.seconds,
        byte_rate,
        "bytes",
        "the engine counts no bytes",
    ),
    LimitSubject.OPERATIONS: Quotient(
        lambda window: window.counters.get("operations", 0),
        lambda window: window.seconds,
        rate,
        "operations",
        "the engine counts no operations",
    ),
    LimitSubject.ERRORS: Quotient(
        _errors,
        lambda window: window.counters.get("operations", 0) + _errors(window),
        _share_text,
        "errors",
        "the engine counts no errors",
    ),
}
