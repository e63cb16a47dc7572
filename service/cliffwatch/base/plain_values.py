"""Check an untrusted document before anything else uses it: plain values only, limited in number and depth.

A mebibyte can hold half a million values, YAML aliases stand for any number of them, and every pass over a document
(check, message, copy) takes time for each. So the values are counted first, which takes little time.
"""

import math
from typing import Any

from cliffwatch.base.finite_json import DEPTH_LIMIT, require_few_keys, strict_json

#: Maximum number of values: a notification of some thousand alerts has that many; a workload has some dozens.
VALUES_LIMIT = 100_000
_INTEGER_BITS = 64


def read_json(text: bytes) -> Any:
    """Parse a request's JSON. Raises json.JSONDecodeError where it is malformed, ValueError for refused values."""
    return plain(strict_json(text, unique_keys=True))


def plain(document: Any) -> Any:
    """Check a document and return it unchanged.

    Raises ValueError if it is too large, too deep, or has values that JSON does not have.
    """
    left = VALUES_LIMIT
    level: list[Any] = [document]
    for _ in range(DEPTH_LIMIT):
        left -= len(level)
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                _check_keys(value)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            else:
                _check_value(value)
            # Checked while the list grows: all values that aliases stand for are never in memory at once.
            if len(below) > left:
                raise ValueError(f"it holds more than {VALUES_LIMIT} values; no valid document does")
        if not below:
            return document
        level = below
    raise ValueError(f"it is nested more than {DEPTH_LIMIT} deep; no valid document is")


def _check_keys(mapping: dict[Any, Any]) -> None:
    require_few_keys(len(mapping))
    for key in mapping:
        if not isinstance(key, str):
            raise ValueError(f"a key in it is {str(key)[:40]!r}, which is no text; put it in quotes")


def _check_value(value: Any) -> None:
    if isinstance(value, int):
        if value.bit_length() > _INTEGER_BITS:
            raise ValueError(f"a number in it has more than {_INTEGER_BITS} bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number; write one that is finite")
    elif not (value is None or isinstance(value, str)):
        raise ValueError(f"it holds a {type(value).__name__}, {str(value)[:40]}; put it in quotes to make it text")
