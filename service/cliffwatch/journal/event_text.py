"""Text of events, for the command line, the report, the API and the pages.

Each event of the service and its worker has a sentence. Events of engines may have any name and any fields, and are
written field by field.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from cliffwatch.base.units import (
    format_count,
    format_latency,
    format_length,
    format_number,
    format_share,
    format_size,
)
from cliffwatch.journal import files
from cliffwatch.journal.events import ANNOTATED, MARKED, TARGET_DISPLACED, EventType
from cliffwatch.model.operation import Operation
from cliffwatch.model.part_names import PART_NAME
from cliffwatch.model.phase import phase_words
from cliffwatch.model.series_name import series_words

Detail = Mapping[str, Any]

_OPERATIONS = frozenset(operation.value for operation in Operation)
#: Fields of a detail that are not shown, since they are for programs.
_HIDDEN = frozenset({"fingerprint", "labels", "request_digest", "target_key"})
#: Fields that hold moments, in seconds since the epoch.
_MOMENTS = frozenset({"start", "end", "at", "since", "load_start", "load_stop", "starts_at", "ends_at"})
#: Fields with words of a program or a person, or names of files: shown unchanged.
_VERBATIM = frozenset({"command", "error", "io", "line", "message", "path", "reason", "target", "topic", "what", "why"})
_CODE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")
_SERIES = re.compile(r"[a-z0-9_]+\.p\d{2,4}|device\.[a-z_]+(\..+)?")
_GAPS = {
    "engine_died": "the engine died",
    "engine_frozen": "the engine was stopped",
    "engine_restarted": "the engine died and was started again",
    "engine_started_late": "the engine started late",
    "journal_full": "the disk of the journal was full",
    "load_failed": "the load could not go on",
    "not_reported_by_engine": "the engine reported no window",
    "nothing_printed": "the command printed nothing that was measured",
    "worker_frozen": "what reads the engine was stopped",
    "worker_interrupted": "the worker was interrupted",
}
_KINDS = {"latency": "latencies", "counters": "counters", "gauges": "gauges"}


#: Types of events that explain a run's figures, for those who watch it; and names of events of these types that occur
#: in every run, and explain nothing.
EXPLAINING_TYPES = frozenset({"gap", "finding", "alert", "engine", "clock", "journal", "note"})
ROUTINE_EVENTS = frozenset({"started", "exited", "worker_cost", "load_ended", "prepared", "baseline"})


def event_text(event_type: str, name: str, detail: Detail) -> str:
    """Text of an event on one line, without the type: `not measured for 2.5 s: the engine died`.

    In a run with several parts, the text begins with the part: `nvme3n1: the engine exited with status 1`. A detail of
    an unexpected shape, from a damaged journal, is written field by field.
    """
    if re.fullmatch(PART_NAME, str(detail.get("part", ""))):
        own = {field: value for field, value in detail.items() if field != "part"}
        return f"{detail['part']}: {event_text(event_type, name, own)}"
    try:
        if event_type in _BY_TYPE:
            return _BY_TYPE[event_type](name, detail)
        if detail.get("summary"):
            return str(detail["summary"])
        words = _SENTENCES[event_type, name](detail)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        words = None
    return words or _plain(name, detail)


def gap_words(reason: str) -> str:
    """Words for the reason of a gap in the measurement: `engine_died` → `the engine died`."""
    return _GAPS.get(reason, reason.replace("_", " "))


def detail_text(detail: Detail) -> str:
    """Text of a detail on one line, field by field, each value in the unit of its name: `status 1, pause 3.2 s`."""
    parts = []
    for name, item in detail.items():
        if item not in (None, "", [], {}) and name not in _HIDDEN:
            words, text = _field(str(name), item)
            parts.append(f"{words} {text}" if words else text)
    return ", ".join(parts)


def _plain(name: str, detail: Detail) -> str:
    return ": ".join(filter(None, (name.replace("_", " "), detail_text(detail))))


def _field(name: str, item: Any) -> tuple[str, str]:
    """A field's name and its value in words."""
    is_number = isinstance(item, int | float) and not isinstance(item, bool) and not _is_beyond_measure(item)
    if is_number and name in _MOMENTS and 0 <= item <= files.LAST_MOMENT:
        return name.replace("_", " "), datetime.fromtimestamp(item, UTC).strftime("%H:%M:%S UTC")
    if is_number:
        for unit, show in _UNITS.items():
            # A whole number in a `_ratio` is from the kernel, in per cent already.
            if name.endswith(unit) and not (unit == "ratio" and isinstance(item, int)):
                return name.removesuffix(unit).strip("_").replace("_", " "), show(item)
    return series_words(name), _value(name, item)


