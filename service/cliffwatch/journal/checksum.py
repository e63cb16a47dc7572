"""The checksum at the end of a journal's line: a digit that changed on a disk is damage, and no measurement.

It is the last key of the line's object, `crc32`: CRC-32 (that of RFC 1952) of the line's bytes before the comma that
the key follows, in eight hexadecimal digits. Lines that were written before there were checksums have none.
"""

import zlib

_KEY = b',"crc32":"'
_LENGTH = len(_KEY) + len('01234567"}')


def sealed(text: str) -> str:
    """The line, with its newline, of a JSON object that is not empty."""
    body = text.encode()[:-1]
    return f'{text[:-1]}{_KEY.decode()}{checksum(body)}"}}\n'


def is_sealed(line: str | bytes) -> bool:
    """Whether the line has a checksum, its own or another one's."""
    return _content(line)[-_LENGTH:].startswith(_KEY)


def opened(line: str | bytes) -> bytes:
    """The JSON object without its checksum. Raises ValueError when that is another one's."""
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
