"""The journal of a run: a directory of append-only files, which is authoritative for the run.

    order.json      the run request: run id, workload, target, requester, time
    workload.yaml   the workload as a document that can be submitted again
    facts.json      the environment: kernel, drive, scheduler, file system, versions
    windows.jsonl   one line per window: counters, gauges, percentiles, and where its histograms are in latency.hlog
    latency.hlog    HdrHistogram interval log, one tag per latency name
    events.jsonl    states, phases, engine restarts, gaps, findings, alerts, notes
    worker.json     which process executes the run (pid, start time, boot id) and its last heartbeat
    telemetry/      Prometheus' series of the run, collected before they expire
    imported.json   origin and time of the import, in a run of another service; docs/bundle.md
    report.json, report.html

A window counts once its line in windows.jsonl is on disk: the histograms are written and synced first, so the line is
the commit record. Anything after the last complete line is of the window in progress when a process died.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

#: Modules of the names above, which are imported when a name is used: commands need the names of the files alone, and
#: histograms take half a second to load.
_MODULES = {
    "events": ("Event", "EventLog", "EventType", "ends_load", "moment_in", "number_in"),
    "reader": ("JournalFault", "JournalReader", "StoredEvent"),
    "windows": ("JournalWindow", "WindowLog"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