def _value(name: str, item: Any) -> str:
    if isinstance(item, bool):
        return "yes" if item else "no"
    if _is_beyond_measure(item):
        return "a number beyond measure"
    if isinstance(item, int):
        return format_count(item)
    if isinstance(item, float):
        return format_number(item)
    if isinstance(item, Mapping):
        pairs = (_field(str(key), inner) for key, inner in item.items())
        return " ".join(f"{words} {text}".strip() for words, text in pairs)
    if isinstance(item, list | tuple):
        return " ".join(_value(name, inner) for inner in item)
    text = str(item)
    if name in _VERBATIM:
        return text
    if _SERIES.fullmatch(text):
        return series_words(text)
    return text.replace("_", " ") if _CODE.fullmatch(text) else text


def _is_beyond_measure(item: object) -> bool:
    """Whether a whole number is too large for a floating-point number."""
    return isinstance(item, int) and item.bit_length() > 1000


def _length(seconds: float) -> str:
    return format_latency(seconds) if seconds < 60 else format_length(round(seconds))


_UNITS: dict[str, Callable[[float], str]] = {
    "bytes": format_size,
    "milliseconds": lambda value: _length(value / 1000),
    "seconds": _length,
    "ratio": format_share,
}


def _moment(seconds: float) -> str:
    return _field("at", seconds)[1]


def _state(name: str, detail: Detail) -> str:
    about = detail.get("verdict") if name == "finished" else detail.get("reason")
    if name == "stopping" and detail.get("force"):
        about = "killed without finishing the window"
    return f"{name}: {about}" if about else name


def _gap(name: str, detail: Detail) -> str:
    why = gap_words(name)
    seconds = detail.get("seconds")
    return f"not measured for {_length(seconds)}: {why}" if isinstance(seconds, int | float) else f"not measured: {why}"


def _alert(name: str, detail: Detail) -> str:
    """Text of an alert: its summary, and what the description adds."""
    about = dict.fromkeys(str(detail[key]).strip() for key in ("summary", "description") if detail.get(key))
    sentences = [text if text.endswith((".", "!", "?")) else f"{text}." for text in about]
    over = "over" if detail.get("status") == "resolved" else ""
    said = " ".join(sentences)
    return f"{name}: {'; it said: '.join(filter(None, (over, said)))}" if over or said else name


def _finding(name: str, detail: Detail) -> str:
    return str(detail.get("summary") or _plain(name, detail))


def _watchers(detail: Detail) -> str | None:
    there, without = detail["there"], detail["without"]
    if not isinstance(there, list) or not isinstance(without, dict):
        return None
    parts = [f"watchers up: {', '.join(_watcher(each) for each in there) or 'none'}"]
    if without:
        missing = (f"{_watcher(name)} ({reason})" for name, reason in without.items())
        parts.append("unavailable: " + ", ".join(missing))
    return "; ".join(parts)


def _watcher(name: object) -> str:
    return str(name).replace("_", " ")


def _watcher_down(detail: Detail) -> str:
    return f"watcher {_watcher(detail['watcher'])} is down: {detail.get('reason') or 'no reason was recorded'}"


