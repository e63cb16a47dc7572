"""Codec of HdrHistogram V2 payloads: `HISTFAAA…`, zlib-compressed counts in base64, as all its libraries write them.

The format is that of `encodeIntoCompressedByteBuffer` in HdrHistogram's Java library: a cookie and the length of the
compressed part; in it a header, and the counts of all indices up to the last that is not zero, each a zigzag LEB128
number. A negative number stands for so many zeros in a row.
"""

import base64
import binascii
import math
import struct
import zlib
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Indices = NDArray[np.int32]
#: Cookies of the payload and of the header in its compressed part; the bits of `_WORD_SIZE` are not compared.
_COMPRESSED, _COUNTS, _WORD_SIZE = 0x1C849304, 0x1C849303, 0x10
_OUTER, _HEADER = struct.Struct(">II"), struct.Struct(">IIIIQQd")
_DIGITS_MOST = 5
#: A payload inflates to at most this many bytes. One of the project's own has 20 kB, of the finest shape 5 MB.
_INFLATED_LIMIT_BYTES = 16 * 1024**2
#: Most bytes of a number: a count of 2^48 has seven.
_NUMBER_BYTES = 8
#: Maximum count of a histogram: no window has so many, and sums over 36 hours of such windows fit into 64 bits.
COUNT_LIMIT = 2**48


@dataclass(frozen=True, slots=True)
class Shape:
    """Buckets of a histogram: the power of two of its unit in nanoseconds, and that of the buckets of each power of
    two of values."""

    unit_magnitude: int
    half_magnitude: int

    @classmethod
    def of(cls, lowest: int, digits: int) -> "Shape":
        """Shape for values from `lowest` on, at so many significant digits."""
        return cls(lowest.bit_length() - 1, max(0, math.ceil(math.log2(2 * 10**digits)) - 1))

    def index_of_last(self, highest: int) -> int:
        """Last index of a histogram whose values go up to `highest`."""
        covered, powers = 2 << (self.half_magnitude + self.unit_magnitude), 1
        while covered <= highest:
            covered, powers = covered << 1, powers + 1
        return ((powers + 1) << self.half_magnitude) - 1

    def lowest_at(self, index: int) -> int:
        """Lowest value that is counted at an index."""
        half = 1 << self.half_magnitude
        power = (index >> self.half_magnitude) - 1
        if power < 0:
            return index << self.unit_magnitude
        return ((index & (half - 1)) + half) << (power + self.unit_magnitude)

    def highest_at(self, index: int) -> int:
        """Highest value that is counted at an index."""
        power = max(0, (index >> self.half_magnitude) - 1)
        return self.lowest_at(index) + (1 << (power + self.unit_magnitude)) - 1


@dataclass(frozen=True, slots=True)
class Payload:
    """Decoded payload: `counts`, each above zero, at `indices`, which ascend."""

    shape: Shape
    indices: Integers
    counts: Integers


def encoded(indices: Indices | Integers, counts: Integers, lowest: int, highest: int, digits: int) -> str:
    """Payload of `counts`, each above zero, at `indices`, which ascend. `lowest`, `highest`: range of values."""
    numbers = _numbers_of(_with_zeros(indices, counts))
    header = _HEADER.pack(_COUNTS | _WORD_SIZE, len(numbers), 0, digits, lowest, highest, 1.0)
    packed = zlib.compress(header + numbers)
    return base64.b64encode(_OUTER.pack(_COMPRESSED | _WORD_SIZE, len(packed)) + packed).decode("ascii")


def decoded(text: str) -> Payload:
    """Decode a payload of any range and precision. Raises ValueError for other text."""
    try:
        content = base64.b64decode(text.encode("ascii", "replace"))
        cookie, length = _OUTER.unpack_from(content)
        if cookie & ~0xF0 != _COMPRESSED or length != len(content) - _OUTER.size:
            _refuse("it does not begin as one")
        inflating = zlib.decompressobj()
        data = inflating.decompress(content[_OUTER.size :], _INFLATED_LIMIT_BYTES)
        if inflating.unconsumed_tail or not inflating.eof:
            _refuse(f"it is cut off, or has more than {_INFLATED_LIMIT_BYTES} bytes")
        cookie, _, offset, digits, lowest, highest, _ = _HEADER.unpack_from(data)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not an HdrHistogram V2 payload: {error}") from error
    if cookie & ~0xF0 != _COUNTS or offset or not 0 <= digits <= _DIGITS_MOST or not 1 <= lowest <= highest // 2:
        _refuse("its header is damaged, or of another version")
    shape = Shape.of(lowest, digits)
    numbers = _read_numbers(np.frombuffer(data, np.uint8, offset=_HEADER.size))
    steps = np.where(numbers < 0, -numbers, 1)
    present = numbers > 0
    if float(steps.sum(dtype=np.float64)) > shape.index_of_last(highest) + 1:
        _refuse("it has more counts than its range")
    if float(numbers[present].sum(dtype=np.float64)) > COUNT_LIMIT:
        _refuse(f"it counts more than {COUNT_LIMIT} latencies")
    return Payload(shape, (np.cumsum(steps) - steps)[present], numbers[present])


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"not an HdrHistogram V2 payload: {why}")


def _with_zeros(indices: Indices | Integers, counts: Integers) -> Integers:
    """The numbers of a payload: before each count the zeros since the one before, where there are any."""
    zeros = np.diff(indices, prepend=-1) - 1
    both = np.empty(2 * len(indices), np.int64)
    both[::2], both[1::2] = -zeros, counts
    written = np.ones(len(both), np.bool_)
    written[::2] = zeros > 0
    return both[written]


def _numbers_of(numbers: Integers) -> bytes:
    """Zigzag LEB128 of each number: seven bits a byte, low ones first, the sign in the lowest."""
    left = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    widest = -(-int(left.max(initial=1)).bit_length() // 7)
    columns = [left >> np.uint64(7 * place) for place in range(widest)]
    # A byte is written where something is left of its number, and says whether more is.
    written = np.column_stack([np.ones(len(left), np.bool_), *(each > 0 for each in columns[1:])])
    places = [
        (each & np.uint64(0x7F)).astype(np.uint8) | ((each > 0x7F).view(np.uint8) << np.uint8(7)) for each in columns
    ]
    return np.column_stack(places)[written].tobytes()


def _read_numbers(data: NDArray[np.uint8]) -> Integers:
    """Decode zigzag LEB128 numbers. Raises ValueError for a number that is cut off or has more than eight bytes."""
    ends = np.flatnonzero(data < 0x80)
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        _refuse("its last count is cut off")
    starts = np.concatenate(([0], ends[:-1] + 1))[: len(ends)]
    lengths = ends - starts + 1
    if int(lengths.max(initial=0)) > _NUMBER_BYTES:
        _refuse(f"it counts more than {COUNT_LIMIT} latencies")
    left = (data[starts] & 0x7F).astype(np.int64)
    for place in range(1, int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        left[longer] |= (data[starts[longer] + place] & 0x7F).astype(np.int64) << (7 * place)
    # Eight bytes have 56 bits, so that the sign is never touched.
    return (left >> 1) ^ -(left & 1)
