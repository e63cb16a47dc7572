"""Make the report at a run's end. It is retried when its process was killed or the disk full; a failure is recorded."""

import time
from collections.abc import Callable
from pathlib import Path

from cliffwatch.base.retries import growing_pause_seconds
from cliffwatch.journal import EventType, JournalReader
from cliffwatch.journal.conclusion import Conclusion, unanalysed
from cliffwatch.journal.events import found_at_end
from cliffwatch.report.process import make_report

#: A journal that is too much for the program's memory is so each time, so attempts are few; pauses between them grow.
ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 15.0
#: A disk without room is given this long to be freed, and looked at this often.
DISK_PATIENCE_SECONDS = 1800.0
DISK_PAUSE_SECONDS = 10.0


def judge_run(directory: Path, record_event: Callable[..., None], wait: Callable[[float], None]) -> Conclusion:
    """Make the report, with retries, and record the findings that only it has.

    `wait` is called with seconds between two attempts.
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
