"""Quantities as people read them: the filters of the report's pages, and the numbers in its sentences."""

from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from cliffwatch.analysis.verdict import percent, span
from cliffwatch.base.units import format_byte_rate, format_count, format_latency, format_rate, format_size
from cliffwatch.journal.note_text import note_text

#: Keys of event details that hold moments, in seconds since the epoch.
_MOMENTS = frozenset({"start", "end", "at", "load_start", "load_stop", "starts_at", "ends_at"})


def marked(text: str) -> Markup:
    """A message that terminals show too, for a page: what stands between two backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


def latency(seconds: float | None) -> str:
    """Three digits and a unit: 0.0123 → `12.3 ms`. A dash where nothing was counted."""
    return "–" if seconds is None else format_latency(seconds)


def duration(seconds: float) -> str:
    """`35h59m50s`; a minus sign for what came before the zero."""
    return f"−{span(-seconds)}" if seconds < 0 else span(seconds)


def elapsed(seconds: float) -> str:
    """A place on the run's time line: `12:03:20`, hours going on past 24."""
    whole = abs(round(seconds))
    sign = "−" if seconds <= -0.5 else ""
    return f"{sign}{whole // 3600:d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def count(number: float) -> str:
    """`1,296,000`; from ten million on `12.96 million`."""
    return format_count(number)


def size(size_bytes: float) -> str:
    return format_size(size_bytes)


def rate(per_second: float | None) -> str:
    return "–" if per_second is None else format_rate(per_second)


def byte_rate(bytes_per_second: float | None) -> str:
    return "–" if bytes_per_second is None else format_byte_rate(bytes_per_second)


def moment(timestamp: str) -> str:
    """`2026-11-21 07:34:13 UTC` of an RFC 3339 timestamp in UTC."""
    return datetime.fromisoformat(timestamp).strftime("%Y-%m-%d %H:%M:%S UTC")


def label(name: str, content: Any = None) -> str:
    """A key or a name as words: `cool_down` → `cool down`. `size_bytes` is `size` where `value` writes its unit."""
    return name.removesuffix(_unit(name, content)).replace("_", " ")


def value(name: str, content: Any) -> str:
    """A plain value as its key's unit says."""
    if isinstance(content, bool):
        return "yes" if content else "no"
    if isinstance(content, int | float):
        unit = _unit(name, content)
        if unit == "_bytes":
            return format_size(content)
        if unit == "_seconds":
            return f"{content:g} s"
        if unit == "_ratio":
            return percent(content)
        return f"{content:,}" if abs(content) >= 10_000 and isinstance(content, int) else f"{content}"
    return "–" if content in (None, "") else str(content)


def _unit(name: str, content: Any) -> str:
    """The unit at the end of a key whose value is a number in it. Whole `_ratio`s are the kernel's, in per cent."""
    if isinstance(content, bool) or not isinstance(content, int | float):
        return ""
    units = ("_bytes", "_seconds", "_ratio") if isinstance(content, float) else ("_bytes", "_seconds")
    return next((unit for unit in units if name.endswith(unit)), "")


def series_words(name: str) -> str:
    """A series as people read it: `end_to_end.p99` is `end to end p99`."""
    return name.replace(".", " ").replace("_", " ")


def detail(content: dict[str, Any], limit: int = 400) -> str:
    """An event's detail on one line: `status 1, seconds 3.2`. What is longer than `limit` is cut, visibly."""
    parts = []
    for name, item in content.items():
        if item in (None, ""):
            continue
        if name in _MOMENTS and isinstance(item, int | float):
            text = datetime.fromtimestamp(item, UTC).strftime("%H:%M:%S UTC")
        else:
            text = _flat(item) if isinstance(item, dict | list) else value(name, item)
        parts.append(f"{label(name, item)} {text}")
    line = ", ".join(parts)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def event_detail(event: dict[str, Any]) -> str:
    """An event's detail on one line: in words where it is a note that has some, else as `detail` puts it."""
    words = note_text(event["name"], event["detail"]) if event["type"] == "note" else None
    return detail(event["detail"]) if words is None else words


def _flat(item: Any) -> str:
    if isinstance(item, dict):
        return " ".join(f"{label(str(name))} {_flat(inner)}" for name, inner in item.items())
    if isinstance(item, list):
        return " ".join(_flat(inner) for inner in item)
    return str(item)
