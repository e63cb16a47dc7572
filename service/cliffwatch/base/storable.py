"""Text that can be stored: in journals, in SQLite and in PostgreSQL."""

import re
from typing import Any

#: Characters that cannot be stored: NUL, and surrogates (half a character).
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable_text(text: str) -> str:
    """The text with U+FFFD for each character that cannot be stored: NUL and surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)


def check_text(value: Any) -> Any:
    """The value unchanged. Raises ValueError where it holds text that cannot be stored, with NUL or a surrogate."""
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise ValueError("the text holds a NUL or a lone surrogate; leave it out")
    elif isinstance(value, dict):
        for key, item in value.items():
            check_text(key)
            check_text(item)
    elif isinstance(value, list):
        for item in value:
            check_text(item)
    return value
