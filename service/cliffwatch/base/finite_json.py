"""JSON without the words that are not JSON: NaN, Infinity, and numbers too large for a float, such as 1e999.

Python reads and writes them; browsers, databases and most other programs do not. What is read here holds `null` in
their place, what is written here never holds one.
"""

import json
import math
import re
from typing import Any, NoReturn

#: What a text must hold for a value of it to be unfit; nearly all texts are read without a closer look.
_SUSPECT = re.compile(r"NaN|Infinity|[eE]\+?\d{3}|\d{300}|\\u(?:[dD][89a-fA-F]|0000)")
_SUSPECT_BYTES = re.compile(_SUSPECT.pattern.encode())
#: Half a character, and NUL, which PostgreSQL takes in no text.
_UNFIT = re.compile("[\ud800-\udfff\0]")
#: So deep may lists and mappings from outside be nested; nothing of ours is deeper than 10.
DEPTH_LIMIT = 64


class NotFiniteError(ValueError):
    """A number that is not one of JSON's, or is too large."""


def strict_json(text: str | bytes, *, unique_keys: bool = False) -> Any:
    """The JSON value. Raises ValueError: what is no JSON, is nested too deep, or holds a number that is not finite.

    `unique_keys`: a key that stands twice in an object is refused too; otherwise the last one counts.
    """
    hooks = {"object_pairs_hook": _unique} if unique_keys else {}
    return _loads(text, parse_constant=_refuse, parse_float=_finite, **hooks)


def lenient_json(text: str | bytes) -> tuple[Any, int]:
    """The JSON value with null for each number that is not finite, and how many those were. Raises ValueError.

    In its texts, U+FFFD stands for halves of characters and for NUL, which could be neither stored nor answered.
    """
    found = 0

    def number(word: str) -> float | None:
        nonlocal found
        value = float(word)
        if math.isfinite(value):
            return value
        found += 1
        return None

    written = text.decode("utf-8") if isinstance(text, bytes) else text
    if _SUSPECT.search(written) is None:
        return _loads(written), 0
    value = _fit(_loads(written, parse_constant=number, parse_float=number))
    return value, found


def may_be_unfit(text: bytes) -> bool:
    """Whether a closer look could find a number that is not finite; False for nearly all of what is whole."""
    return _SUSPECT_BYTES.search(text) is not None


def json_text(value: Any) -> str:
    """The value as JSON, with null for each number that is not finite."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(finite(value), separators=(",", ":"), allow_nan=False)


def finite(value: Any) -> Any:
    """The value with None for each number in it that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def require_shallow(value: Any, limit: int = DEPTH_LIMIT) -> None:
    """Raises ValueError when lists and mappings are nested deeper than the limit."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            item
            for holder in level
            if isinstance(holder, dict | list)
            for item in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {limit} deep; no valid document is")


def _fit(value: Any) -> Any:
    if isinstance(value, str):
        return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {_fit(key): _fit(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fit(item) for item in value]
    return value


def _loads(text: str | bytes, **hooks: Any) -> Any:
    try:
        return json.loads(text, **hooks)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"{twice[:40]!r} is there twice; remove one")
    return found


def _refuse(word: str) -> NoReturn:
    raise NotFiniteError(f"{word} is not a JSON number")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise NotFiniteError(f"{word[:40]} is too large a number")
    return value
