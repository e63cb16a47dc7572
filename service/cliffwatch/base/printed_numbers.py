"""Numbers as programs print them in any locale: `1000.5`, `1000,5`, `1,234,567`, `1.234,5`."""

import math
import re
from collections.abc import Iterable, Mapping

#: A comma between digits that can only be a decimal one: not before groups of three digits, or after a leading zero.
_DECIMAL = re.compile(r"(?P<whole>\d+|\d{1,3}(?:\.\d{3})+),(?P<rest>\d+)")
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
#: One comma before three digits may be either.
_EITHER = re.compile(r"[1-9]\d{0,2},\d{3}")


class PrintedNumbers:
    """Parser of numbers that one program prints. A comma before each group of three digits separates thousands, and any
    other one is decimal; `1,234` is what other numbers of the program show, and thousands until one shows it."""

    def __init__(self, *, comma_is_decimal: bool = False) -> None:
        self._comma_is_decimal = comma_is_decimal

    def parse(self, texts: Mapping[str, str]) -> dict[str, float]:
        """Parse the numbers of a line, by name; what is NaN is left out. Raises ValueError for what is no number, is
        infinite or below zero."""
        self._learn(texts.values())
        values = {name: self._number(text.strip()) for name, text in texts.items()}
        return {name: value for name, value in values.items() if not math.isnan(value)}

    def _learn(self, texts: Iterable[str]) -> None:
        for text in texts:
            if not _EITHER.fullmatch(text.strip()):
                if _GROUPED.fullmatch(text.strip()):
                    self._comma_is_decimal = False
                elif _DECIMAL.fullmatch(text.strip()):
                    self._comma_is_decimal = True

    def _number(self, text: str) -> float:
        if _GROUPED.fullmatch(text) and not (self._comma_is_decimal and _EITHER.fullmatch(text)):
            text = text.replace(",", "")
        else:
            text = with_decimal_point(text)
        value = plain_number(text)
        if value < 0 or math.isinf(value):
            raise ValueError(f"{text[:40]!r} is no measurement")
        return value


def plain_number(text: str) -> float:
    """Parse a number with a decimal point. Raises ValueError, also for what only Python accepts: 1_000, and digits of
    other scripts."""
    if "_" in text or not text.isascii():
        raise ValueError(f"{text[:40]!r} is not a number")
    return float(text)


def with_decimal_point(text: str) -> str:
    """The number with a point in place of its one comma, which is decimal; any other text as it is."""
    found = _DECIMAL.fullmatch(text.strip())
    return text if found is None else f"{found['whole'].replace('.', '')}.{found['rest']}"
