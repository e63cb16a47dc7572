"""JSON without numbers that are not finite: NaN, Infinity, and numbers too large for a float, such as 1e999.

Python reads and writes them; browsers, databases and most other programs do not. Here `strict_json` refuses them,
`lenient_json` reads them as null, and `json_text` writes null in their place.
"""

import json
import math
import re
from typing import Any, NoReturn

#: Escape sequences of surrogates (half a character) and of NUL.
_UNFIT_ESCAPE = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
#: Translation table that keeps only the characters that make a number large: digits become 0, an exponent e, and all
#: else a blank. `_LARGE` is then found by a fast search.
_FIGURES = bytes(
    ord("0") if chr(c) in "0123456789" else ord("e") if chr(c) in "eE" else ord("+") if chr(c) == "+" else ord(" ")
    for c in range(256)
)
#: Parts of numbers that may not be finite: an exponent of three digits, or 200 digits, after which an exponent of two
#: digits may be too large.
_LARGE = (b"e000", b"e+000", b"0" * 200)
#: A whole number of more digits may be too large for a float.
_WHOLE_DIGITS = 308
#: A whole number of more digits is refused: the time to read it grows with the square of its length.
_READ_DIGITS = 4000
#: Surrogates (half a character), and NUL, which PostgreSQL accepts in no text.
_UNFIT = re.compile("[\ud800-\udfff\0]")
#: Maximum nesting of lists and mappings in input; the project's own documents have at most 10 levels.
DEPTH_LIMIT = 64
#: Maximum number of keys of a mapping in input.
KEYS_LIMIT = 1000
#: Maximum nesting of stored documents, which may contain a document from outside.
_STORED_DEPTH_LIMIT = 2 * DEPTH_LIMIT


class NotFiniteError(ValueError):
    """Number that is not finite: NaN, Infinity, or too large for a float."""


def strict_json(text: str | bytes, *, unique_keys: bool = False) -> Any:
    """Parse JSON. Raises ValueError for malformed JSON, deep nesting, or a number that is not finite.

    `unique_keys`: refuse also a duplicate key in an object, and an object of more than `KEYS_LIMIT` keys; otherwise the
    last one of duplicate keys counts.
    """
    hooks = {"object_pairs_hook": _unique} if unique_keys else {}
    return _loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_whole, **hooks)


def lenient_json(text: str | bytes) -> tuple[Any, int]:
    """Parse JSON, with null for each number that is not finite; returns the value and the count of these numbers.

    In texts, surrogates and NUL become U+FFFD, since they could neither be stored nor sent in a response. Raises
    ValueError for malformed JSON or deep nesting.
    """
    found = 0

    def number(word: str) -> float | None:
        nonlocal found
        value = float(word)
        if math.isfinite(value):
            return value
        found += 1
        return None

    def whole(word: str) -> int | None:
        nonlocal found
        if len(word) <= _WHOLE_DIGITS:
            return int(word)
        found += 1
        return None

    written = text.decode("utf-8") if isinstance(text, bytes) else text
    if written.count("[") + written.count("{") > _STORED_DEPTH_LIMIT:
        # Code that processes the value recurses, with whatever stack is free at its call.
        require_shallow(_loads(written), _STORED_DEPTH_LIMIT)
    if not may_be_unfit(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")):
        return _loads(written), 0
    value = _fit(_loads(written, parse_constant=number, parse_float=number, parse_int=whole))
    return value, found


def may_be_unfit(text: bytes) -> bool:
    """Whether a JSON text may hold a number that is not finite, a surrogate or NUL.

    A fast check: False for nearly all texts that hold none of them.
    """
    if b"NaN" in text or b"Infinity" in text or (b"\\u" in text and _UNFIT_ESCAPE.search(text) is not None):
        return True
    figures = text.translate(_FIGURES)
    return any(large in figures for large in _LARGE)


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
    """Check that lists and mappings in a value are nested at most `limit` deep. Raises ValueError."""
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


def require_few_keys(count: int) -> None:
    """Check that a mapping has at most KEYS_LIMIT keys; `count` is its number. Raises ValueError."""
    if count > KEYS_LIMIT:
        raise ValueError(f"a mapping in it has {count} keys; it may have {KEYS_LIMIT}")


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
    # Before the keys are compared: duplicates count twice.
    require_few_keys(len(pairs))
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:40]!r} is there twice; remove one")
        found[name] = value
    return found


def _refuse(word: str) -> NoReturn:
    raise NotFiniteError(f"{word} is not a JSON number")


def _whole(word: str) -> int:
    if len(word) > _READ_DIGITS:
        raise NotFiniteError(f"a number of {len(word.lstrip('-')):,} digits is too large")
    return int(word)


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise NotFiniteError(f"{word[:40]} is too large a number")
    return value
