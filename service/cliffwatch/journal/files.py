"""File names of a journal."""

ORDER = "order.json"
WORKLOAD = "workload.yaml"
FACTS = "facts.json"
WINDOWS = "windows.jsonl"
LATENCY = "latency.hlog"
EVENTS = "events.jsonl"
WORKER = "worker.json"
WORKER_LOCK = "worker.lock"
ENGINE_LOG = "engine.log"
IMPORTED = "imported.json"
#: 9999-12-31, the last day that a time can be written of.
LAST_MOMENT = 253_402_300_799.0
REPORT_JSON = "report.json"
REPORT_HTML = "report.html"
REPORT_PNG = "report.png"
