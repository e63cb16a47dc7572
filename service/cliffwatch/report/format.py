"""Quantities as people read them: the filters of the report's pages, and the numbers in its sentences."""

from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

from cliffwatch.analysis.verdict import percent
from cliffwatch.base.units import (
    format_byte_rate,
    format_count,
    format_latency,
    format_length,
    format_rate,
    format_size,
)
from cliffwatch.journal.event_text import event_text


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
    """`35h59m50s`, `4 s`; a minus sign for what came before the zero."""
    return f"−{format_length(-seconds)}" if seconds < 0 else format_length(seconds)


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


def event_words(event: dict[str, Any]) -> str:
    """Text of an event of report.json, on one line."""
    return event_text(event["type"], event["name"], event["detail"])
