"""Check of addresses, as `host:port`."""

import re

_HOST_AND_PORT = re.compile(
    r"([A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9a-fA-F:.]{2,45}\]):([1-9][0-9]{0,4})"
)


def address(text: str) -> str:
    """Return the text if it is `host:port`. Raises ValueError that says what would be right."""
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None or int(match[3]) > 65_535:
        raise ValueError(f"{text[:80]!r} is not an address; write host:port, such as broker-1.example.org:9092")
    return text
