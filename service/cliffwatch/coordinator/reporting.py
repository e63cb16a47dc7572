"""Make the report at a run's end. A failure, such as a killed process or a full disk, is recorded and retried."""

import time
from collections.abc import Callable
from pathlib import Path

from cliffwatch.base.retries import growing_pause_seconds
from cliffwatch.journal import EventType, JournalReader
from cliffwatch.journal.conclusion import Conclusion, unanalysed
from cliffwatch.journal.events import found_at_end
from cliffwatch.report.process import make_report

#: Most attempts. They are few, since a journal too large for memory fails each time; pauses between them grow.
ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 15.0
#: How long the report is retried while the disk is full, and the pause between two attempts then.
DISK_PATIENCE_SECONDS = 1800.0
DISK_PAUSE_SECONDS = 10.0


def judge_run(directory: Path, record_event: Callable[..., None], wait: Callable[[float], None]) -> Conclusion:
    """Make the report, with retries, record findings that only the report has, and return its conclusion.

    `wait(seconds)` is called between two attempts.
    """
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
    conclusion = made.conclusion or unanalysed(directory, made.failure)
    known = [stored.event for stored in JournalReader(directory).events()] if conclusion.findings else []
    for event in found_at_end(conclusion.findings, known, time.time()):
        record_event(event.type, event.name, **event.detail)
    return conclusion
