"""File names of a journal."""

from cliffwatch.base import clock

ORDER = "order.json"
WORKLOAD = "workload.yaml"
FACTS = "facts.json"
WINDOWS = "windows.jsonl"
LATENCY = "latency.hlog"
EVENTS = "events.jsonl"
WORKER = "worker.json"
WORKER_LOCK = "worker.lock"
ENGINE_LOG = "engine.log"
#: A directory for each part of a run that has several.
PARTS = "parts"
IMPORTED = "imported.json"
LAST_MOMENT = clock.LAST_MOMENT
REPORT_JSON = "report.json"
REPORT_HTML = "report.html"
REPORT_PNG = "report.png"
