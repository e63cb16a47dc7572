"""Format quantities for people: template filters of the pages, and numbers in the report's sentences."""

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
    """HTML of a message that terminals show too: text between two backticks becomes a code element."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


def latency(seconds: float | None) -> str:
    """Latency with three digits and a unit: 0.0123 → `12.3 ms`. A dash for None."""
    return "–" if seconds is None else format_latency(seconds)


def duration(seconds: float) -> str:
    """Duration such as `35h59m50s` or `4 s`, with a minus sign where it is negative."""
    return f"−{format_length(-seconds)}" if seconds < 0 else format_length(seconds)


def elapsed(seconds: float) -> str:
    """Elapsed time such as `12:03:20`; hours continue past 24."""
    whole = abs(round(seconds))
    sign = "−" if seconds <= -0.5 else ""
    return f"{sign}{whole // 3600:d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def count(number: float) -> str:
    """Count such as `1,296,000`; from ten million on such as `12.96 million`."""
    return format_count(number)


def size(size_bytes: float) -> str:
    return format_size(size_bytes)


def rate(per_second: float | None) -> str:
    return "–" if per_second is None else format_rate(per_second)


def byte_rate(bytes_per_second: float | None) -> str:
    return "–" if bytes_per_second is None else format_byte_rate(bytes_per_second)


def moment(timestamp: str) -> str:
    """Format an RFC 3339 timestamp in UTC as `2026-11-21 07:34:13 UTC`."""
    return datetime.fromisoformat(timestamp).strftime("%Y-%m-%d %H:%M:%S UTC")


def label(name: str, content: Any = None) -> str:
    """Key or name as words, without a unit that `value` writes: `cool_down` → `cool down`, `size_bytes` → `size`."""
    return name.removesuffix(_unit(name, content)).replace("_", " ")


def value(name: str, content: Any) -> str:
    """Format a plain value by the unit at the end of its key."""
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
    """Unit suffix of a number's key, else empty. `_ratio` of an int is none: the kernel has such ratios in per cent."""
    if isinstance(content, bool) or not isinstance(content, int | float):
        return ""
    units = ("_bytes", "_seconds", "_ratio") if isinstance(content, float) else ("_bytes", "_seconds")
    return next((unit for unit in units if name.endswith(unit)), "")


def event_words(event: dict[str, Any]) -> str:
    """Text of an event of report.json, on one line."""
    return event_text(event["type"], event["name"], event["detail"])
