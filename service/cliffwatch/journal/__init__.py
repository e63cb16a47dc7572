"""The journal of a run: a directory of append-only files that is the truth about it.

    order.json      what was asked of whom: run id, workload, target, who asked, when
    workload.yaml   the workload as a document that can be submitted again
    facts.json      what was found: kernel, drive, scheduler, file system, versions
    windows.jsonl   one line a window: counters, gauges, percentiles, and where its histograms stand in latency.hlog
    latency.hlog    HdrHistogram interval log, one tag a latency name
    events.jsonl    states, phases, engine restarts, gaps, findings, alerts, notes
    worker.json     which process executes the run (pid, start time, boot id) and its last heartbeat
    telemetry/      what Prometheus knew about the run, collected before it expires
    imported.json   where a run of another service came from, and when; docs/bundle.md
    report.json, report.html

A window counts once its line in windows.jsonl is on disk: the histograms are written and synced first, so the line is
the commit record. Whatever follows the last complete line was the window in progress when a process died.
"""

from cliffwatch.journal.events import Event, EventLog, EventType, ends_load, moment_in, number_in
from cliffwatch.journal.reader import JournalFault, JournalReader, StoredEvent
from cliffwatch.journal.windows import JournalWindow, WindowLog

__all__ = [
    "Event",
    "EventLog",
    "EventType",
    "JournalFault",
    "JournalReader",
    "JournalWindow",
    "StoredEvent",
    "WindowLog",
    "ends_load",
    "moment_in",
    "number_in",
]
