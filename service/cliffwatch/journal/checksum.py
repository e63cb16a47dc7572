"""Checksum at the end of each journal line, which detects digits that changed on a disk.

It is the last key of the line's object, `crc32`: CRC-32 (that of RFC 1952) of the line's bytes up to the comma before
this key, in eight hexadecimal digits. Lines of versions before there were checksums have none.
"""

import zlib

_KEY = b',"crc32":"'
_LENGTH = len(_KEY) + len('01234567"}')


def sealed(text: str) -> str:
    """Journal line for a JSON object, given as text: adds its checksum and a newline. The object must not be empty."""
    body = text.encode()[:-1]
    return f'{text[:-1]}{_KEY.decode()}{checksum(body)}"}}\n'


def is_sealed(line: str | bytes) -> bool:
    """Whether the line has a checksum, right or wrong."""
    return _content(line)[-_LENGTH:].startswith(_KEY)


def opened(line: str | bytes) -> bytes:
    """The JSON text of a journal line, without the checksum. Raises ValueError when the checksum is wrong."""
    content = _content(line)
    body, end = content[:-_LENGTH], content[-_LENGTH:]
    if not end.startswith(_KEY):
        return content
    if end[len(_KEY) :] != b'%s"}' % checksum(body).encode():
        raise ValueError("its checksum is another one: it was changed after it was written")
    return body + b"}"


def _content(line: str | bytes) -> bytes:
    return (line.encode() if isinstance(line, str) else line).rstrip(b"\r\n")


def checksum(content: bytes) -> str:
    """CRC-32 of the bytes, in eight hexadecimal digits."""
    return f"{zlib.crc32(content):08x}"
