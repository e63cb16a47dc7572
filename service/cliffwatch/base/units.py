"""Parse and format durations (`36h`, `1h30m`, `250ms`) and sizes (`4GiB`, `16KiB`, `1GB`); format numbers for reading.

Every value shown to people is written by the `format_…` functions, by one set of rules. The pages' web/static/format.js
follows the same rules (a test compares the two over a table of values), and so do the texts of alerts/rules, as far as
Prometheus' templates allow:

    latency         three digits, no zeros at the end, and µs, ms or s: `949 ms`, `3.33 s`, `1,234 s`
    ratio           two decimals below 2, one below 10, then none, and a ×: `1.72×`, `4.1×`, `113×`, `2,305×`
    amplification   a ratio, always with two decimals and no ×, since 1 is a meaningful value: `1.00`, `12.34`
    share           three digits in per cent, `0.61 %`, and `< 0.01 %` below that; a share that is compared with a limit
                    is rounded down to two decimals (`verdict.percent`), so that it never seems to reach the limit
    count           all digits in groups, `1,296,000`; from ten million on four and a word, `12.96 million`
    rate            three digits below a hundred, else a count, and `/s`: `0.25 /s`, `204,800 /s`
    size            one decimal and a unit of 1024: `1.5 GiB`, `512 B`; the next one from 1,000 on, `1.0 GiB`;
                    bytes a second likewise: `1.5 GiB/s`
    length of time  `4 s` and `2.5 s` below a minute, then as people write it, hours staying hours: `1m30s`, `35h59m50s`
    hours           one decimal: `12.9 h`; minutes and seconds below one hour, `45m`
    number          a value without such a unit, three digits: `1.24`, `24.5`, `2,598`

A tie is rounded to the even digit, as Python does.
"""

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

#: Maximum length of a duration or size, in characters; a real one is shorter.
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
    """Format a duration exactly to the millisecond, so that it can be parsed back: 5400 → `1h30m`, 0 → `0s`."""
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


def parse_share(text: str) -> float:
    """Ratio in a share: `0.25` and `25%` → 0.25. Raises ValueError with what would be right."""
    try:
        share = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        raise ValueError(f"{text!r} is not a share; write 0.25 or 25%") from None
    # Ten digits, so that 12.5% and 0.125 are one value.
    return round(share, 10)


def format_length(seconds: float) -> str:
    """Format a duration for reading: 4 → `4 s`, 90 → `1m30s`. Hours without days: 36h."""
    whole = round(seconds, 1)
    if whole < 60:
        return f"{whole:g} s"
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (round(rest, 1), "s"))
    return "".join(f"{number:g}{unit}" for number, unit in parts if number)


def format_hours(seconds: float) -> str:
    """Format hours for reading: 46440 → `12.9 h`, 3600 → `1 h`; in minutes and seconds below one hour."""
    if 0 < seconds < 3600:
        return format_length(round(seconds))
    return f"{seconds / 3600:,.1f}".removesuffix(".0") + " h"


def format_size(size_bytes: float) -> str:
    """Format a size for reading, not for parsing back: 1610612736 → `1.5 GiB`, with less than four digits."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size_bytes) < (999.5 if unit == "B" else 999.95) or unit == "TiB":
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    raise AssertionError("unreachable")


def format_latency(seconds: float) -> str:
    """Format a latency for reading: three digits and a unit, 0.0123 → `12.3 ms`."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size * 0.9995 or unit == "µs":
            value = seconds / size
            return f"{value:,.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"
    raise AssertionError("unreachable")


def format_number(value: float) -> str:
    """Format a number for reading: three digits, and never fewer than are before the point: 1.24, 24.5, 2,598."""
    if 0 < abs(value) < 0.0001:
        return "< 0.0001"
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def format_count(number: float) -> str:
    """Format a count for reading: 1,296,000; from ten million on `12.96 million`."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size * (10 if word == "million" else 1):
            return f"{number / size:.4g} {word}"
    return f"{number:,.0f}"


def format_rate(per_second: float) -> str:
    """Format a rate for reading: 204800 → `204,800 /s`, 0.25 → `0.25 /s`."""
    return f"{format_number(per_second) if abs(per_second) < 99.95 else format_count(per_second)} /s"


def format_ratio(ratio: float) -> str:
    """Format a ratio for reading: 1.724 → `1.72×`, 4.1 → `4.1×`, 2305.1 → `2,305×`."""
    return f"{ratio:.2f}×" if ratio < 1.995 else f"{ratio:.1f}×" if ratio < 9.95 else f"{ratio:,.0f}×"


def format_amplification(ratio: float) -> str:
    """Format write amplification for reading: 1 → `1.00`."""
    return f"{ratio:,.2f}"


def format_byte_rate(bytes_per_second: float) -> str:
    """Format bytes per second for reading: 1610612736 → `1.5 GiB/s`."""
    return f"{format_size(bytes_per_second)}/s"


def format_share(ratio: float) -> str:
    """Format a share for reading: 0.5 → `50 %`, 0.0061 → `0.61 %`. Against a limit use `analysis.verdict.percent`."""
    return "< 0.01 %" if 0 < ratio < 0.0001 else f"{format_number(ratio * 100)} %"


def format_rare_share(ratio: float) -> str:
    """Format a share that may be tiny: two digits in per cent, without an exponent."""
    hundredths = ratio * 100
    return (
        "less than 0.0001 %"
        if hundredths < 0.0001
        else f"{float(f'{hundredths:.2g}'):.6f}".rstrip("0").rstrip(".") + " %"
    )


def six_digits(value: float) -> float:
    """Round a measurement to six digits for a document: further digits are meaningless."""
    return float(f"{value:.6g}")


def four_digits(value: float) -> float:
    """Round a mean or a ratio to four digits for journals and charts, which hold many of them."""
    return float(f"{value:.4g}")


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