def _baseline(detail: Detail) -> str | None:
    latencies = [
        f"{series_words(name)} {format_latency(level)}"
        for name, level in detail["levels"].items()
        if name.partition(".")[0] in _OPERATIONS and isinstance(level, int | float)
    ]
    return f"baseline: {', '.join(latencies)}" if latencies else None


def _left_behind(detail: Detail) -> str:
    where = f" in {detail['path']}" if detail["path"] else ""
    return f"files of the run were left behind{where}: {detail['message']}"


def _worker_cost(detail: Detail) -> str:
    memory = format_size(detail["max_resident_bytes"])
    return f"the worker used {_length(detail['cpu_seconds'])} of CPU time and {memory} of memory"


def _exited(detail: Detail) -> str:
    end = f", load {detail['end']}" if detail.get("end") else ""
    return f"the engine exited with status {detail['status']}{end}"


def _load_ended(detail: Detail) -> str:
    why = detail.get("message")
    return f"the load {_ENDS[detail['how']]}" + (f": {why}" if why else "")


def _disk_was_full(detail: Detail) -> str:
    return f"the disk of the journal was full for {_length(detail['seconds'])}; windows lost: {detail['lost']}"


def _windows_damaged(detail: Detail) -> str:
    return f"lines of windows.jsonl are damaged; {format_size(detail['kept_bytes'])} of histograms are kept"


def _flushed(detail: Detail) -> str:
    others = {name: item for name, item in detail.items() if name != "seconds"}
    moved = detail_text(others)
    return f"drive caches flushed in {_length(detail['seconds'])}" + (f": {moved}" if moved else "")


_BY_TYPE: dict[str, Callable[[str, Detail], str]] = {
    EventType.ALERT: _alert,
    EventType.FINDING: _finding,
    EventType.GAP: _gap,
    EventType.PHASE: lambda name, _: phase_words(name),
    EventType.STATE: _state,
}


def _annotated(detail: Detail) -> str:
    labels, note = detail["labels"], " ".join(detail["note"].split())
    # Events of earlier versions do not say what changed: all annotations are shown.
    every = [*(f"labels.{name}" for name in labels), "pinned", *(["note"] if note else [])]
    changed = detail.get("changed", every)
    names = [name.removeprefix("labels.") for name in changed if name.startswith("labels.")]
    said = [f"label {name}={labels[name]}" if name in labels else f"label {name} removed" for name in names]
    if "pinned" in changed:
        said.append("pinned" if detail["pinned"] else "not pinned")
    if "note" in changed:
        said.append(f"note: {note}" if note else "note removed")
    return f"{detail['by']} annotated the run: {'; '.join(said) or 'nothing new'}"


