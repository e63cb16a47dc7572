"""Valid documents, damaged: as JSON whose values became others, and as bytes that a disk or a network changed."""

import copy
import json
import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

#: Too deep for any parser that recurses, and for those that count.
DEEP = 100_000
#: Texts that stand in a document until it is written, for what `json.dumps` does not write.
_RAW = {
    "raw:deep list": "[" * DEEP + "]" * DEEP,
    "raw:deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "raw:deep and not finite": "[" * 600 + "NaN" + "]" * 600,
    "raw:hidden infinity": "1" + "0" * 250 + "e99",
    "raw:infinity": "1e999",
    "raw:long number": "9" * 5000,
}
_TWICE = "raw:twice:"
_ODD_NUMBERS = [-1, 2**31, 2**63, 2**64, 10**400, -(10**400), 1e308, -1e308, 0.5, math.nan, math.inf, -math.inf]
_ODD_TEXTS = ["", "\0", "\ud800", "NaN", "1e999", "../..", "\u0662", "x" * 5000, *_RAW]

Draw = Callable[[st.SearchStrategy[Any]], Any]

ODD_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, False, 0, 1, [], {}, [[]], [{}], [None], [1, 2], ["a", "b"], {"": None}, {"a": []}]),
    st.sampled_from(_ODD_NUMBERS),
    st.sampled_from(_ODD_TEXTS),
    st.integers(-5, 2000),
    st.floats(),
    st.text(max_size=5),
)


def as_text(document: Any) -> str:
    """The document as JSON would be if it had NaN, keys that stand twice, and no limits."""
    text = json.dumps(document, separators=(",", ":"))
    for stand_in, written in _RAW.items():
        text = text.replace(json.dumps(stand_in), written)
    return text.replace(f'"{_TWICE}', '"')


@st.composite
def restructured(draw: Draw, documents: st.SearchStrategy[Any]) -> str:
    """A document with one to three of its values replaced, removed, wrapped, renamed or there twice."""
    holder = [copy.deepcopy(draw(documents))]
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(holder))
        if not places:
            return ""
        _change(draw, *places[draw(st.integers(0, len(places) - 1))])
    return as_text(holder[0]) if holder else ""


def _places(holder: Any) -> Any:
    """Every value of a document, as what holds it and its key there."""
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        yield holder, key
        if isinstance(holder[key], dict | list):
            yield from _places(holder[key])


def _change(draw: Draw, holder: Any, key: Any) -> None:
    how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "wrap", "rename", "twice"]))
    if how == "remove":
        del holder[key]
    elif how == "wrap":
        holder[key] = draw(st.sampled_from([[holder[key]], {"a": holder[key]}, str(holder[key])]))
    elif how == "rename" and isinstance(holder, dict):
        holder[draw(st.sampled_from(_ODD_TEXTS[:8]))] = holder.pop(key)
    elif how == "twice" and isinstance(holder, dict):
        holder[f"{_TWICE}{key}"] = copy.deepcopy(draw(ODD_VALUES))
    else:
        holder[key] = copy.deepcopy(draw(ODD_VALUES))


@st.composite
def spoiled(draw: Draw, contents: st.SearchStrategy[bytes]) -> bytes:
    """Bytes after one to three accidents; now and then none."""
    content: bytes = draw(contents)
    for _ in range(draw(st.integers(0, 3))):
        content = draw(st.sampled_from(_ACCIDENTS))(draw, content)
    return content


def _place(draw: Draw, content: bytes) -> int:
    return int(draw(st.integers(0, max(0, len(content) - 1))))


def _flip(draw: Draw, content: bytes) -> bytes:
    changed, at = bytearray(content), _place(draw, content)
    changed[at : at + 1] = bytes(byte ^ (1 << draw(st.integers(0, 7))) for byte in changed[at : at + 1])
    return bytes(changed)


def _digit(draw: Draw, content: bytes) -> bytes:
    """Another digit where one was: what stays valid and says something else."""
    digits = [at for at, byte in enumerate(content) if byte in b"0123456789"]
    if not digits:
        return content
    at = digits[draw(st.integers(0, len(digits) - 1))]
    return content[:at] + bytes(draw(st.sampled_from([b"0", b"1", b"5", b"9"]))) + content[at + 1 :]


def _cut(draw: Draw, content: bytes) -> bytes:
    return content[: _place(draw, content)]


def _zeros(draw: Draw, content: bytes) -> bytes:
    at, length = _place(draw, content), draw(st.sampled_from([1, 16, 512]))
    return content[:at] + bytes(min(length, len(content) - at)) + content[at + length :]


def _insert(draw: Draw, content: bytes) -> bytes:
    at = _place(draw, content)
    junk = draw(st.sampled_from([b"\n", b"\r", b"\xff\xfe", b"\xed\xa0\x80", b"\0", b"{", b'"', b"\xef\xbb\xbf"]))
    return content[:at] + bytes(junk) + content[at:]


def _remove(draw: Draw, content: bytes) -> bytes:
    at = _place(draw, content)
    return content[:at] + content[at + draw(st.integers(1, 300)) :]


def _repeat(draw: Draw, content: bytes) -> bytes:
    at, length = _place(draw, content), draw(st.integers(1, 300))
    return content[: at + length] + content[at:]


def _lines(draw: Draw, content: bytes) -> bytes:
    """A line is gone, there twice, or in another one's place."""
    lines = content.splitlines(keepends=True)
    if len(lines) < 2:
        return content
    one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    how = draw(st.sampled_from(["gone", "twice", "swapped"]))
    if how == "gone":
        del lines[one]
    elif how == "twice":
        lines.insert(other, lines[one])
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


_ACCIDENTS = [_flip, _flip, _digit, _cut, _zeros, _insert, _remove, _repeat, _lines, _lines]
