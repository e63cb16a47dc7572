"""Text that can be stored: in journals, in SQLite and in PostgreSQL."""

import re
from typing import Any

#: What no text that is stored may hold: NUL, and half of a character.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable_text(text: str) -> str:
    """The text, with what cannot be stored replaced."""
    return _UNSTORABLE.sub("\ufffd", text)


def check_text(value: Any) -> Any:
    """The value unchanged. Raises ValueError where it holds text that cannot be stored: NUL, or half a character."""
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
