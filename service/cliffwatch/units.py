"""Durations and sizes as people write them: `36h`, `1h30m`, `250ms`; `4GiB`, `16KiB`, `1GB`."""

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

_DURATION_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SIZE_BYTES: dict[str, int] = {"B": 1} | {
    f"{prefix}{infix}B": base**power
    for infix, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("KMGTP", start=1)
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTP]?i?B)")

#: Characters; nobody writes a longer one.
_LENGTH_LIMIT = 64
_DURATION_LIMIT_SECONDS = 1000 * 365.25 * 86_400.0


def parse_duration(text: str) -> float:
    """Seconds in a duration such as `36h`, `1h30m` or `250ms`. Raises ValueError with what would be right."""
    if len(text) > _LENGTH_LIMIT:
        raise ValueError(f"{text[:40]!r}… is not a duration; write one such as 36h or 1h30m")
    position, seconds = 0, 0.0
    compact = text.replace(" ", "")
    for part in _DURATION_PART.finditer(compact):
        if part.start() != position:
            break
        seconds += float(part[1]) * _DURATION_SECONDS[part[2]]
        position = part.end()
    if not compact or position != len(compact):
        raise ValueError(f"{text!r} is not a duration; write a number with ms, s, m, h or d, such as 36h or 1h30m")
    if seconds > _DURATION_LIMIT_SECONDS:
        raise ValueError(f"{text!r} is longer than a thousand years")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest exact writing, to the millisecond: 5400 → `1h30m`, 0 → `0s`."""
    milliseconds = round(seconds * 1000)
    if milliseconds == 0:
        return "0s"
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def parse_size(text: str) -> int:
    """Bytes in a size such as `4GiB` (1024-based) or `1GB` (1000-based). Raises ValueError with what would be right."""
    match = _SIZE.fullmatch(text.strip()) if len(text) <= _LENGTH_LIMIT else None
    if match is None:
        raise ValueError(
            f"{text[:_LENGTH_LIMIT]!r} is not a size; "
            "write a number with B, KB, KiB, MB, MiB, GB, GiB, TB or TiB, such as 4GiB"
        )
    return round(float(match[1]) * _SIZE_BYTES[match[2]])


def format_size(size_bytes: float) -> str:
    """For reading, not for parsing back: 1610612736 → `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size_bytes) < 1024 or unit == "TiB":
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    raise AssertionError("unreachable")


def format_latency(seconds: float) -> str:
    """For reading: three digits and a unit, 0.0123 → `12.3 ms`."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size * 0.9995 or unit == "µs":
            value = seconds / size
            return f"{value:,.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"
    raise AssertionError("unreachable")


def format_number(value: float) -> str:
    """For reading: three digits, and never fewer than are before the point: 1.24, 24.5, 2,598."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def format_count(number: float) -> str:
    """For reading: 1,296,000; from ten million on `12.96 million`, since nobody reads eleven digits."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size * (10 if word == "million" else 1):
            return f"{number / size:.4g} {word}"
    return f"{number:,.0f}"


def format_rate(per_second: float) -> str:
    """For reading: 204800 → `204,800 /s`."""
    return f"{format_count(per_second)} /s"


def format_byte_rate(bytes_per_second: float) -> str:
    """For reading: 1610612736 → `1.5 GiB/s`."""
    return f"{format_size(bytes_per_second)}/s"


def format_share(ratio: float) -> str:
    """For reading: 0.5 → `50 %`, 0.0061 → `0.61 %`. A share held against a limit has `detect.verdict.percent`."""
    return f"{ratio * 100:.3g} %"


def _duration_from(value: object) -> object:
    if isinstance(value, str):
        return parse_duration(value)
    raise ValueError(f"{value!r} has no unit; write a duration such as 36h, 90s or 250ms")


def _size_from(value: object) -> object:
    if isinstance(value, str):
        return parse_size(value)
    raise ValueError(f"{value!r} has no unit; write a size such as 4GiB, 16KiB or 512B")


#: A pydantic field that reads `36h`, holds seconds and is written back as `1d12h`.
Duration = Annotated[
    float,
    BeforeValidator(_duration_from, json_schema_input_type=str),
    PlainSerializer(format_duration, return_type=str),
]
#: A pydantic field that reads `4GiB`, holds bytes and is written back exactly, as `4294967296B`.
Size = Annotated[
    int,
    BeforeValidator(_size_from, json_schema_input_type=str),
    PlainSerializer(lambda size: f"{size}B", return_type=str),
]
