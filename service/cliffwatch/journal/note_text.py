"""Notes whose detail is not a line of figures, in words: what the command, the report and the pages say of them."""

from collections.abc import Mapping
from typing import Any

from cliffwatch.base.units import format_latency
from cliffwatch.model.operation import Operation

_OPERATIONS = frozenset(operation.value for operation in Operation)


def note_text(name: str, detail: Mapping[str, Any]) -> str | None:
    """One line for such a note; None for any other, and for one whose detail has another shape."""
    if name == "watchers":
        return _watchers(detail)
    if name == "watcher_down" and detail.get("watcher"):
        return f"watcher {detail['watcher']} is down: {detail.get('reason') or 'no reason was recorded'}"
    if name == "watcher_back" and detail.get("watcher"):
        return f"watcher {detail['watcher']} is up again"
    if name == "baseline":
        return _baseline(detail)
    return None


def _watchers(detail: Mapping[str, Any]) -> str | None:
    there, without = detail.get("there"), detail.get("without")
    if not isinstance(there, list) or not isinstance(without, dict):
        return None
    parts = [f"watchers up: {', '.join(map(str, there)) or 'none'}"]
    if without:
        parts.append("unavailable: " + ", ".join(f"{name} ({reason})" for name, reason in without.items()))
    return "; ".join(parts)


def _baseline(detail: Mapping[str, Any]) -> str | None:
    levels = detail.get("levels")
    if not isinstance(levels, dict):
        return None
    latencies = [
        f"{name.replace('.', ' ')} {format_latency(level)}"
        for name, level in levels.items()
        if name.partition(".")[0] in _OPERATIONS and isinstance(level, int | float)
    ]
    return f"baseline: {', '.join(latencies)}" if latencies else None