_SENTENCES: dict[tuple[str, str], Callable[[Detail], str | None]] = {
    ("clock", "machine_suspended"): lambda it: (
        f"the machine was suspended for {_length(it['seconds'])}; the run goes on"
    ),
    ("clock", "wall_clock_jumped"): lambda it: f"the wall clock jumped by {it['seconds']:+g} s",
    ("device", "directory_claimed"): lambda it: f"the run's files go to {it['path']} ({it['directory']})",
    ("device", "flushed"): _flushed,
    ("engine", "begun"): lambda it: f"the load began at {_field('start', it['start'])[1]}",
    ("engine", "cannot_end"): lambda it: f"{it['what']} was killed and does not end",
    ("engine", "checkpoint_begun"): lambda it: (
        "the server began a checkpoint" + (", which the amount of WAL asked for" if it["requested"] else "")
    ),
    ("engine", "checkpoint_completed"): lambda it: (
        f"the server completed a checkpoint, which took {_length(it['seconds'])}"
    ),
    ("engine", "died"): lambda it: f"the engine died: {it['message']}; restarts so far: {it['restarts']}",
    ("engine", "events_dropped"): lambda it: f"events left out: {it['count']:,} of {_value('of', it['of'])}",
    ("engine", "exited"): _exited,
    ("engine", "frozen"): lambda it: f"the engine has been stopped since {_field('since', it['since'])[1]}",
    ("engine", "killed"): lambda it: f"the engine was killed: it {it['reason']}",
    ("engine", "load_ended"): _load_ended,
    ("engine", "metrics_missing"): lambda it: f"the system's metrics could not be read: {it['reason']}",
    ("engine", "metrics_resumed"): lambda _: "the system's metrics are read again, and windows missed are made up for",
    ("engine", "nothing_printed"): lambda it: f"no line of the command reports this window: {it['message']}",
    ("engine", "prepared"): lambda it: f"the target was prepared in {_length(it['seconds'])}",
    ("engine", "silent"): lambda it: (
        f"the engine has reported nothing since {_field('since', it['since'])[1]}, and waits: {it['what']}"
    ),
    ("engine", "started"): lambda it: (
        f"the engine was started: {shlex.join(it['command'])}" if "command" in it else "the engine was started again"
    ),
    ("engine", "window_dropped"): lambda it: f"a window with the engine stopped was not kept: {detail_text(it)}",
    ("engine", "worker_cost"): _worker_cost,
    ("journal", "disk_was_full"): _disk_was_full,
    ("journal", "file_displaced"): lambda it: f"{it['file']} was taken out of the journal, and is begun again",
    ("journal", "window_in_progress_discarded"): (
        lambda it: f"the window in progress was discarded ({format_size(it['bytes'])})"
    ),
    ("journal", "window_refused"): lambda it: f"a window could not be stored: {it['message']}",
    ("journal", "windows_damaged"): _windows_damaged,
    ("note", ANNOTATED): _annotated,
    ("note", MARKED): lambda it: (
        f"marked from {_moment(it['start'])} to {_moment(it['end'])}: {it['message']}"
        + (f"; after the load, because: {it['reason']}" if it.get("reason") else "")
    ),
    ("note", "names_limited"): lambda it: (
        f"the run has {it['limit']:,} names of {_KINDS[it['kind']]}: what has another one is not recorded"
    ),
    ("note", "alerts_limited"): lambda it: f"the run has {it['limit']:,} alerts: more that begin are not recorded",
    ("note", "baseline"): _baseline,
    ("note", "detection_failed"): lambda it: f"detection failed: {it['message']}",
    ("note", "drives_clock_off"): lambda it: it["message"],
    ("note", "drives_missing"): lambda it: f"no counters of {', '.join(it['drives'])}: {it['reason']}",
    ("note", "drives_resumed"): lambda _: "the counters of all drives are there again",
    ("note", "files_kept"): lambda it: f"the run's files were kept on {it['target']}",
    ("note", "files_left_behind"): _left_behind,
    ("note", "load_moved"): lambda it: f"the load began {_length(it['seconds'])} later than planned",
    ("note", "refused"): lambda it: f"the run was refused: {it['message']}",
    ("note", "report_failed"): lambda it: f"the report could not be made: {it['message']}",
    ("note", "steady_state_not_reached"): lambda it: f"steady state was not reached: {it['why']}",
    ("note", "steady_state_reached"): lambda it: f"steady state was reached after {it['rounds']} rounds",
    ("note", TARGET_DISPLACED): lambda it: f"the target was displaced: {it['message']}",
    ("note", "target_hangs"): lambda it: f"the run waits: {it['what']} of {it['run']} was killed and does not end",
    ("note", "telemetry_missing"): lambda it: f"Prometheus could not be read: {it['reason']}",
    ("note", "telemetry_resumed"): lambda it: f"Prometheus is read again; {format_count(it['rows'])} rows collected",
    ("note", "verdict_mended"): lambda it: f"the run was judged again: {it['verdict']}",
    ("note", "watcher_back"): lambda it: f"watcher {_watcher(it['watcher'])} is up again",
    ("note", "watcher_down"): _watcher_down,
    ("note", "watchers"): _watchers,
    ("note", "worker_killed"): lambda it: f"the worker was killed: {it['reason']}",
}
_ENDS = {
    "completed": "ended as planned",
    "failed": "failed",
    "interrupted": "was interrupted",
    "stopped": "was stopped",
}
