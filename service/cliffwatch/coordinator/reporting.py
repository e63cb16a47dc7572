"""Make the report at a run's end. It is retried when its process was killed or the disk full; a failure is recorded."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliffwatch.base.retries import growing_pause_seconds
from cliffwatch.journal import EventType, JournalReader
from cliffwatch.journal.events import found_at_end
from cliffwatch.model.run_state import VerdictName
from cliffwatch.report.process import ReportOutcome, make_report

#: A journal that is too much for the program's memory is so each time, so attempts are few; pauses between them grow.
ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 15.0
#: A disk without room is given this long to be freed, and looked at this often.
DISK_PATIENCE_SECONDS = 1800.0
DISK_PAUSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict for the run's finish event. `analysed` is False where what was measured could not be analysed."""

    verdict: VerdictName
    reasons: list[str]
    analysed: bool = True
    #: What the report found, and what was raised while the run went on and is none of it.
    findings: tuple[dict[str, Any], ...] = ()
    unconfirmed: tuple[dict[str, Any], ...] = ()

    def detail(self) -> dict[str, Any]:
        """The detail of the event that finishes the run."""
        detail: dict[str, Any] = {"verdict": self.verdict.value, "reasons": self.reasons}
        detail |= {"findings": list(self.findings)} if self.findings else {}
        detail |= {"unconfirmed": list(self.unconfirmed)} if self.unconfirmed else {}
        return detail if self.analysed else detail | {"analysed": False}


def judge_run(directory: Path, record_event: Callable[..., None], wait: Callable[[float], None]) -> Judgement:
    """Make the report, with retries; `wait` is called with seconds between two attempts."""
    failures, give_up, recorded = 0, time.monotonic() + DISK_PATIENCE_SECONDS, ""
    made = make_report(directory)
    while made.failure:
        if made.failure != recorded:
            record_event(EventType.NOTE, "report_failed", message=made.failure)
        recorded = made.failure
        failures += 1
        if failures < ATTEMPTS:
            pause = growing_pause_seconds(failures, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        elif made.disk_full and time.monotonic() < give_up:
            pause = DISK_PAUSE_SECONDS
        else:
            break
        wait(pause)
        made = make_report(directory)
    known = [stored.event for stored in JournalReader(directory).events()] if made.findings else []
    for event in found_at_end(made.findings, known, time.time()):
        record_event(event.type, event.name, **event.detail)
    return _judgement(directory, made)


def unanalysed(directory: Path, why: str) -> Judgement:
    """Judgement of a run whose report could not be made."""
    reason = f"The analysis could not be made: {why.rstrip('.')}. `cliffwatch run report {directory.name}` makes it."
    return Judgement(VerdictName.INVALID, [reason], analysed=False)


def _judgement(directory: Path, made: ReportOutcome) -> Judgement:
    if made.verdict is None:
        return unanalysed(directory, made.failure)
    return Judgement(made.verdict, list(made.reasons), findings=made.findings, unconfirmed=made.unconfirmed)
