"""Text in a picture: measure its width, break it into lines, replace what cannot be drawn."""

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import TextToPath

_FAMILY = "DejaVu Sans"
_POINTS_PER_INCH = 72
#: Characters beyond which a line, or a text of several lines, does not fit into the picture.
_LINE_SIGNS, _TEXT_SIGNS = 400, 2000


def plain(text: str) -> str:
    """Text on one line, truncated to what can be shown, without control characters and lone surrogates."""
    whole = text[:_TEXT_SIGNS].encode("utf-8", "replace").decode("utf-8")
    return " ".join("".join(sign if sign.isprintable() else " " for sign in whole).split())


class Writing:
    """Text measuring, in shares of the picture's width."""

    def __init__(self, figure: Figure) -> None:
        self._points: float = figure.get_size_inches()[0] * _POINTS_PER_INCH
        self._paths = TextToPath()

    def width(self, text: Text) -> float:
        """Width of a text of the picture, at the text's own size and weight."""
        weight = "bold" if text.get_fontweight() == "bold" else "normal"
        return self.extent(text.get_text(), float(text.get_fontsize()), weight)

    def extent(self, words: str, size: float, weight: str = "normal") -> float:
        """Width of words at a font size in points."""
        font = FontProperties(family=_FAMILY, size=size, weight=weight)
        width, _, _ = self._paths.get_text_width_height_descent(words, font, ismath=False)
        return float(width) / self._points

    def fitted(self, words: str, width: float, size: float, weight: str = "normal") -> str:
        """Words, truncated with an ellipsis where they are wider than `width`."""
        if len(words) <= _LINE_SIGNS and self.extent(words, size, weight) <= width:
            return words
        fits, too_many = 0, min(len(words), _LINE_SIGNS)
        while too_many - fits > 1:
            count = (fits + too_many) // 2
            if self.extent(words[:count] + "…", size, weight) <= width:
                fits = count
            else:
                too_many = count
        return words[:fits].rstrip() + "…"

    def lines(self, text: str, width: float, size: float, limit: int) -> list[str]:
        """The text broken between words into at most `limit` lines; the last is cut where there is more."""
        lines: list[str] = []
        left = text.split(" ") if text else []
        while left and len(lines) < limit:
            if len(lines) == limit - 1:
                return [*lines, self.fitted(" ".join(left), width, size)]
            count = 1
            while count < len(left) and self.extent(" ".join(left[: count + 1]), size) <= width:
                count += 1
            lines.append(self.fitted(" ".join(left[:count]), width, size))
            left = left[count:]
        return lines
